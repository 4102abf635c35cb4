import Foundation
import Synchronization

/// The media type of a device, in place of AVFoundation's structure.
public struct AVMediaType: RawRepresentable, Hashable, Sendable {
  /// The name.
  public let rawValue: String
  /// Creates a media type from its name.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// Creates a media type from its name.
  public init(_ rawValue: String) { self.rawValue = rawValue }

  /// Video.
  public static let video = AVMediaType("vide")
  /// Audio.
  public static let audio = AVMediaType("soun")
}

/// Whether a device may be used, numbered as in AVFoundation.
public enum AVAuthorizationStatus: Int, Sendable {
  /// Permission was not requested.
  case notDetermined
  /// The application gave no usage description, so it cannot request permission.
  case restricted
  /// Permission was denied.
  case denied
  /// Permission was granted.
  case authorized
}

/// The permissions for cameras and the microphone, for the whole process.
final class CaptureAccess: Sendable {
  static let shared = CaptureAccess()

  private struct State {
    var known: [AVMediaType: Bool] = [:]
    var answer: (@Sendable (AVMediaType) -> Bool)?
    var info: [String: String]?
  }

  private let state = Mutex(State())

  func use(_ answer: (@Sendable (AVMediaType) -> Bool)?, _ info: [String: String]?) {
    state.withLock { $0 = State(answer: answer, info: info) }
  }

  /// Whether the application has a usage description for a device; not required without an
  /// `Info.plist`, as for most applications on this system.
  func isDeclared(_ mediaType: AVMediaType) -> Bool {
    let name = mediaType == .video ? "NSCameraUsageDescription" : "NSMicrophoneUsageDescription"
    if let info = state.withLock({ $0.info }) { return info[name]?.isEmpty == false }
    guard Bundle.main.bundleIdentifier != nil else { return true }
    return (Bundle.main.object(forInfoDictionaryKey: name) as? String)?.isEmpty == false
  }

  func status(_ mediaType: AVMediaType) -> AVAuthorizationStatus {
    guard isDeclared(mediaType) else { return .restricted }
    return switch state.withLock({ $0.known[mediaType] }) {
    case true?: .authorized
    case false?: .denied
    case nil: .notDetermined
    }
  }

  /// Whether a device may be used; requests permission if that was not done yet.
  func isAllowed(_ mediaType: AVMediaType) -> Bool {
    guard isDeclared(mediaType) else { return false }
    let (known, answer) = state.withLock { ($0.known[mediaType], $0.answer) }
    if let known { return known }
    let isAllowed = answer?(mediaType) ?? true
    return state.withLock { state in
      // A concurrent request gets the first answer.
      let first = state.known[mediaType] ?? isAllowed
      state.known[mediaType] = first
      return first
    }
  }
}

import Foundation
import Synchronization

/// What a device gives, in the place of the structure of AVFoundation.
public struct AVMediaType: RawRepresentable, Hashable, Sendable {
  /// The name.
  public let rawValue: String
  /// Takes a name.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// Takes a name.
  public init(_ rawValue: String) { self.rawValue = rawValue }

  /// Video frames.
  public static let video = AVMediaType("vide")
  /// Audio.
  public static let audio = AVMediaType("soun")
}

/// Whether a device may be used, numbered as in AVFoundation.
public enum AVAuthorizationStatus: Int, Sendable {
  /// Nobody was asked.
  case notDetermined
  /// The application did not say what for, and nobody will be asked.
  case restricted
  /// The user refused.
  case denied
  /// It may be used.
  case authorized
}

/// Whether cameras and the microphone may be used, for the whole process.
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

  /// Whether the application said what it wants a device for: an application without an
  /// `Info.plist`, as most are on this system, need not.
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

  /// Whether a device may be used; asks where nobody was asked yet.
  func isAllowed(_ mediaType: AVMediaType) -> Bool {
    guard isDeclared(mediaType) else { return false }
    let (known, answer) = state.withLock { ($0.known[mediaType], $0.answer) }
    if let known { return known }
    let isAllowed = answer?(mediaType) ?? true
    return state.withLock { state in
      // Who asked at the same time has the first answer.
      let first = state.known[mediaType] ?? isAllowed
      state.known[mediaType] = first
      return first
    }
  }
}

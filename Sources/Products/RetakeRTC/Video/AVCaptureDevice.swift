import Foundation
public import Live
import Media
import Synchronization

/// A camera; replaces AVFoundation's class.
public final class AVCaptureDevice: Sendable {
  /// A camera's position, numbered as in AVFoundation.
  public enum Position: Int, Sendable {
    /// The position is unknown.
    case unspecified
    /// Facing away from the user.
    case back
    /// Facing the user.
    case front
  }

  /// A frame size that a camera supports, with its frame rates.
  public final class Format: Sendable {
    let native: VideoFormat

    init(_ native: VideoFormat) { self.native = native }

    /// The size of the video frames.
    public var formatDescription: CMFormatDescription {
      CMFormatDescription(
        dimensions: CMVideoDimensions(
          width: Int32(clamping: native.width), height: Int32(clamping: native.height)))
    }

    /// The supported frame rates.
    public var videoSupportedFrameRateRanges: [AVFrameRateRange] {
      [AVFrameRateRange(minFrameRate: 1, maxFrameRate: native.framesPerSecond)]
    }
  }

  /// The camera's identifier.
  public let uniqueID: String
  /// The camera's display name.
  public let localizedName: String
  /// The camera's position.
  public let position: Position
  /// The supported formats, the preferred one first.
  public let formats: [Format]
  package let capturer: any VideoCapturer

  /// Creates a camera from a capturer, which may capture a pattern, a file, or a system device.
  public init(
    uniqueID: String, localizedName: String, position: Position, capturer: any VideoCapturer
  ) {
    self.uniqueID = uniqueID
    self.localizedName = localizedName
    self.position = position
    self.capturer = capturer
    formats = capturer.supportedFormats.map { Format($0) }
  }

  private static let chosen = Mutex<[AVCaptureDevice]?>(nil)

  /// Sets the devices that `RTCCameraVideoCapturer.captureDevices` returns, for a machine without a
  /// camera; nil restores the system's devices.
  public static func useDevices(_ devices: [AVCaptureDevice]?) {
    chosen.withLock { $0 = devices }
  }

  // MARK: Access

  /// Returns whether the application may use cameras or the microphone.
  public static func authorizationStatus(for mediaType: AVMediaType) -> AVAuthorizationStatus {
    CaptureAccess.shared.status(mediaType)
  }

  /// Requests permission to use cameras or the microphone; the user is asked once and the answer is
  /// remembered.
  /// - Parameter handler: receives the answer, on a separate thread.
  public static func requestAccess(
    for mediaType: AVMediaType, completionHandler handler: @escaping (Bool) -> Void
  ) {
    let told = Handed(handler)
    DispatchQueue.global().async { told.value(CaptureAccess.shared.isAllowed(mediaType)) }
  }

  /// Requests permission to use cameras or the microphone; the user is asked once and the answer is
  /// remembered.
  public static func requestAccess(for mediaType: AVMediaType) async -> Bool {
    CaptureAccess.shared.isAllowed(mediaType)
  }

  /// Forgets all permissions, and lets a closure answer for the user from now on; nil grants every
  /// request.
  ///
  /// By default every request is granted, because file permissions control access to devices on
  /// this system.
  /// - Parameter infoDictionary: the application's `Info.plist`; nil reads the main bundle's.
  public static func useAccess(
    infoDictionary: [String: String]? = nil,
    _ answer: (@Sendable (AVMediaType) -> Bool)? = nil
  ) {
    CaptureAccess.shared.use(answer, infoDictionary)
  }

  // MARK: Devices

  /// Returns the front camera, or else the first camera; nil if there is none.
  ///
  /// For audio it also returns nil, since the audio session manages the microphone.
  public static func `default`(for mediaType: AVMediaType) -> AVCaptureDevice? {
    guard mediaType == .video else { return nil }
    return all.first { $0.position == .front } ?? all.first
  }

  private struct User {
    weak var camera: DefaultCamera?
  }

  private static let users = Mutex<[String: User]>([:])

  /// Records that a source without a capturer uses the camera; always returns true.
  func begin(for camera: DefaultCamera) -> Bool {
    Self.users.withLock { $0[uniqueID] = User(camera: camera) }
    return true
  }

  /// Stops sources without a capturer from using the camera, because the application starts it.
  func isClaimed() {
    Self.users.withLock { $0.removeValue(forKey: uniqueID)?.camera }?.stop()
  }

  /// The cameras that were set, or the system's: the front camera first, the back camera second.
  package static var all: [AVCaptureDevice] {
    if let devices = chosen.withLock({ $0 }) { return devices }
    let places = [(CameraPosition.front, Position.front), (.back, .back)]
    return zip(CameraList.paths(), places).map { path, place in
      AVCaptureDevice(
        uniqueID: path, localizedName: path, position: place.1,
        capturer: ProcessVideoCapturer.camera(place.0, device: path))
    }
  }
}

/// A range of frame rates; replaces AVFoundation's class.
public struct AVFrameRateRange: Hashable, Sendable {
  /// The minimum frame rate.
  public let minFrameRate: Double
  /// The maximum frame rate.
  public let maxFrameRate: Double
}

// MARK: - CaptureAccess

/// A device's media type; replaces AVFoundation's structure.
public struct AVMediaType: RawRepresentable, Hashable, Sendable {
  /// The type's four-character name.
  public let rawValue: String
  /// Creates a media type from its name.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// Creates a media type from its name.
  public init(_ rawValue: String) { self.rawValue = rawValue }

  /// The type for cameras.
  public static let video = AVMediaType("vide")
  /// The type for microphones.
  public static let audio = AVMediaType("soun")
}

/// Whether a device may be used, numbered as in AVFoundation.
public enum AVAuthorizationStatus: Int, Sendable {
  /// Permission was not requested.
  case notDetermined
  /// The application has no usage description, so it cannot request permission.
  case restricted
  /// Permission was denied.
  case denied
  /// Permission was granted.
  case authorized
}

/// The process's permissions for cameras and the microphone.
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

  /// Returns whether the application has a usage description for a device; none is required without
  /// an `Info.plist`, which most applications on this system lack.
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

  /// Returns whether a device may be used, requesting permission the first time.
  func isAllowed(_ mediaType: AVMediaType) -> Bool {
    guard isDeclared(mediaType) else { return false }
    let (known, answer) = state.withLock { ($0.known[mediaType], $0.answer) }
    if let known { return known }
    let isAllowed = answer?(mediaType) ?? true
    return state.withLock { state in
      // Concurrent requests share the first answer.
      let first = state.known[mediaType] ?? isAllowed
      state.known[mediaType] = first
      return first
    }
  }
}

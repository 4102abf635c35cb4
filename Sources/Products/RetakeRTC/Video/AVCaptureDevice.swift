import Foundation
public import Live
import Media
import Synchronization

/// A camera, in place of AVFoundation's class.
public final class AVCaptureDevice: Sendable {
  /// The position of a camera, numbered as in AVFoundation.
  public enum Position: Int, Sendable {
    /// The position is unknown.
    case unspecified
    /// Facing away from the user.
    case back
    /// Facing the user.
    case front
  }

  /// A format of a camera.
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

  /// The identifier of the camera.
  public let uniqueID: String
  /// The display name of the camera.
  public let localizedName: String
  /// The position of the camera.
  public let position: Position
  /// The supported formats, the preferred one first.
  public let formats: [Format]
  package let capturer: any VideoCapturer

  /// Creates a camera from a capturer: a pattern, a file, or a device of the system.
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

  /// Sets the result of `RTCCameraVideoCapturer.captureDevices`, for a machine without a camera;
  /// nil restores the system's devices.
  public static func useDevices(_ devices: [AVCaptureDevice]?) {
    chosen.withLock { $0 = devices }
  }

  // MARK: Access

  /// Whether the application may use cameras or the microphone.
  public static func authorizationStatus(for mediaType: AVMediaType) -> AVAuthorizationStatus {
    CaptureAccess.shared.status(mediaType)
  }

  /// Requests permission to use cameras or the microphone, once; the answer is remembered.
  /// - Parameter handler: receives the answer, on a thread of its own.
  public static func requestAccess(
    for mediaType: AVMediaType, completionHandler handler: @escaping (Bool) -> Void
  ) {
    let told = Handed(handler)
    DispatchQueue.global().async { told.value(CaptureAccess.shared.isAllowed(mediaType)) }
  }

  /// Requests permission to use cameras or the microphone, once; the answer is remembered.
  public static func requestAccess(for mediaType: AVMediaType) async -> Bool {
    CaptureAccess.shared.isAllowed(mediaType)
  }

  /// Forgets all permissions, and lets a closure answer for the user from now on; nil grants
  /// everything, as on this system, where the file permissions of the device decide.
  /// - Parameter infoDictionary: the application's `Info.plist`; nil reads that of the main bundle.
  public static func useAccess(
    infoDictionary: [String: String]? = nil,
    _ answer: (@Sendable (AVMediaType) -> Bool)? = nil
  ) {
    CaptureAccess.shared.use(answer, infoDictionary)
  }

  // MARK: Devices

  /// The default camera, the front one; nil without a camera, and for audio, whose device belongs
  /// to the audio session.
  public static func `default`(for mediaType: AVMediaType) -> AVCaptureDevice? {
    guard mediaType == .video else { return nil }
    return all.first { $0.position == .front } ?? all.first
  }

  private struct User {
    weak var camera: DefaultCamera?
  }

  private static let users = Mutex<[String: User]>([:])

  /// A source uses the camera by default; false when the application uses it.
  func begin(for camera: DefaultCamera) -> Bool {
    Self.users.withLock { $0[uniqueID] = User(camera: camera) }
    return true
  }

  /// The application uses the camera itself, so its use by default ends.
  func isClaimed() {
    Self.users.withLock { $0.removeValue(forKey: uniqueID)?.camera }?.stop()
  }

  /// The cameras that were set, or those of the system: the first is the front camera, the second
  /// the back one.
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

/// A range of frame rates, in place of AVFoundation's class.
public struct AVFrameRateRange: Hashable, Sendable {
  /// The minimum.
  public let minFrameRate: Double
  /// The maximum.
  public let maxFrameRate: Double
}

// MARK: - CaptureAccess

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

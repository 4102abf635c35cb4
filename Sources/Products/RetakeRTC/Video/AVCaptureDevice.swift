import Foundation
public import Live
import Media
import Synchronization

/// A camera, in the place of the class of AVFoundation.
public final class AVCaptureDevice: Sendable {
  /// Where a camera looks, numbered as in AVFoundation.
  public enum Position: Int, Sendable {
    /// Nobody knows.
    case unspecified
    /// Away from whoever looks at the screen.
    case back
    /// At whoever looks at the screen.
    case front
  }

  /// What a camera can give.
  public final class Format: Sendable {
    let native: VideoFormat

    init(_ native: VideoFormat) { self.native = native }

    /// The size of the video frames.
    public var formatDescription: CMFormatDescription {
      CMFormatDescription(
        dimensions: CMVideoDimensions(
          width: Int32(clamping: native.width), height: Int32(clamping: native.height)))
    }

    /// How many video frames per second there can be.
    public var videoSupportedFrameRateRanges: [AVFrameRateRange] {
      [AVFrameRateRange(minFrameRate: 1, maxFrameRate: native.framesPerSecond)]
    }
  }

  /// Names the camera.
  public let uniqueID: String
  /// What people call it.
  public let localizedName: String
  /// Where it looks.
  public let position: Position
  /// What it can give, the preferred format first.
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

  /// Chooses what `RTCCameraVideoCapturer.captureDevices` gives, for a machine without a camera;
  /// nil gives the devices of the system again.
  public static func useDevices(_ devices: [AVCaptureDevice]?) {
    chosen.withLock { $0 = devices }
  }

  // MARK: Access

  /// Whether the application may use cameras or the microphone.
  public static func authorizationStatus(for mediaType: AVMediaType) -> AVAuthorizationStatus {
    CaptureAccess.shared.status(mediaType)
  }

  /// Asks for cameras or the microphone, once; the answer is kept.
  ///
  /// - Parameter handler: told on a thread of its own whether they may be used.
  public static func requestAccess(
    for mediaType: AVMediaType, completionHandler handler: @escaping (Bool) -> Void
  ) {
    let told = Handed(handler)
    DispatchQueue.global().async { told.value(CaptureAccess.shared.isAllowed(mediaType)) }
  }

  /// Asks for cameras or the microphone, once; the answer is kept.
  public static func requestAccess(for mediaType: AVMediaType) async -> Bool {
    CaptureAccess.shared.isAllowed(mediaType)
  }

  /// Forgets who allowed what, and lets a closure answer for the user from now on; nil allows
  /// everything, as this system does, on which the right to open a device decides.
  ///
  /// - Parameter infoDictionary: what the application's `Info.plist` says; nil reads that of the
  ///   main bundle.
  public static func useAccess(
    infoDictionary: [String: String]? = nil,
    _ answer: (@Sendable (AVMediaType) -> Bool)? = nil
  ) {
    CaptureAccess.shared.use(answer, infoDictionary)
  }

  // MARK: Devices

  /// The camera that an application gets which names none, the one at the front; nil without one,
  /// and for audio, whose device is the audio session's.
  public static func `default`(for mediaType: AVMediaType) -> AVCaptureDevice? {
    guard mediaType == .video else { return nil }
    return all.first { $0.position == .front } ?? all.first
  }

  private struct User {
    weak var camera: DefaultCamera?
  }

  private static let users = Mutex<[String: User]>([:])

  /// A source uses the camera unasked; false when its application does.
  func begin(for camera: DefaultCamera) -> Bool {
    Self.users.withLock { $0[uniqueID] = User(camera: camera) }
    return true
  }

  /// The application takes the camera itself: whoever uses it unasked gives it back first.
  func isClaimed() {
    Self.users.withLock { $0.removeValue(forKey: uniqueID)?.camera }?.stop()
  }

  /// The cameras that were chosen, or those of the system: the first looks at the user, the second
  /// away.
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

/// From how many to how many video frames per second, in the place of the class of AVFoundation.
public struct AVFrameRateRange: Hashable, Sendable {
  /// The fewest.
  public let minFrameRate: Double
  /// The most.
  public let maxFrameRate: Double
}

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
  let capturer: any VideoCapturer

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

  /// The cameras that were chosen, or those of the system: the first looks at the user, the second
  /// away.
  static var all: [AVCaptureDevice] {
    if let devices = chosen.withLock({ $0 }) { return devices }
    return [(CameraPosition.front, Position.front, 0), (.back, .back, 1)].compactMap {
      camera, position, number in
      let path = "/dev/video\(number)"
      guard FileManager.default.fileExists(atPath: path) else { return nil }
      return AVCaptureDevice(
        uniqueID: path, localizedName: path, position: position,
        capturer: ProcessVideoCapturer.camera(camera, device: path))
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

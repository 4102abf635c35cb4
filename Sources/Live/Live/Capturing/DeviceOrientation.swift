public import Media
import Synchronization

/// The orientation of a device and of its application.
///
/// On Linux no sensor reports it, so the application or a test sets it.
public final class DeviceOrientation: Sendable {
  private let state = Mutex((device: VideoRotation.none, application: VideoRotation.none))

  /// Creates an upright orientation.
  public init() {}

  /// The rotation that makes the device's frames upright.
  public var device: VideoRotation {
    get { state.withLock { $0.device } }
    set { state.withLock { $0.device = newValue } }
  }
  /// The rotation of the application's display.
  public var application: VideoRotation {
    get { state.withLock { $0.application } }
    set { state.withLock { $0.application = newValue } }
  }

  /// The rotation of frames.
  public func rotation(by type: LocalMediaOptions.RotationType) -> VideoRotation {
    switch type {
    case .notAvailable: .none
    case .deviceOrientation: device
    case .appOrientation: application
    }
  }
}

/// Rotates frames according to the orientation of the device or the application.
///
/// Only the frame's rotation is changed; its pixels are rotated once, when it is sent.
public struct OrientationFilter: VideoFilter {
  private let orientation: DeviceOrientation
  private let type: LocalMediaOptions.RotationType

  /// Creates a filter.
  public init(_ orientation: DeviceOrientation, by type: LocalMediaOptions.RotationType) {
    self.orientation = orientation
    self.type = type
  }

  /// Adds the current rotation to the frame's own.
  public func process(_ frame: VideoFrame) -> VideoFrame? {
    let turned = frame.rotation.rawValue + orientation.rotation(by: type).rawValue
    return try? VideoFrame(
      buffer: frame.buffer, visibleRect: frame.visibleRect,
      rotation: VideoRotation(rawValue: turned % 360) ?? .none,
      timestampNanoseconds: frame.timestampNanoseconds)
  }
}

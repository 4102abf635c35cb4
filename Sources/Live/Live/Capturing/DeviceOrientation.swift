public import Media
import Synchronization

/// How a device is held and how its application is shown.
///
/// Nothing turns a machine with this system: the application says it, or a test.
public final class DeviceOrientation: Sendable {
  private let state = Mutex((device: VideoRotation.none, application: VideoRotation.none))

  /// A device that is held and shown upright.
  public init() {}

  /// How the device is held: by how much its frames have to be turned to be upright.
  public var device: VideoRotation {
    get { state.withLock { $0.device } }
    set { state.withLock { $0.device = newValue } }
  }
  /// The same for how the application is shown.
  public var application: VideoRotation {
    get { state.withLock { $0.application } }
    set { state.withLock { $0.application = newValue } }
  }

  /// By how much frames are turned.
  public func rotation(by type: LocalMediaOptions.RotationType) -> VideoRotation {
    switch type {
    case .notAvailable: .none
    case .deviceOrientation: device
    case .appOrientation: application
    }
  }
}

/// Turns frames as a device is held, or as its application is shown.
///
/// The pixels stay where they are: the frame says how it is to be turned, and is turned once, where
/// it is sent.
public struct OrientationFilter: VideoFilter {
  private let orientation: DeviceOrientation
  private let type: LocalMediaOptions.RotationType

  /// Creates a filter.
  public init(_ orientation: DeviceOrientation, by type: LocalMediaOptions.RotationType) {
    self.orientation = orientation
    self.type = type
  }

  /// The frame with the rotation of now added to its own.
  public func process(_ frame: VideoFrame) -> VideoFrame? {
    let turned = frame.rotation.rawValue + orientation.rotation(by: type).rawValue
    return try? VideoFrame(
      buffer: frame.buffer, visibleRect: frame.visibleRect,
      rotation: VideoRotation(rawValue: turned % 360) ?? .none,
      timestampNanoseconds: frame.timestampNanoseconds)
  }
}

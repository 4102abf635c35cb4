public import AudioSession
import FoundationEssentials
public import Media
import Synchronization
import Wire

/// A camera's position; on Linux a label that selects the default device.
public enum CameraPosition: String, CaseIterable, Hashable, Sendable, Codable {
  /// Facing the user: the first camera.
  case front
  /// Facing away: the second camera.
  case back
}

extension ProcessVideoCapturer {
  /// Creates a capturer for a camera (V4L2).
  /// - Parameters:
  ///   - position: names the camera in errors, and selects the device if `device` is nil.
  ///   - device: the device file; nil selects the first camera (front) or the second one (back).
  ///   - program: the ffmpeg that reads the camera.
  public static func camera(
    _ position: CameraPosition = .front, device: String? = nil,
    supportedFormats: [VideoFormat] = VideoFormat.usual, program: MediaProgram = .system
  ) -> ProcessVideoCapturer {
    let path = device ?? CameraList.path(of: position, in: CameraList.paths())
    return ProcessVideoCapturer(
      "the \(position.rawValue) camera", supportedFormats: supportedFormats, isScreencast: false,
      program: program,
      obstacle: {
        guard FileManager.default.fileExists(atPath: path) else {
          return "there is no device \(path): connect a camera, or send a file or a pattern"
        }
        return FileManager.default.isReadableFile(atPath: path)
          ? nil : "there is no permission to read \(path): add the user to the group video"
      },
      input: { format in
        [
          "-f", "v4l2", "-framerate", "\(format.framesPerSecond)", "-video_size",
          "\(format.width)x\(format.height)", "-i", path,
        ]
      })
  }

  /// Creates a capturer for an entire X11 screen, fitted into a format with black bars.
  /// - Parameters:
  ///   - display: `:0`, or with a screen `:0.1`.
  ///   - program: the ffmpeg that reads the screen.
  package static func wholeScreen(
    display: String, fittedInto format: VideoFormat, program: MediaProgram = .system
  ) -> ProcessVideoCapturer {
    ProcessVideoCapturer(
      "the screen \(display)", supportedFormats: [format], isScreencast: true, program: program,
      obstacle: { display.contains(":") ? nil : "a display has a number, like :0" },
      input: { format in
        let size = "\(format.width):\(format.height)"
        return [
          "-f", "x11grab", "-draw_mouse", "1", "-framerate", "\(format.framesPerSecond)", "-i",
          display, "-vf",
          "scale=\(size):force_original_aspect_ratio=decrease,pad=\(size):(ow-iw)/2:(oh-ih)/2",
        ]
      })
  }

  /// Creates a capturer for part of an X11 screen.
  /// - Parameters:
  ///   - display: `:0`, or with a screen and an offset `:0.0+10,20`.
  ///   - framesPerSecond: 1 to 120.
  ///   - program: the ffmpeg that reads the screen.
  public static func screen(
    display: String, width: Int, height: Int, framesPerSecond: Double = 15,
    program: MediaProgram = .system
  ) -> ProcessVideoCapturer {
    let format = VideoFormat(
      width: width, height: height, framesPerSecond: ScreenCadence.clamped(framesPerSecond),
      pixelFormat: .bgra)
    return ProcessVideoCapturer(
      "the screen \(display)", supportedFormats: [format], isScreencast: true, program: program,
      obstacle: {
        display.contains(":") ? nil : "a display has a number, like :0"
      },
      input: { format in
        [
          "-f", "x11grab", "-draw_mouse", "1", "-framerate", "\(format.framesPerSecond)",
          "-video_size", "\(format.width)x\(format.height)", "-i", display,
        ]
      })
  }
}

/// The system's cameras (V4L2), in the order of their numbers.
///
/// Many cameras have a second node, for metadata; a camera's first node delivers the frames.
package enum CameraList {
  /// Returns the cameras' device files: the front camera first, the back camera second.
  /// - Parameters:
  ///   - system: the folder in which the system lists its devices.
  ///   - devices: the folder that contains the device files.
  package static func paths(
    system: String = "/sys/class/video4linux", devices: String = "/dev"
  ) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: system)) ?? []
    let numbered = names.compactMap { name -> (number: Int, name: String)? in
      guard name.hasPrefix("video"), let number = Int(name.dropFirst(5)) else { return nil }
      return (number, name)
    }
    return numbered.sorted { $0.number < $1.number }.compactMap { entry in
      let index = try? String(contentsOfFile: "\(system)/\(entry.name)/index", encoding: .utf8)
      let isFirst = index.map { $0.trimmed == "0" } ?? true
      let path = "\(devices)/\(entry.name)"
      return isFirst && FileManager.default.fileExists(atPath: path) ? path : nil
    }
  }

  /// Returns the device file for a position; `/dev/video0` or `/dev/video1` if the system does not
  /// list that camera.
  package static func path(of position: CameraPosition, in paths: [String]) -> String {
    let number = position == .front ? 0 : 1
    return number < paths.count ? paths[number] : "/dev/video\(number)"
  }
}

// MARK: - CameraPermissions

/// The user's permission to use the camera; the user is asked only once.
///
/// Linux has no camera permission of its own beyond access to the device file. An application that
/// has to ask its user, or a test, provides the answer here; a `VideoCaptureSession` requests the
/// answer before it starts the capturer.
public final class CameraPermissions: Sendable {
  private struct State {
    var status: AudioPermission
    var asked: Task<AudioPermission, Never>?
  }

  /// Whether the application declares its use of the camera; otherwise use is refused without
  /// asking.
  public let declaresCameraUse: Bool
  private let state: Mutex<State>
  private let answer: @Sendable () async -> Bool

  /// Creates permissions.
  /// - Parameters:
  ///   - status: the decision, if known.
  ///   - declaresCameraUse: whether the application declares its use of the camera.
  ///   - answer: asks the user if there is no decision yet.
  public init(
    _ status: AudioPermission = .undetermined, declaresCameraUse: Bool = true,
    answer: @escaping @Sendable () async -> Bool
  ) {
    self.declaresCameraUse = declaresCameraUse
    state = Mutex(State(status: status))
    self.answer = answer
  }

  /// The decision so far.
  public var status: AudioPermission {
    declaresCameraUse ? state.withLock { $0.status } : .denied
  }

  /// Returns the user's decision, asking first if there is none.
  public func request() async -> AudioPermission {
    guard declaresCameraUse else { return .denied }
    let asked = state.withLock { state -> Task<AudioPermission, Never>? in
      guard state.status == .undetermined else { return nil }
      if let asked = state.asked { return asked }
      let asked = Task { [answer] in await answer() ? AudioPermission.granted : .denied }
      state.asked = asked
      return asked
    }
    guard let asked else { return status }
    let said = await asked.value
    state.withLock { $0.status = said }
    return said
  }
}

// MARK: - DeviceOrientation

/// The orientation of a device and its application.
///
/// On Linux, no sensor reports the orientation, so the application or a test sets it.
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

  /// Returns the rotation to add to a frame; none for `notAvailable`.
  public func rotation(by type: LocalMediaOptions.RotationType) -> VideoRotation {
    switch type {
    case .notAvailable: .none
    case .deviceOrientation: device
    case .appOrientation: application
    }
  }
}

/// Rotates frames by the orientation of the device or the application.
///
/// Only the frame's rotation is changed; its pixels are rotated once, when it is sent.
public struct OrientationFilter: VideoFilter {
  private let orientation: DeviceOrientation
  private let type: LocalMediaOptions.RotationType

  /// Creates a filter that reads the orientation of this type at each frame.
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

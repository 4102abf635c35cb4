package import Live
import Media
package import Wire

/// A device of the machine that is sent.
package enum SendDevice: String, Hashable, Sendable, CaseIterable {
  case microphone
  case camera
  case screen

  /// What it captures.
  package var kind: MediaKind { self == .microphone ? .audio : .video }
}

/// Which camera is sent: `front`, `back`, or the file of a device.
package enum CameraChoice: Hashable, Sendable {
  case position(CameraPosition)
  case device(String)

  package static let wanted = "a camera is front, back, or the file of a device, as in /dev/video2"

  /// Reads a place or a file.
  package init?(argument: String) {
    if let position = CameraPosition(rawValue: argument) {
      self = .position(position)
    } else if argument.contains("/"), argument.utf8.count < 4_096 {
      self = .device(argument)
    } else {
      return nil
    }
  }

  /// Where the camera is; the front for a device of its own.
  package var position: CameraPosition {
    if case .position(let position) = self { return position }
    return .front
  }

  /// The file of the device; nil for that of the position.
  package var path: String? {
    if case .device(let path) = self { return path }
    return nil
  }
}

/// The devices of the machine that are sent and played.
package struct DevicePlan: Sendable {
  package var sends: Set<SendDevice>
  package var plays: Bool
  package var camera: CameraChoice
  /// The size of the video frames, in pixels; nil for the usual one.
  package var width: Int?
  package var height: Int?
  /// The X display whose screen is sent.
  package var display: String

  /// Whether there is anything to open.
  package var isEmpty: Bool { sends.isEmpty && !plays }
  /// Whether the audio device of the system is needed.
  package var needsAudio: Bool { plays || sends.contains(.microphone) }

  package init(
    _ sends: Set<SendDevice> = [], plays: Bool = false, camera: CameraChoice = .position(.front),
    size: (width: Int, height: Int)? = nil, display: String = ""
  ) {
    self.sends = sends
    self.plays = plays
    self.camera = camera
    width = size?.width
    height = size?.height
    self.display = display
  }

  /// No devices.
  package static let none = DevicePlan()

  /// The capturer of the camera or the screen; nil when neither is sent.
  package var capturer: ProcessVideoCapturer? {
    func format(_ width: Int, _ height: Int, _ rate: Double) -> VideoFormat {
      VideoFormat(
        width: self.width ?? width, height: self.height ?? height, framesPerSecond: rate)
    }
    if sends.contains(.camera) {
      return .camera(
        camera.position, device: camera.path, supportedFormats: [format(640, 480, 30)])
    }
    guard sends.contains(.screen) else { return nil }
    return .wholeScreen(display: display, fittedInto: format(1_280, 720, 15))
  }
}

extension Set<SendDevice> {
  /// The device that carries a kind; nil when none does.
  package func carrying(_ kind: MediaKind) -> SendDevice? {
    SendDevice.allCases.first { contains($0) && $0.kind == kind }
  }
}

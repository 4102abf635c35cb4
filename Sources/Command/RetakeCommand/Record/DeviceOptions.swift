import ArgumentParser
import AudioSession
import FoundationEssentials
import Live
import Media
import Wire

/// A device of the machine that is sent.
enum SendDevice: String, Hashable, CaseIterable {
  case microphone
  case camera
  case screen

  var kind: MediaKind { self == .microphone ? .audio : .video }
}

/// Which camera is sent: `--camera front|back|FILE`.
enum CameraChoice: Hashable, ExpressibleByArgument {
  case position(CameraPosition)
  case device(String)

  static let wanted = "a camera is front, back, or the file of a device, as in /dev/video2"

  init?(argument: String) {
    if let position = CameraPosition(rawValue: argument) {
      self = .position(position)
    } else if argument.contains("/"), let path = try? Taking.path(argument) {
      self = .device(path)
    } else {
      return nil
    }
  }

  var position: CameraPosition {
    if case .position(let position) = self { return position }
    return .front
  }

  /// The file of the device; nil for that of the position.
  var path: String? {
    if case .device(let path) = self { return path }
    return nil
  }
}

/// What every way to record that sends a camera takes.
struct CameraOptions: ParsableArguments {
  @Option(
    help: """
      With --send camera: front, the first camera of the system, back, the second, or the file of \
      a device. Default: front.
      """,
    transform: Taking.value(CameraChoice.wanted))
  var camera: CameraChoice?

  @Option(
    name: .customLong("camera-size"),
    help: "With --send camera or screen: the size that is sent. Default: 640x480, or 1280x720.",
    transform: Taking.value(VideoSize.wanted))
  var cameraSize: VideoSize?
}

/// Whether what is received is played: `--play`.
struct PlayOption: ParsableArguments {
  @Flag(help: "Play what is received on the loudspeaker of the system (PulseAudio or PipeWire).")
  var play = false
}

/// The devices of the machine that a command line asks for.
struct DevicePlan {
  var sends: Set<SendDevice> = []
  var plays = false
  var camera = CameraChoice.position(.front)
  var size: VideoSize?
  /// The X display whose screen is sent.
  var display = ""

  /// Whether there is anything to open.
  var isEmpty: Bool { sends.isEmpty && !plays }
  /// Whether the audio device of the system is needed.
  var needsAudio: Bool { plays || sends.contains(.microphone) }

  /// Reads the options, and refuses what this machine has not before anything is recorded.
  init(_ sends: Set<SendDevice>, _ options: CameraOptions, plays: Bool) throws {
    self.sends = sends
    self.plays = plays
    size = options.cameraSize
    camera = options.camera ?? camera
    guard options.camera == nil || sends.contains(.camera) else {
      throw CommandFailure(.usage, "--camera goes with --send camera: give both, or leave it out")
    }
    let sendsVideo = sends.contains(.camera) || sends.contains(.screen)
    guard options.cameraSize == nil || sendsVideo else {
      throw CommandFailure(
        .usage, "--camera-size goes with --send camera or screen: give both, or leave it out")
    }
    if sends.contains(.screen) {
      guard let found = ProcessInfo.processInfo.environment["DISPLAY"], !found.isEmpty else {
        throw CommandFailure(
          .inputOutput,
          "--send screen: DISPLAY names no screen: run it in a session of X, or set DISPLAY=:0")
      }
      display = found
    }
    if let obstacle = capturer?.obstacleNow {
      throw CommandFailure(.inputOutput, "--send \(obstacle)")
    }
    try findAudio()
  }

  /// Plays what is received, or not, and sends nothing.
  init(plays: Bool) throws {
    self.plays = plays
    try findAudio()
  }

  private func findAudio() throws(CommandFailure) {
    guard needsAudio else { return }
    do throws(AudioDeviceError) {
      _ = try SystemAudioDevice.find()
    } catch {
      let option = sends.contains(.microphone) ? "--send microphone" : "--play"
      throw CommandFailure(.inputOutput, "\(option): \(error)")
    }
  }

  /// No devices.
  static let none = DevicePlan()

  private init() {}

  /// The capturer of the camera or the screen; nil when neither is sent.
  var capturer: ProcessVideoCapturer? {
    func format(_ width: Int, _ height: Int, _ rate: Double) -> VideoFormat {
      VideoFormat(
        width: size?.width ?? width, height: size?.height ?? height, framesPerSecond: rate)
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
  func carrying(_ kind: MediaKind) -> SendDevice? {
    SendDevice.allCases.first { contains($0) && $0.kind == kind }
  }
}

import ArgumentParser
import AudioSession
import CallRecording
import FoundationEssentials
import Live
import MediaFiles
import Peer
import RTP
import Wire

/// A source that a recorded peer sends.
enum SendChoice: ExpressibleByArgument, Equatable {
  /// Send received media back.
  case echo
  /// Send a tone and a test pattern.
  case pattern
  /// Send a Y4M, H.264 or WAV file in a loop.
  case file(String)
  /// Send from a local device.
  case device(SendDevice)

  /// The expected form, for error messages.
  static let wanted =
    "it is echo, pattern, microphone, camera, screen, or the name of a .y4m, .h264 or .wav file of "
    + "1 to 4095 bytes; separate several with commas"

  init?(argument: String) {
    switch argument {
    case "": return nil
    case "echo": self = .echo
    case "pattern": self = .pattern
    default:
      if let device = SendDevice(rawValue: argument) {
        self = .device(device)
        return
      }
      guard MediaFileFormat(path: argument) != nil, let path = try? Taking.path(argument) else {
        return nil
      }
      self = .file(path)
    }
  }
}

/// Several sources in one word, such as `microphone,camera`.
struct SendList: ExpressibleByArgument, Equatable {
  let choices: [SendChoice]

  init?(argument: String) {
    // File names may contain commas.
    if FileManager.default.fileExists(atPath: argument), let one = SendChoice(argument: argument) {
      choices = [one]
      return
    }
    var found: [SendChoice] = []
    for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
      guard let choice = SendChoice(argument: String(part)) else { return nil }
      found.append(choice)
    }
    choices = found
  }
}

/// A recorded peer's sources: `--send echo|pattern|microphone|camera|screen|FILE`, once or once per
/// kind.
struct SendOptions: ParsableArguments {
  @Option(
    help: """
      What to send: echo, pattern, microphone, camera, screen, or a .y4m, .h264 or .wav file; may \
      be given twice, or as in microphone,camera. A .h264 file is sent without decoding.
      """,
    completion: .file(extensions: ["y4m", "h264", "wav"]),
    transform: Taking.value(SendChoice.wanted))
  var send: [SendList] = []

  @OptionGroup var camera: CameraOptions

  @Option(
    name: .customLong("frame-rate"),
    help: "The frame rate of a .h264 file. Default: that of the file, or 30.",
    transform: Taking.number(0.1...1000))
  var frameRate: Double?

  @Flag(
    help: """
      Offer the video frames in three simulcast layers, h, m and l, each half the size of the one \
      before; a peer without simulcast gets the first.
      """)
  var simulcast = false

  /// The sources named by all uses of the option, in order.
  var choices: [SendChoice] { send.flatMap(\.choices) }
}

extension SendPlan {
  /// Creates a plan from the options, which are validated before anything is recorded.
  init(
    _ options: SendOptions, plays: Bool = false, default fallback: Filling,
    preferring codec: VideoCodecChoice?, messages: Conversation? = nil
  ) throws {
    let layers = options.simulcast ? RTPEncoding.halved(["h", "m", "l"]) : []
    let framesPerSecond = options.frameRate
    var other: Filling?
    var files: [MediaKind: String] = [:]
    var clip: H264Clip?
    var named: [MediaKind: String] = [:]
    var sent: Set<SendDevice> = []
    for choice in options.choices {
      if case .device(let device) = choice {
        try Self.carry(device.kind, device.rawValue, &named)
        sent.insert(device)
        continue
      }
      guard case .file(let path) = choice else {
        let filling = choice == .echo ? Filling.echo : .pattern
        guard other == nil || other == filling else {
          throw CommandFailure(
            .usage, "--send echo and --send pattern cannot be combined: give one")
        }
        other = filling
        continue
      }
      guard let format = MediaFileFormat(path: path) else {
        throw CommandFailure(
          .usage, "--send \(path): give echo, pattern, or the name of a .y4m, .h264 or .wav file")
      }
      try Self.carry(format.kind, path, &named)
      files[format.kind] = path
      if let found = try Self.check(path, format, codec, framesPerSecond) { clip = found }
    }
    if options.send.isEmpty { other = fallback }
    let devices = try DevicePlan(sent, options.camera, plays: plays)
    guard framesPerSecond == nil || clip != nil else {
      throw CommandFailure(
        .usage, "--frame-rate is for a .h264 file, and --send names none: leave it out")
    }
    guard layers.isEmpty || clip == nil else {
      throw CommandFailure(
        .usage, "a .h264 file is sent unchanged, in one layer: leave out --simulcast")
    }
    self.init(
      other, files: files, devices: devices, framesPerSecond: framesPerSecond, clip: clip,
      messages: messages, layers: layers)
  }

  /// Refuses a second source of the same kind of media.
  private static func carry(
    _ kind: MediaKind, _ name: String, _ named: inout [MediaKind: String]
  ) throws(CommandFailure) {
    guard let earlier = named.updateValue(name, forKey: kind) else { return }
    let media = kind == .audio ? "audio" : "video"
    throw CommandFailure(
      .usage, "--send \(earlier) and --send \(name) both carry \(media): give one of them")
  }

  /// Checks that a file exists and contains media, before anything is recorded.
  ///
  /// - Returns: the file, if it contains H.264.
  private static func check(
    _ path: String, _ format: MediaFileFormat, _ codec: VideoCodecChoice?,
    _ framesPerSecond: Double?
  ) throws -> H264Clip? {
    var clip: H264Clip?
    do throws(MediaFileError) {
      switch format {
      case .wav: _ = try WAVFileSource(path: path, loops: false)
      case .y4m: _ = try Y4MFileSource(path: path, loops: false)
      case .h264:
        clip = try H264Clip(
          path, H264FileSource(path: path, loops: false, framesPerSecond: framesPerSecond))
      }
    } catch {
      guard error.cause == .missing else {
        throw CommandFailure(error.status, "--send \(error.description)")
      }
      throw CommandFailure(
        .noSuchFile, "--send \(path): there is no such file; give echo, pattern or another file")
    }
    guard format == .h264, let codec, codec.name != .h264 else { return clip }
    throw CommandFailure(
      .usage, "--send \(path) is sent unchanged, in H.264: leave out --video-codec \(codec)")
  }
}

extension VideoCodecChoice: ExpressibleByArgument {}

extension MessageSizes: ExpressibleByArgument {}

// MARK: - DeviceOptions

extension CameraChoice: ExpressibleByArgument {}

/// Camera options that all recording commands share.
struct CameraOptions: ParsableArguments {
  @Option(
    help: """
      With --send camera: front is the system's first camera, back the second; or give a device \
      file. Default: front.
      """,
    transform: Taking.value(CameraChoice.wanted))
  var camera: CameraChoice?

  @Option(
    name: .customLong("camera-size"),
    help: ArgumentHelp(
      "With --send camera or screen: the size to send. Default: 640x480 for a camera, 1280x720 "
        + "for a screen."),
    transform: Taking.value(VideoSize.wanted))
  var cameraSize: VideoSize?
}

/// The option `--play`: whether received audio is played.
struct PlayOption: ParsableArguments {
  @Flag(help: "Play received audio on the system's loudspeaker (PulseAudio or PipeWire).")
  var play = false
}

extension DevicePlan {
  /// Creates a plan, validating the options against this machine's devices before anything is
  /// recorded.
  init(_ sends: Set<SendDevice>, _ options: CameraOptions, plays: Bool) throws {
    self.init(
      sends, plays: plays, camera: options.camera ?? .position(.front),
      size: options.cameraSize.map { ($0.width, $0.height) })
    guard options.camera == nil || sends.contains(.camera) else {
      throw CommandFailure(.usage, "--camera needs --send camera: give both, or leave it out")
    }
    let sendsVideo = sends.contains(.camera) || sends.contains(.screen)
    guard options.cameraSize == nil || sendsVideo else {
      throw CommandFailure(
        .usage, "--camera-size needs --send camera or screen: give both, or leave it out")
    }
    if sends.contains(.screen) {
      guard let found = ProcessInfo.processInfo.environment["DISPLAY"], !found.isEmpty else {
        throw CommandFailure(
          .inputOutput,
          "--send screen: DISPLAY names no screen: run it in an X session, or set DISPLAY=:0")
      }
      display = found
    }
    if let obstacle = capturer?.obstacleNow {
      throw CommandFailure(.inputOutput, "--send \(obstacle)")
    }
    try findAudio()
  }

  /// Creates a plan that sends no device, and optionally plays received media.
  init(playing plays: Bool) throws {
    self.init(plays: plays)
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
}

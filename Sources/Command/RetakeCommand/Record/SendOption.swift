import ArgumentParser
import FoundationEssentials
import JSEP
import Live
import Media
import MediaFiles
import Peer
import RTP
import Wire

/// One of the things that a recorded peer sends.
enum SendChoice: ExpressibleByArgument, Equatable {
  /// What it receives.
  case echo
  /// A tone and a test pattern.
  case pattern
  /// A Y4M, H.264 or WAV file, looped.
  case file(String)
  /// A device of the machine.
  case device(SendDevice)

  /// What is wanted, for who gave something else.
  static let wanted =
    "what is sent is echo, pattern, microphone, camera, screen, or the name of a .y4m, .h264 or "
    + ".wav file of 1 to 4095 bytes; commas stand between several"

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

  /// The generator of a kind.
  static func generated(_ kind: MediaKind) -> MediaSource {
    switch kind {
    case .audio: .tone(hertz: 440, pauseSeconds: 0)
    case .video: .pattern(width: 640, height: 360, framesPerSecond: 30)
    }
  }
}

/// Several things to send in one word: `microphone,camera`.
struct SendList: ExpressibleByArgument, Equatable {
  let choices: [SendChoice]

  init?(argument: String) {
    // A file may have commas in its name.
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

/// What a recorded peer sends: `--send echo|pattern|microphone|camera|screen|FILE`, once or once
/// per kind.
struct SendOptions: ParsableArguments {
  @Option(
    help: """
      What to send: echo, pattern, microphone, camera, screen, or a .y4m, .h264 or .wav file; may \
      be given twice, or as in microphone,camera. A .h264 file is sent as it is.
      """,
    completion: .file(extensions: ["y4m", "h264", "wav"]),
    transform: Taking.value(SendChoice.wanted))
  var send: [SendList] = []

  @OptionGroup var camera: CameraOptions

  @Option(
    name: .customLong("frame-rate"),
    help: "The frame rate of a .h264 file. Default: what the file tells, or 30.",
    transform: Taking.number(0.1...1000))
  var frameRate: Double?

  @Flag(
    help: """
      Offer the video frames in three layers, h, m and l, each half as large as the one before; a \
      peer that takes no simulcast gets the first.
      """)
  var simulcast = false

  /// All that is to be sent.
  var choices: [SendChoice] { send.flatMap(\.choices) }
}

/// The choices of one command line together.
struct SendPlan {
  /// What is sent of what no file carries; nil for the generator of its kind.
  private var other: SendChoice?
  private var files: [MediaKind: String] = [:]
  /// The devices that are sent and played.
  private(set) var devices = DevicePlan.none
  /// The pace of a file of H.264, when it was given.
  let framesPerSecond: Double?
  /// The file of H.264, when there is one.
  private(set) var clip: H264Clip?
  /// What is said over the own data channel; nil for an echo.
  let messages: Conversation?
  /// The layers that local offers name, the largest first; none: one stream is sent.
  let layers: [RTPEncoding]

  /// Sends one thing that is neither file nor device.
  init(_ choice: SendChoice, devices: DevicePlan = .none) {
    other = choice
    self.devices = devices
    framesPerSecond = nil
    messages = nil
    layers = []
  }

  init(
    _ options: SendOptions, plays: Bool = false, default fallback: SendChoice,
    preferring codec: VideoCodecChoice?, messages: Conversation? = nil
  ) throws {
    self.messages = messages
    layers = options.simulcast ? RTPEncoding.halved(["h", "m", "l"]) : []
    framesPerSecond = options.frameRate
    var named: [MediaKind: String] = [:]
    var sent: Set<SendDevice> = []
    for choice in options.choices {
      if case .device(let device) = choice {
        try carry(device.kind, device.rawValue, &named)
        sent.insert(device)
        continue
      }
      guard case .file(let path) = choice else {
        guard other == nil || other == choice else {
          throw CommandFailure(
            .usage, "--send echo and --send pattern exclude each other: give one")
        }
        other = choice
        continue
      }
      guard let format = MediaFileFormat(path: path) else {
        throw CommandFailure(
          .usage, "--send \(path): give echo, pattern, or the name of a .y4m, .h264 or .wav file")
      }
      try carry(format.kind, path, &named)
      files[format.kind] = path
      try check(path, format, codec)
    }
    if options.send.isEmpty { other = fallback }
    devices = try DevicePlan(sent, options.camera, plays: plays)
    guard framesPerSecond == nil || clip != nil else {
      throw CommandFailure(
        .usage, "--frame-rate is for a .h264 file, and --send names none: leave it out")
    }
    guard layers.isEmpty || clip == nil else {
      throw CommandFailure(
        .usage, "a .h264 file is sent as it is, in one layer: leave out --simulcast")
    }
  }

  /// Refuses a second thing of a kind.
  private func carry(
    _ kind: MediaKind, _ name: String, _ named: inout [MediaKind: String]
  ) throws(CommandFailure) {
    guard let earlier = named.updateValue(name, forKey: kind) else { return }
    let media = kind == .audio ? "audio" : "video"
    throw CommandFailure(
      .usage, "--send \(earlier) and --send \(name) both carry \(media): give one of them")
  }

  /// Refuses a file that holds no media before anything is recorded.
  private mutating func check(
    _ path: String, _ format: MediaFileFormat, _ codec: VideoCodecChoice?
  ) throws {
    do {
      switch format {
      case .wav: _ = try WAVFileSource(path: path, loops: false)
      case .y4m: _ = try Y4MFileSource(path: path, loops: false)
      case .h264:
        clip = try H264Clip(
          path, H264FileSource(path: path, loops: false, framesPerSecond: framesPerSecond))
      }
    } catch let error as MediaFileError {
      guard error.cause == .missing else {
        throw CommandFailure(error.status, "--send \(error.description)")
      }
      throw CommandFailure(
        .noSuchFile, "--send \(path): there is no such file; give echo, pattern or another file")
    }
    guard format == .h264, let codec, codec.name != .h264 else { return }
    throw CommandFailure(
      .usage, "--send \(path) is sent as it is, in H.264: leave out --video-codec \(codec)")
  }

  /// What a track of a kind sends: the file or the device that carries it, or what was given for
  /// the rest; nil for nothing: who sends only a microphone sends no test pattern beside it.
  func source(for kind: MediaKind) -> MediaSource? {
    if files[kind] != nil || device(for: kind) != nil { return .application }
    if other == nil, !devices.sends.isEmpty { return nil }
    return other == .echo ? .echo : SendChoice.generated(kind)
  }

  /// The device that carries a kind.
  func device(for kind: MediaKind) -> SendDevice? { devices.sends.carrying(kind) }

  /// The file that feeds a kind.
  func file(for kind: MediaKind) -> String? { files[kind] }
}

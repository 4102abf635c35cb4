import ArgumentParser
import CallRecording
import FoundationEssentials
import Live
import Media
import MediaFiles
import RoomClient
import Wire

/// A source to publish in a room.
enum PublishChoice: ExpressibleByArgument, Equatable {
  /// Publish a tone and a test pattern.
  case pattern
  /// Publish a Y4M, IVF, H.264 or WAV file in a loop.
  case file(String)
  /// Publish a local device.
  case device(SendDevice)

  static let wanted =
    "it is pattern, microphone, camera, screen, or the name of a .y4m, .ivf, .h264 or .wav file; "
    + "separate several with commas"

  init?(argument: String) {
    if argument == "pattern" {
      self = .pattern
      return
    }
    if let device = SendDevice(rawValue: argument) {
      self = .device(device)
      return
    }
    let isMedia =
      MediaFileFormat(path: argument) != nil || argument.lowercased().hasSuffix(".ivf")
    guard isMedia, let path = try? Taking.path(argument) else { return nil }
    self = .file(path)
  }
}

/// Several sources in one word, such as `microphone,camera`.
struct PublishList: ExpressibleByArgument, Equatable {
  let choices: [PublishChoice]

  init?(argument: String) {
    // File names may contain commas.
    if FileManager.default.fileExists(atPath: argument),
      let one = PublishChoice(argument: argument)
    {
      choices = [one]
      return
    }
    var found: [PublishChoice] = []
    for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
      guard let choice = PublishChoice(argument: String(part)) else { return nil }
      found.append(choice)
    }
    choices = found
  }
}

/// The remote videos to receive.
enum SubscribeChoice: String, ExpressibleByArgument, CaseIterable {
  case all, none
}

/// Options that all commands for recording rooms share.
struct RoomOptions: ParsableArguments {
  @Option(help: "The display name.", transform: Taking.text())
  var name = "retake"

  @Option(
    name: [.customLong("publish"), .customLong("send")],
    help: """
      What to send: pattern, microphone, camera, screen, or a .y4m, .ivf, .h264 or .wav file; may \
      be given twice, for video and for audio, or as in microphone,camera. Without it nothing is \
      published.
      """,
    completion: .file(extensions: ["y4m", "ivf", "h264", "wav"]),
    transform: Taking.value(PublishChoice.wanted))
  var published: [PublishList] = []

  @OptionGroup var camera: CameraOptions
  @OptionGroup var playing: PlayOption

  @Option(help: "Which remote videos to receive: all, or none. Audio is always received.")
  var subscribe = SubscribeChoice.all

  @Option(
    help: "The size of the test pattern. Default: 640x360.",
    transform: Taking.value(VideoSize.wanted))
  var size = VideoSize(width: 640, height: 360)

  @Option(
    name: [.customLong("frame-rate"), .customLong("rate")],
    help: "The frame rate of the test pattern. Default: 30.", transform: Taking.whole(1...120))
  var rate = 30

  @Flag(help: "Publish video in three layers; the server sends each receiver one of them.")
  var simulcast = false

  @Option(
    help: "The maximum number of received videos. Default: 20.", transform: Taking.whole(1...1_000))
  var receivers = 20

  @Flag(
    help: """
      Rejoin when the room ends before this participant leaves: in the same take, or, if --out is \
      a folder, in a new take for each session.
      """)
  var reconnect = false

  @Flag(
    help: """
      Read commands from standard input, one a line: mute audio, unmute audio, mute video, unmute \
      video, publish, unpublish, message TEXT, restart-ice, network-changed, \
      share [DISPLAY], unshare, levels, profile low|mid|high, leave.
      """)
  var commands = false

  /// The sources named by all uses of the option, in order.
  var publish: [PublishChoice] { published.flatMap(\.choices) }

  private var sent: Set<SendDevice> {
    Set(publish.compactMap { if case .device(let device) = $0 { device } else { nil } })
  }

  func validate() throws {
    let files = publish.compactMap { if case .file(let path) = $0 { path } else { nil } }
    let waves = files.filter { $0.lowercased().hasSuffix(".wav") }
    let devices = sent
    guard waves.count + (devices.contains(.microphone) ? 1 : 0) < 2,
      files.count - waves.count + devices.filter({ $0.kind == .video }).count < 2
    else {
      throw ValidationError("--publish accepts at most one video source and one audio source.")
    }
  }

  func devicePlan() throws -> DevicePlan { try DevicePlan(sent, camera, plays: playing.play) }

  /// Local media, with the file or microphone that supplies its audio.
  typealias Own = (media: LocalMedia, file: AudioFile?, microphone: AudioSource?)

  /// Returns the local media; nil if nothing is published.
  func media(takesVideo: Bool, _ devices: DevicePlan) throws -> Own? {
    guard !publish.isEmpty else { return nil }
    if !devices.sends.isEmpty { return try media(takesVideo: takesVideo, of: devices) }
    let files = publish.compactMap { if case .file(let path) = $0 { path } else { nil } }
    let wav = files.first { $0.lowercased().hasSuffix(".wav") }
    let video = files.first { !$0.lowercased().hasSuffix(".wav") }
    if let video, !takesVideo {
      throw CommandFailure(
        .usage, "--publish \(video): the room accepts only audio; give pattern, or a .wav file")
    }
    do {
      let audio = wav == nil ? AudioSource(.tone(hertz: 440, pauseSeconds: 4)) : AudioSource()
      let file = try wav.map { try AudioFile(path: $0, to: audio) }
      // A file is published alone, unless the pattern is requested as well.
      let hasPattern = publish.contains(.pattern)
      var options = LocalMediaOptions()
      options.videoLayers = simulcast ? ["l", "m", "h"] : nil
      guard let video else {
        let pattern =
          hasPattern && takesVideo
          ? VideoSource(.pattern(width: size.width, height: size.height, framesPerSecond: rate))
          : nil
        return (LocalMedia(video: pattern, audio: audio, options: options), file, nil)
      }
      (options.source, options.fileName) = (.file, video)
      options.hasAudio = hasPattern || wav != nil
      let capturer = try FileVideoCapturer(path: video)
      return (try LocalMedia(options: options, capturer: capturer, audio: audio), file, nil)
    } catch let error as MediaFileError {
      throw CommandFailure(error.status, "--publish \(error.description)")
    } catch let error as RoomError {
      throw CommandFailure(.inputOutput, "--publish: \(error.message)")
    }
  }

  /// Returns local media if at least one source is a device.
  private func media(takesVideo: Bool, of devices: DevicePlan) throws -> Own {
    if !takesVideo, let device = devices.sends.carrying(.video) {
      throw CommandFailure(
        .usage, "--send \(device.rawValue): the room accepts only audio; give microphone")
    }
    let files = publish.compactMap { if case .file(let path) = $0 { path } else { nil } }
    let wav = files.first { $0.lowercased().hasSuffix(".wav") }
    let video = files.first { !$0.lowercased().hasSuffix(".wav") }
    let hasPattern = publish.contains(.pattern)
    do {
      let microphone = devices.sends.contains(.microphone) ? AudioSource() : nil
      var audio = microphone ?? (wav == nil ? nil : AudioSource())
      if audio == nil, hasPattern { audio = AudioSource(.tone(hertz: 440, pauseSeconds: 4)) }
      var file: AudioFile?
      if let wav, let audio { file = try AudioFile(path: wav, to: audio) }
      var options = LocalMediaOptions()
      options.videoLayers = simulcast ? ["l", "m", "h"] : nil
      options.hasAudio = audio != nil
      var capturer: (any VideoCapturer)? = devices.capturer
      if let video {
        (options.source, options.fileName) = (.file, video)
        capturer = try FileVideoCapturer(path: video)
      }
      guard let capturer else {
        let pattern =
          hasPattern && takesVideo
          ? VideoSource(.pattern(width: size.width, height: size.height, framesPerSecond: rate))
          : nil
        return (LocalMedia(video: pattern, audio: audio, options: options), file, microphone)
      }
      let made = try LocalMedia(options: options, capturer: capturer, audio: audio)
      return (made, file, microphone)
    } catch let error as MediaFileError {
      throw CommandFailure(error.status, "--send \(error.description)")
    } catch let error as RoomError {
      throw CommandFailure(.inputOutput, "--send: \(error.message)")
    }
  }
}

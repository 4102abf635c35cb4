import ArgumentParser
import Foundation
import Live
import Media
import MediaFiles
import RoomClient

/// What is published in a room.
enum PublishChoice: ExpressibleByArgument, Equatable {
  /// A tone and a test pattern.
  case pattern
  /// A Y4M, IVF, H.264 or WAV file, looped.
  case file(String)

  static let wanted =
    "what is published is pattern, or the name of a .y4m, .ivf, .h264 or .wav file"

  init?(argument: String) {
    if argument == "pattern" {
      self = .pattern
      return
    }
    let isMedia =
      MediaFileFormat(path: argument) != nil || argument.lowercased().hasSuffix(".ivf")
    guard isMedia, let path = try? Taking.path(argument) else { return nil }
    self = .file(path)
  }
}

/// Which videos of others are received.
enum SubscribeChoice: String, ExpressibleByArgument, CaseIterable {
  case all, none
}

/// What every way to record a room takes.
struct RoomOptions: ParsableArguments {
  @Option(help: "The name others see.", transform: Taking.text())
  var name = "retake"

  @Option(
    help: """
      What to publish: pattern, or a .y4m, .ivf, .h264 or .wav file; may be given twice, for \
      video and for audio. Without it nothing is published.
      """,
    completion: .file(extensions: ["y4m", "ivf", "h264", "wav"]),
    transform: Taking.value(PublishChoice.wanted))
  var publish: [PublishChoice] = []

  @Option(help: "Which videos of others to receive: all, or none. Audio always comes.")
  var subscribe = SubscribeChoice.all

  @Option(
    help: "The size of the test pattern. Default: 640x360.",
    transform: Taking.value(VideoSize.wanted))
  var size = VideoSize(width: 640, height: 360)

  @Option(
    name: [.customLong("frame-rate"), .customLong("rate")],
    help: "The frame rate of the test pattern. Default: 30.", transform: Taking.whole(1...120))
  var rate = 30

  @Flag(help: "Publish video in three layers, of which the server gives each receiver one.")
  var simulcast = false

  @Option(
    help: "How many videos are received at most. Default: 20.", transform: Taking.whole(1...1_000))
  var receivers = 20

  @Flag(
    help: """
      Join again when the room has ended without this side leaving: in the same take, or with a \
      folder for --out in a take for each session.
      """)
  var reconnect = false

  @Flag(
    help: """
      Read commands from standard input, one a line: mute audio, unmute audio, mute video, unmute \
      video, publish, unpublish, message TEXT, restart-ice, network-changed, \
      share [DISPLAY], unshare, levels, profile low|mid|high, leave.
      """)
  var commands = false

  func validate() throws {
    let files = publish.compactMap { if case .file(let path) = $0 { path } else { nil } }
    let waves = files.filter { $0.lowercased().hasSuffix(".wav") }
    guard waves.count < 2, files.count - waves.count < 2 else {
      throw ValidationError("--publish takes one file of video and one of audio at most.")
    }
  }

  /// Own media, and the file that its audio comes from.
  typealias Own = (media: LocalMedia, file: AudioFile?)

  /// The own media; nil when nothing is published.
  func media(takesVideo: Bool) throws -> Own? {
    guard !publish.isEmpty else { return nil }
    let files = publish.compactMap { if case .file(let path) = $0 { path } else { nil } }
    let wav = files.first { $0.lowercased().hasSuffix(".wav") }
    let video = files.first { !$0.lowercased().hasSuffix(".wav") }
    if let video, !takesVideo {
      throw CommandFailure(
        .usage, "--publish \(video): the room takes audio alone; give pattern, or a .wav file")
    }
    do {
      let audio = wav == nil ? AudioSource(.tone(hertz: 440, pauseSeconds: 4)) : AudioSource()
      let file = try wav.map { try AudioFile(path: $0, to: audio) }
      // A file alone is all that is published, unless the pattern is too.
      let hasPattern = publish.contains(.pattern)
      var options = LocalMediaOptions()
      options.videoLayers = simulcast ? ["l", "m", "h"] : nil
      guard let video else {
        let pattern =
          hasPattern && takesVideo
          ? VideoSource(.pattern(width: size.width, height: size.height, framesPerSecond: rate))
          : nil
        return (LocalMedia(video: pattern, audio: audio, options: options), file)
      }
      (options.source, options.fileName) = (.file, video)
      options.hasAudio = hasPattern || wav != nil
      let capturer = try FileVideoCapturer(path: video)
      return (try LocalMedia(options: options, capturer: capturer, audio: audio), file)
    } catch let error as MediaFileError {
      throw CommandFailure(error.status, "--publish \(error.description)")
    } catch let error as RoomError {
      throw CommandFailure(.inputOutput, "--publish: \(error.message)")
    }
  }
}

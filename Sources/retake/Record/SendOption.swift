import ArgumentParser
import Foundation
import JSEP
import Live
import Media
import MediaFiles
import Peer
import Wire

/// One of the things that a recorded peer sends.
enum SendChoice: ExpressibleByArgument, Equatable {
  /// What it receives.
  case echo
  /// A tone and a test pattern.
  case pattern
  /// A Y4M, H.264 or WAV file, looped.
  case file(String)

  init?(argument: String) {
    switch argument {
    case "": return nil
    case "echo": self = .echo
    case "pattern": self = .pattern
    default: self = .file(argument)
    }
  }

  /// What the choice means for a kind of track, or nil when a file carries the other kind.
  func source(for kind: MediaKind) -> MediaSource? {
    switch self {
    case .echo: .echo
    case .pattern: SendChoice.generated(kind)
    case .file(let path): MediaFileFormat(path: path)?.kind == kind ? .application : nil
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

/// What a recorded peer sends: `--send echo|pattern|FILE`, once or once per kind.
struct SendOptions: ParsableArguments {
  @Option(
    help: """
      What to send: echo, pattern, or a .y4m, .h264 or .wav file; may be given twice. H.264 is \
      sent as it is.
      """)
  var send: [SendChoice] = []

  @Option(
    name: .customLong("frame-rate"),
    help: "Pictures per second of a .h264 file. Default: what the file tells, or 30.")
  var frameRate: Double?

  func validate() throws {
    if let frameRate, !(0.1...1000).contains(frameRate) {
      throw ValidationError("--frame-rate takes 0.1 to 1000 pictures per second, not \(frameRate).")
    }
  }
}

/// The choices of one command line together.
struct SendPlan {
  private let choices: [SendChoice]
  /// The pace of a file of H.264, when it was given.
  let framesPerSecond: Double?
  /// The variants of H.264 that a file of it can be sent as, the best one first; nil without one.
  private(set) var h264: [RTPCodec]?
  /// What is said over the own data channel; nil for an echo.
  let messages: Conversation?

  /// Sends one thing that is no file.
  init(_ choice: SendChoice) {
    choices = [choice]
    framesPerSecond = nil
    messages = nil
  }

  init(
    _ options: SendOptions, default fallback: SendChoice, preferring codec: VideoCodecChoice?,
    messages: Conversation? = nil
  ) throws {
    self.messages = messages
    choices = options.send.isEmpty ? [fallback] : options.send
    framesPerSecond = options.frameRate
    for case .file(let path) in choices {
      guard let format = MediaFileFormat(path: path) else {
        throw CommandFailure(
          .usage, "--send \(path): give echo, pattern, or the name of a .y4m, .h264 or .wav file")
      }
      guard FileManager.default.fileExists(atPath: path) else {
        throw CommandFailure(
          .noSuchFile, "--send \(path): there is no such file; give echo, pattern or another file")
      }
      try check(path, format, codec)
    }
  }

  /// Refuses a file that holds no media before anything is recorded.
  private mutating func check(
    _ path: String, _ format: MediaFileFormat, _ codec: VideoCodecChoice?
  ) throws {
    let profileLevelID: String?
    do throws(MediaFileError) {
      profileLevelID = try SendPlan.read(path, format)
    } catch {
      throw CommandFailure(.invalidTake, "--send \(error.description)")
    }
    guard let profileLevelID else { return }
    try offer(path, profileLevelID)
    guard let codec, codec != .h264 else { return }
    throw CommandFailure(
      .usage, "--send \(path) is sent as it is, in H.264: leave out --video-codec \(codec)")
  }

  /// Begins to read a file; gives the profile of H.264.
  private static func read(_ path: String, _ format: MediaFileFormat) throws(MediaFileError)
    -> String?
  {
    switch format {
    case .wav: _ = try WAVFileSource(path: path, loops: false)
    case .y4m: _ = try Y4MFileSource(path: path, loops: false)
    case .h264: return try H264FileSource(path: path, loops: false).profileLevelID
    }
    return nil
  }

  /// Finds what a file of H.264 can be sent as.
  private mutating func offer(_ path: String, _ profileLevelID: String) throws {
    let variants = RTPCodec.h264(carrying: profileLevelID)
    guard !variants.isEmpty else {
      throw CommandFailure(
        .invalidTake,
        "--send \(path): H.264 of the profile and level \(profileLevelID) is not known in calls;"
          + " encode it in the baseline, main or high profile")
    }
    h264 = variants
  }

  /// What a track of a kind sends; a kind that no file carries gets its generator.
  func source(for kind: MediaKind) -> MediaSource {
    for choice in choices {
      if let source = choice.source(for: kind) { return source }
    }
    return SendChoice.generated(kind)
  }

  /// The file that feeds a kind.
  func file(for kind: MediaKind) -> String? {
    for case .file(let path) in choices where MediaFileFormat(path: path)?.kind == kind {
      return path
    }
    return nil
  }
}

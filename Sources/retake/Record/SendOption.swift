import ArgumentParser
import Foundation
import Live
import Media
import Peer
import Wire

/// What a recorded peer sends: `--send echo|pattern|FILE`, once or once per kind.
enum SendChoice: ExpressibleByArgument, Equatable {
  /// What it receives.
  case echo
  /// A tone and a test pattern.
  case pattern
  /// A Y4M or WAV file, looped.
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
    case .file(let path): SendChoice.kind(ofFile: path) == kind ? .application : nil
    }
  }

  /// The generator of a kind.
  static func generated(_ kind: MediaKind) -> MediaSource {
    switch kind {
    case .audio: .tone(hertz: 440, pauseSeconds: 0)
    case .video: .pattern(width: 640, height: 360, framesPerSecond: 30)
    }
  }

  /// What a file carries, by its name; nil for an unknown one.
  static func kind(ofFile path: String) -> MediaKind? {
    switch (path as NSString).pathExtension.lowercased() {
    case "y4m": .video
    case "wav": .audio
    default: nil
    }
  }
}

/// The choices of one command line together.
struct SendPlan {
  private let choices: [SendChoice]
  /// What is said over the own data channel; nil for an echo.
  let messages: Conversation?

  init(
    _ choices: [SendChoice], default fallback: SendChoice, messages: Conversation? = nil
  ) throws {
    self.messages = messages
    self.choices = choices.isEmpty ? [fallback] : choices
    for case .file(let path) in choices {
      guard let kind = SendChoice.kind(ofFile: path) else {
        throw CommandFailure(
          .usage, "--send \(path): give echo, pattern, or the name of a .y4m or .wav file")
      }
      guard FileManager.default.fileExists(atPath: path) else {
        throw CommandFailure(
          .noSuchFile, "--send \(path): there is no such file; give echo, pattern or another file")
      }
      try SendPlan.check(path, kind)
    }
  }

  /// Refuses a file that holds no media before anything is recorded.
  private static func check(_ path: String, _ kind: MediaKind) throws {
    do throws(MediaFileError) {
      switch kind {
      case .audio: _ = try WAVFileSource(path: path, loops: false)
      case .video: _ = try Y4MFileSource(path: path, loops: false)
      }
    } catch {
      throw CommandFailure(.invalidTake, "--send \(error.description)")
    }
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
    for case .file(let path) in choices where SendChoice.kind(ofFile: path) == kind { return path }
    return nil
  }
}

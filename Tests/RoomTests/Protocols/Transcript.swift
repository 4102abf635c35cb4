import Foundation
import Testing
import Wire

@testable import Room

/// What a machine was given and what it made of it, in a room of a real Janus server (version
/// 1.1.2, as Debian has it) with real connections: one step a line.
struct Transcript: Sendable, CustomTestStringConvertible {
  struct Step: Codable, Sendable {
    /// Nanoseconds since the beginning.
    var at: Int64
    var input: SignalingInput
    var outputs: [SignalingOutput]
    var deadline: Int64?
  }

  var testDescription: String
  var configuration: SignalingConfiguration
  /// What the entropy was made of.
  var seed: [UInt8]
  var steps: [Step]

  init(_ name: String, seed: [UInt8]) throws {
    testDescription = name
    self.seed = seed
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Transcripts")
    let text = try String(contentsOf: folder.appending(path: name + ".jsonl"), encoding: .utf8)
    let lines = text.split(separator: "\n").map { Data($0.utf8) }
    let decoder = JSONDecoder()
    configuration = try decoder.decode(SignalingConfiguration.self, from: lines[0])
    steps = try lines.dropFirst().map { try decoder.decode(Step.self, from: $0) }
  }

  var machine: JanusMachine { JanusMachine(configuration, entropy: Entropy(seed: seed)) }

  /// Two in a videoroom with messages, an echo, and audio alone.
  ///
  /// The first of the two publishes, changes and takes back what it sends; the second comes later,
  /// receives, pauses, and loses its way to the server.
  static let all = Result {
    try [
      Transcript("videoroom-publisher", seed: [1]), Transcript("videoroom-subscriber", seed: [2]),
      Transcript("echotest", seed: [1]), Transcript("audiobridge", seed: [1]),
    ]
  }
}

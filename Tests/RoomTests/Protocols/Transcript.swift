import Foundation
import Testing
import Wire

@testable import Room

/// A machine's inputs and outputs in a real Janus server's room (version 1.1.2, from Debian) with
/// real connections: one step per line.
struct Transcript: Sendable, CustomTestStringConvertible {
  struct Step: Codable, Sendable {
    /// Nanoseconds since the start.
    var at: Int64
    var input: SignalingInput
    var outputs: [SignalingOutput]
    var deadline: Int64?
  }

  var testDescription: String
  var configuration: SignalingConfiguration
  /// The seed of the machine's random numbers.
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

  /// Two participants in a videoroom with messages, an echo, and audio alone.
  ///
  /// The first publishes, changes and unpublishes media; the second joins later, receives, pauses,
  /// and loses its connection to the server.
  static let all = Result {
    try [
      Transcript("videoroom-publisher", seed: [1]), Transcript("videoroom-subscriber", seed: [2]),
      Transcript("echotest", seed: [1]), Transcript("audiobridge", seed: [1]),
    ]
  }
}

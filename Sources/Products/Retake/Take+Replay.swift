import Media
import Peer
import Replay
public import Stats
public import Tape
public import Wire

/// What stands in for what when a take is replayed.
public enum ReplayMode: Hashable, Sendable {
  /// Everything executes again, and everything is compared byte for byte.
  case exact
  /// Recorded frames stand in for the codecs; all but decoded media is compared.
  case withoutCodecs
  /// What other libraries made than this machine has is taken from the recording.
  case substitute
}

/// The first place where the stack did not do again what it did in the recording.
public struct ReplayDivergence: Hashable, Sendable, CustomStringConvertible {
  /// The step.
  public var step: Int
  /// When.
  public var at: Instant
  /// The number of the peer; nil for a machine that is none.
  public var peer: UInt32?
  /// `ice`, `dtls`, `rtp`, `rtcp`, `signaling`, `media`, `stats`, `api`, `timer`, ...
  public var layer: String
  /// The output that differs, in words.
  public var what: String
  /// The field of it.
  public var field: String
  /// What the take has.
  public var recorded: String
  /// What the stack does today.
  public var replayed: String
  /// The inputs before it, latest last.
  public var previousInputs: [String]
  /// Everything, on several lines, as `retake replay` prints it.
  public var description: String
}

/// What a replay found.
public struct ReplayResult: Sendable, CustomStringConvertible {
  /// How it ended.
  public enum Outcome: Hashable, Sendable {
    /// Every output, deadline and random draw was as recorded.
    case identical
    /// The stack did something else.
    case diverged(ReplayDivergence)
    /// The file is not what was recorded, from this step on; the stack is not to blame.
    case altered(step: Int, reason: String)
  }

  /// How it ended.
  public var outcome: Outcome
  /// How many steps were replayed and equal.
  public var steps: Int
  /// The time of the last of them: how much of the session was replayed.
  public var duration: Interval
  /// How long the replay took.
  public var elapsedSeconds: Double
  /// What this machine's libraries differ in from the recorder's, which may explain a divergence.
  public var toolchainDifferences: [String]
  /// What was taken from the recording, in words.
  public var substituted: [String]
  /// All of it in words, as `retake replay` prints it.
  public var description: String

  /// Whether the stack did again what it did in the recording.
  public var isIdentical: Bool { outcome == .identical }

  init(_ report: ReplayReport) {
    outcome =
      switch report.verdict {
      case .identical: .identical
      case .diverged(let found): .diverged(ReplayDivergence(found))
      case .altered(let found): .altered(step: found.step, reason: found.description)
      }
    steps = report.steps
    duration = Interval(nanoseconds: report.durationNanoseconds)
    elapsedSeconds = report.elapsedSeconds
    toolchainDifferences = report.toolchainDifferences.map(\.summary)
    substituted = report.substituted
    description = report.description
  }
}

extension ReplayDivergence {
  init(_ found: Divergence) {
    step = found.step
    at = Instant(nanoseconds: found.atNanoseconds)
    peer = found.peer
    layer = found.layer
    what = found.what
    field = found.field
    recorded = found.recorded
    replayed = found.replayed
    previousInputs = found.previous
    description = found.description
  }
}

extension Take {
  /// Drives the whole stack through the session again and compares all that it does.
  ///
  /// - Parameters:
  ///   - mode: what stands in for what.
  ///   - end: where to end; nil at the end of the take.
  ///   - encoderFactory: the encoders that the recorded application brought; where they are not
  ///     here, the recorded frames stand in for all codecs.
  ///   - decoderFactory: the same for decoders.
  /// - Throws: `TakeError` when the take cannot be read, or lacks what has to stand in.
  public func replay(
    _ mode: ReplayMode = .exact, until end: Instant? = nil,
    encoderFactory: (any VideoEncoderFactory)? = nil,
    decoderFactory: (any VideoDecoderFactory)? = nil
  ) async throws(TakeError) -> ReplayResult {
    let path = path
    return try await computing { () throws(TakeError) in
      var options = Replayer.Options()
      options.until = end.map { .time($0) }
      options.skipsCodecs = mode == .withoutCodecs
      let toolchain = try Toolchain.current(for: path)
      options.toolchain = toolchain
      if mode == .substitute {
        let header = try TapeReader(path: path).header
        let substitution = try Substitution(asked: path, header, by: toolchain)
        options.skipsCodecs = substitution.skipsCodecs
        options.security = substitution.security
      }
      let replayer = try Replayer(
        path: path, options: options,
        codecs: { FactoryCodecs(encoderFactory, decoderFactory) },
        peer: { PeerMachine(codecs: $0) })
      return ReplayResult(try replayer.run())
    }
  }

  /// The W3C statistics of one peer.
  public struct PeerStats: Hashable, Sendable {
    /// The name of the peer.
    public var label: String
    /// What `getStats()` gives there.
    public var report: StatsReport
  }

  /// Drives the stack to an instant and asks every peer that had begun by then for its statistics.
  ///
  /// - Parameter instant: nil for the end of the take.
  /// - Throws: `TakeError` when the take cannot be read, or the replay differs before that instant.
  public func stats(at instant: Instant? = nil) async throws(TakeError) -> [PeerStats] {
    let path = path
    return try await computing { () throws(TakeError) in
      let found = try StatsReplay(
        path: path, until: instant.map { .time($0) },
        toolchain: try Toolchain.current(for: path), codecs: { LibraryCodecs() })
      guard case .identical = found.replay.verdict else {
        throw TakeError(
          path: path, place: "step \(found.replay.steps + 1)",
          reason: "the replay differs from the recording there; the table stat has what was "
            + "sampled")
      }
      return found.peers.map { PeerStats(label: $0.label, report: $0.report) }
    }
  }
}

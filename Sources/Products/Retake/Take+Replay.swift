import Export
import Media
import Peer
import Replay
public import Stats
public import Tape
public import Wire

/// Which recorded parts replace the real ones when a take is replayed.
public enum ReplayMode: Hashable, Sendable {
  /// Everything executes again, and everything is compared byte for byte.
  case exact
  /// Recorded frames replace the codecs; everything except decoded media is compared.
  case withoutCodecs
  /// Values produced by libraries that differ from this machine's come from the recording.
  case substitute
}

/// The first place where the stack behaved differently than in the recording.
public struct ReplayDivergence: Hashable, Sendable, CustomStringConvertible {
  /// The step.
  public var step: Int
  /// When.
  public var at: Instant
  /// The number of the peer; nil for a machine that is not a peer connection.
  public var peer: UInt32?
  /// `ice`, `dtls`, `rtp`, `rtcp`, `signaling`, `media`, `stats`, `api`, `timer`, ...
  public var layer: String
  /// A description of the output that differs.
  public var what: String
  /// The field of the output.
  public var field: String
  /// The value in the take.
  public var recorded: String
  /// The value in the replay.
  public var replayed: String
  /// The inputs before it, latest last.
  public var previousInputs: [String]
  /// The whole report, on several lines, as `retake replay` prints it.
  public var description: String
}

/// The result of a replay.
public struct ReplayResult: Sendable, CustomStringConvertible {
  /// How it ended.
  public enum Outcome: Hashable, Sendable {
    /// Every output, deadline and random draw was as recorded.
    case identical
    /// The stack behaved differently.
    case diverged(ReplayDivergence)
    /// The file was modified after the recording, from this step on.
    case altered(step: Int, reason: String)
  }

  /// How it ended.
  public var outcome: Outcome
  /// How many steps were replayed and matched.
  public var steps: Int
  /// The time of the last replayed step.
  public var duration: Interval
  /// How long the replay took.
  public var elapsedSeconds: Double
  /// How this machine's libraries differ from the recorder's, which may explain a divergence.
  public var toolchainDifferences: [String]
  /// A description of what was taken from the recording.
  public var substituted: [String]
  /// The result as text, as `retake replay` prints it.
  public var description: String

  /// Whether the stack behaved exactly as in the recording.
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
  /// Runs the whole stack through the session again and compares everything that it does.
  /// - Parameters:
  ///   - mode: which recorded parts replace the real ones.
  ///   - end: where to end; nil for the end of the take.
  ///   - encoderFactory: the encoders that the recorded application supplied; without them, the
  ///     recorded frames replace all codecs.
  ///   - decoderFactory: the decoders that it supplied.
  /// - Throws: `TakeError` when the take cannot be read, or lacks the recorded parts that the mode
  ///   needs.
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
    /// The result of `getStats()` at that time.
    public var report: StatsReport
  }

  /// Runs the stack up to an instant and reads the statistics of every peer that existed by then.
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

// MARK: - Export

/// Which packets an export writes.
public enum PacketForm: Hashable, Sendable {
  /// Each datagram as it was on the wire, with reconstructed IP and UDP headers.
  case onTheWire
  /// RTP and RTCP without SRTP, and SCTP without DTLS, from a replay: readable without keys.
  case inTheClear
}

/// A file that the received media of a track was written into.
public struct ExportedTrack: Hashable, Sendable {
  /// The file: `.wav`, `.y4m`, `.h264` or `.ivf`.
  public var path: String
  /// Audio or video frames.
  public var kind: MediaKind
  /// How many blocks of audio or video frames it holds.
  public var frames: Int
  /// When the first of them was played or shown.
  public var begin: Instant
}

extension Take {
  /// Writes the packets into a packet capture (pcap with nanosecond timestamps) and returns their
  /// number; the file must not exist.
  /// - Parameters:
  ///   - path: the file to write, readable only by its owner.
  ///   - form: as on the wire, or decrypted.
  ///   - peer: the number of the peer whose packets are written; nil for all. A take of both ends
  ///     of a call contains most datagrams twice.
  /// - Throws: `TakeError`, also when a replay differs; the file then ends there.
  @discardableResult
  public func exportPackets(
    to path: String, _ form: PacketForm = .onTheWire, peer: UInt32? = nil
  ) async throws(TakeError) -> Int {
    let take = self
    return try await computing { () throws(TakeError) in
      let export = TakeExport(take: take.path, peer: peer.map(Int64.init))
      switch form {
      case .onTheWire:
        return try take.exporting { () throws(ExportFailure) in try export.packets(to: path) }
      case .inTheClear:
        let result = try take.exporting { () throws(ExportFailure) in
          try export.clearPackets(to: path)
        }
        try take.check(result.report, "packets")
        return result.written
      }
    }
  }

  /// Writes what each received track displayed and played into one file per track.
  ///
  /// The take is replayed for that, and of each selected peer the frames are decoded if the take
  /// has them.
  /// - Parameters:
  ///   - folder: the output folder; created if it does not exist.
  ///   - peer: the number of the peer whose media is written; nil for all.
  ///   - framesPerSecond: the frame rate of the `.y4m` files.
  /// - Throws: `TakeError`, also when the replay differs; the files then end there.
  @discardableResult
  public func exportMedia(
    into folder: String, peer: UInt32? = nil, framesPerSecond: Int = 30
  ) async throws(TakeError) -> [ExportedTrack] {
    let take = self
    return try await computing { () throws(TakeError) in
      let result = try take.exporting { () throws(ExportFailure) in
        try TakeExport(take: take.path, peer: peer.map(Int64.init)).media(
          into: folder, framesPerSecond: max(1, framesPerSecond))
      }
      try take.check(result.report, "media")
      return result.written.map {
        ExportedTrack(path: $0.path, kind: $0.kind, frames: $0.frames, begin: $0.begin)
      }
    }
  }

  private func exporting<Value>(
    _ body: () throws(ExportFailure) -> Value
  ) throws(TakeError) -> Value {
    do throws(ExportFailure) {
      return try body()
    } catch {
      switch error {
      case .take(let error): throw error
      case .file(let failure):
        throw TakeError(path: "", place: "", reason: failure.description, kind: .failed)
      case .media, .folder, .nothing:
        throw TakeError(path: "", place: "", reason: error.description, kind: .failed)
      case .noSuchPeer: throw TakeError(path: "", place: "", reason: error.description)
      }
    }
  }

  /// Rejects a replay that did not reach its end.
  private func check(_ report: ReplayReport?, _ what: String) throws(TakeError) {
    guard let report else { return }
    guard case .identical = report.verdict else {
      throw TakeError(
        path: path, place: "step \(report.steps + 1)",
        reason: "the replay differs from the recording there, so the \(what) end")
    }
  }
}

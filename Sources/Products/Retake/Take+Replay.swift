import Export
import Media
import Peer
import Replay
public import Stats
public import Tape
public import Wire

/// How a replay runs: which recorded parts it uses instead of the real ones.
public enum ReplayMode: Hashable, Sendable {
  /// Runs everything again and compares everything byte for byte.
  case exact
  /// Replaces the codecs with recorded frames, and compares everything except decoded media.
  case withoutCodecs
  /// Uses recorded values wherever a library on this machine differs from the recording machine's.
  case substitute
}

/// The first place where the stack behaved differently from the recording.
public struct ReplayDivergence: Hashable, Sendable, CustomStringConvertible {
  /// The number of the diverging step.
  public var step: Int
  /// The step's time since the take began.
  public var at: Instant
  /// The peer's number; nil for a machine that is not a peer connection.
  public var peer: UInt32?
  /// The layer that differs: `ice`, `dtls`, `rtp`, `rtcp`, `signaling`, `media`, `stats`, `api`,
  /// `timer`, ...
  public var layer: String
  /// A description of the differing output.
  public var what: String
  /// The name of the field that differs.
  public var field: String
  /// The value in the take.
  public var recorded: String
  /// The value in this replay.
  public var replayed: String
  /// The preceding inputs, latest last.
  public var previousInputs: [String]
  /// The complete report on several lines, as `retake replay` prints it.
  public var description: String
}

/// The result of a replay: whether it differed from the recording, and where.
public struct ReplayResult: Sendable, CustomStringConvertible {
  /// How a replay ended.
  public enum Outcome: Hashable, Sendable {
    /// Every output, deadline and random draw matched the recording.
    case identical
    /// The stack behaved differently.
    case diverged(ReplayDivergence)
    /// The file was modified after recording; `step` is the first modified step.
    case altered(step: Int, reason: String)
  }

  /// How the replay ended.
  public var outcome: Outcome
  /// How many steps were replayed and matched.
  public var steps: Int
  /// The last replayed step's time since the take began.
  public var duration: Interval
  /// How long the replay took, in seconds.
  public var elapsedSeconds: Double
  /// How this machine's libraries differ from the recording machine's, which may explain a
  /// divergence.
  public var toolchainDifferences: [String]
  /// Descriptions of the values that came from the recording.
  public var substituted: [String]
  /// The result on several lines, as `retake replay` prints it.
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
  /// Runs the complete stack through the session again and compares everything it does with the
  /// recording.
  /// - Parameters:
  ///   - mode: which recorded parts replace real ones.
  ///   - end: where to end; nil for the end of the take.
  ///   - encoderFactory: the encoders that the recorded application supplied; without them,
  ///     recorded frames replace all codecs.
  ///   - decoderFactory: the decoders that the recorded application supplied.
  /// - Throws: `TakeError` if the take cannot be read or lacks the recorded parts that the mode
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

  /// One peer's W3C statistics.
  public struct PeerStats: Hashable, Sendable {
    /// The peer's name.
    public var label: String
    /// The result of `getStats()` at that time.
    public var report: StatsReport
  }

  /// Runs the stack up to an instant and reads the statistics of every peer that existed by then.
  /// - Parameter instant: nil for the end of the take.
  /// - Throws: `TakeError` if the take cannot be read, or if the replay differs before that
  ///   instant.
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

/// The form in which packets are exported.
public enum PacketForm: Hashable, Sendable {
  /// Each datagram as it was on the wire, with reconstructed IP and UDP headers.
  case onTheWire
  /// RTP and RTCP without SRTP, and SCTP without DTLS, from a replay: readable without keys.
  case inTheClear
}

/// A file with a track's received media.
public struct ExportedTrack: Hashable, Sendable {
  /// The file's path, which ends in `.wav`, `.y4m`, `.h264` or `.ivf`.
  public var path: String
  /// The kind of media in the file: audio or video frames.
  public var kind: MediaKind
  /// How many audio blocks or video frames the file holds.
  public var frames: Int
  /// When the first block or frame was played or shown.
  public var begin: Instant
}

extension Take {
  /// Writes the packets to a packet capture (pcap with nanosecond timestamps) and returns their
  /// number.
  /// - Parameters:
  ///   - path: the file to write, which must not exist; readable only by its owner.
  ///   - form: as on the wire, or decrypted.
  ///   - peer: the number of the peer to export; nil for all. A take with both ends of a call
  ///     contains most datagrams twice.
  /// - Throws: `TakeError`, also if a replay differs from the recording; the file then ends at that
  ///   point.
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

  /// Exports received media as it was shown or played: one file for each track and format.
  ///
  /// This replays the take and decodes the received frames, if the take has them.
  /// - Parameters:
  ///   - folder: the output folder; created if it does not exist.
  ///   - peer: the number of the peer to export; nil for all.
  ///   - framesPerSecond: the frame rate of the `.y4m` files.
  /// - Throws: `TakeError`, also if the replay differs from the recording; the files then end at
  ///   that point.
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

  /// Throws if a replay did not reach its end.
  private func check(_ report: ReplayReport?, _ what: String) throws(TakeError) {
    guard let report else { return }
    guard case .identical = report.verdict else {
      throw TakeError(
        path: path, place: "step \(report.steps + 1)",
        reason: "the replay differs from the recording there, so the \(what) end")
    }
  }
}

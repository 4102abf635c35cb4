import Observer
package import Wire

/// Turns the reports of another stack into rows.
///
/// It merges changes of stats into complete objects. It derives transitions from states, and
/// candidate pairs, tracks and levels from stats objects. A replay repeats this, but does not
/// execute the other stack.
package final class ReportedMachine: RecordedMachine {
  package static var machineKind: MachineKind { .reported }
  package static func decoder(_ contents: ContentSource) -> ReportedDecoder { ReportedDecoder() }

  private var peers: [UInt32: ReportedPeer] = [:]
  private var readsResults = false
  package var deadline: Instant? { nil }

  package init() {}

  /// Returns the number of an m-section's track; nil if no report or event has mentioned the track.
  package func track(of peer: UInt32, mid: String) -> UInt32? {
    peers[peer]?.track(mid: mid)
  }

  /// The type of the event that announces the track of an m-section before its first frame.
  package static let framesEvent = "encodedframes"

  /// The maximum number of connections; further connections in a file are ignored.
  package static let peersMaximum = 10_000

  package func step(
    _ input: ReportedInput, at now: Instant, into outbox: inout Outbox<ReportedOutput>
  ) {
    switch input {
    case .genesis(let genesis):
      readsResults = genesis.readsResults ?? false
      outbox.append(
        .coverage(
          what: "reported",
          reason: "a \(genesis.format): what another stack said of itself, without packets"))
    case .connection(let peer, let at, let label, let configuration):
      guard peer > 0, peers[peer] == nil, peers.count < Self.peersMaximum else { return }
      peers[peer] = ReportedPeer()
      var row = PeerRow(label: label, role: "reported")
      row.configuration = configuration
      outbox.append(.row(.peer(row), peer: peer, at: at))
    case .call(let peer, let at, let id, let name, let arguments):
      peers[peer]?.call(readsResults ? id : nil, name, arguments) {
        outbox.append(.row($0, peer: peer, at: at))
      }
    case .event(let peer, let at, let name, let detail):
      peers[peer]?.event(name, detail) { outbox.append(.row($0, peer: peer, at: at)) }
    case .stats(let peer, let at, let id, let text):
      guard let value = try? JSONValue(parsing: text, limits: ReportedLines.limits),
        let report = ReportedStats(value)
      else { return }
      peers[peer]?.sample(report, at, id) { outbox.append(.row($0, peer: peer, at: at)) }
    case .notSeen(let what, let reason):
      outbox.append(.coverage(what: what, reason: reason))
    case .reply(let peer, let at, let id, let reply, _):
      guard readsResults else { return }
      peers[peer]?.result(of: id, reply) { outbox.append(.row($0, peer: peer, at: at)) }
    case .frame, .deadline: break
    }
  }
}

/// A row derived from reports, or a gap in them.
package enum ReportedOutput: RecordedOutput {
  case row(Row, peer: UInt32, at: Instant)
  case coverage(what: String, reason: String)

  /// A row of a table that reports can fill.
  package enum Row: Sendable {
    case peer(PeerRow)
    case state(StateRow)
    case signaling(SignalingRow)
    case candidate(CandidateRow)
    case pair(CandidatePairRow)
    case track(TrackRow)
    case channel(ChannelRow)
    case stat(StatRow)
    case reply(CallReplyRow)
    case level(LevelRow)
    case speech(SpeechRow)
  }

  package var byteCount: Int {
    switch self {
    case .row(.stat(let row), _, _): row.members.utf8.count
    case .row(.signaling(let row), _, _): row.message.utf8.count
    default: 0
    }
  }

  package func write(to transcript: inout Transcript) {
    switch self {
    case .coverage(let what, let reason):
      transcript.addCoverage(from: .zero, to: transcript.at, what: what, reason: reason)
    case .row(let row, let peer, let at):
      transcript.add(of: peer, at: at) { transcript in
        switch row {
        case .peer(var row):
          row.actor = ActorNumber(number: transcript.actor)
          transcript.add(row)
        case .state(let row): transcript.add(row)
        case .signaling(let row): transcript.add(row)
        case .candidate(let row): transcript.add(row)
        case .pair(let row): transcript.add(row)
        case .track(let row): transcript.add(row)
        case .channel(let row): transcript.add(row)
        case .stat(let row): transcript.add(row)
        case .reply(let row): transcript.add(row)
        case .level(let row): transcript.add(row)
        case .speech(let row): transcript.add(row)
        }
      }
    }
  }
}

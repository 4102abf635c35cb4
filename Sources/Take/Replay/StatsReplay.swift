package import Media
import Peer
import Secure
package import Stats
package import Tape
package import Wire

/// The stats of every peer at an instant of a take, computed by running the stack up to that
/// instant.
///
/// The take has `stat` rows only where the recorder sampled, but a replay can stop anywhere. If the
/// take has media, recorded frames replace the codecs, so that long calls replay faster. Codecs'
/// processing times cannot be replayed, so they come from the last sample before the instant.
package struct StatsReplay: Sendable {
  /// The stats of a peer that had started by the instant.
  package struct PeerStats: Sendable {
    package var number: Int64
    package var label: String
    package var report: StatsReport
  }

  /// The peers, in the order in which they started.
  package private(set) var peers: [PeerStats] = []
  /// The result of the replay up to the instant.
  package let replay: ReplayReport
  /// The time of the stats: the requested time, the last step before a requested step, the step
  /// that satisfied a condition, or the take's end if that is earlier.
  package let at: Instant

  /// Replays a take up to a stop, or to the take's end if `stop` is nil, and reads the stats there.
  package init(
    path: String, until stop: Replayer.Stop?, toolchain: Toolchain?,
    codecs: @escaping () -> any CodecFactory, progress: (Instant) -> Void = { _ in }
  ) throws(TapeError) {
    var options = Replayer.Options()
    options.until = stop
    let header = try TapeReader(path: path).header
    options.skipsCodecs = header.keepsMedia
    options.security = try Substitution(
      of: path, header, by: toolchain ?? header.toolchain
    ).security
    options.toolchain = toolchain
    var probes: [ProbedPeer] = []
    let replayer = try Replayer(path: path, options: options, codecs: codecs) { codecs in
      let probe = ProbedPeer(PeerMachine(codecs: codecs))
      probes.append(probe)
      return probe
    }
    let end = try replayer.lastTime() ?? .zero
    replay = try replayer.run(progress: progress)
    switch stop {
    case .time(let wanted): at = min(wanted, end)
    case .step, .condition: at = Instant(nanoseconds: replay.durationNanoseconds)
    case nil: at = end
    }
    var asked = probes.makeIterator()
    for driven in replayer.drivenActors {
      let instant = at - driven.words.clock
      if driven.words.kind == .endpoint, let probe = asked.next() {
        peers.append(
          PeerStats(
            number: Int64(driven.words.peer ?? driven.number), label: driven.label,
            report: probe.stats(at: instant)))
      } else if let watching = driven.machine as? any PeersStatsTelling {
        peers += watching.stats(at: instant)
      }
    }
  }
}

/// A machine that observes peers and can compute what their stats would be.
protocol PeersStatsTelling: AnyObject {
  /// Returns what `getStats` would return at each observed peer.
  func stats(at now: Instant) -> [StatsReplay.PeerStats]
}

extension Driven: PeersStatsTelling where Machine == ObserverMachine {
  func stats(at now: Instant) -> [StatsReplay.PeerStats] {
    machine.stats(at: now).map {
      StatsReplay.PeerStats(number: Int64($0.peer), label: $0.label, report: $0.report)
    }
  }
}

/// A peer of a replay whose stats can be read at any time.
private final class ProbedPeer: ReplayedPeer {
  private let machine: PeerMachine
  private var codecTimes: [CodecTime]?

  init(_ machine: PeerMachine) { self.machine = machine }

  func use(_ security: any SecurityFactory) { machine.use(security) }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    if case .call(_, .getStats(_, let times)) = input { codecTimes = times }
    machine.step(input, at: now, into: &outbox)
  }

  var deadline: Instant? { machine.deadline }
  var entropyDrawn: UInt64 { machine.entropyDrawn }

  func stats(at now: Instant) -> StatsReport {
    var outbox = Outbox<PeerOutput>()
    machine.step(.call(id: .max, .getStats(codecTimes: codecTimes)), at: now, into: &outbox)
    for case .reply(_, .stats(let report)) in outbox.drain() { return report }
    return StatsReport()
  }
}

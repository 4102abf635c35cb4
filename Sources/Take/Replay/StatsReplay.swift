package import Media
import Peer
import Secure
package import Stats
package import Tape
package import Wire

/// The stats of every peer at any instant of a take, by driving the stack to it.
///
/// The rows of `stat` are as far apart as the recorder sampled; a replay can stop in between and
/// ask. The frames of the take stand in for the codecs where it keeps them, so that going to the
/// end of a long call takes little time. What only a clock can measure (the codecs' time) is that
/// of the last sample before.
package struct StatsReplay: Sendable {
  /// A peer that had begun by then.
  package struct PeerStats: Sendable {
    package var number: Int64
    package var label: String
    package var report: StatsReport
  }

  /// The peers in the order in which they began.
  package private(set) var peers: [PeerStats] = []
  /// What the replay up to there found.
  package let replay: ReplayReport
  /// The instant of the reports: the one asked for, that of the last step before the one asked
  /// for, or the end of the take when that is earlier.
  package let at: Instant

  /// Replays a take to where it is told, or to its end, and reads the stats there.
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

/// A machine that sees peers of others, and can be asked for what their stats must be.
protocol PeersStatsTelling: AnyObject {
  /// What getStats would give at each of them.
  func stats(at now: Instant) -> [StatsReplay.PeerStats]
}

extension Driven: PeersStatsTelling where Machine == ObserverMachine {
  func stats(at now: Instant) -> [StatsReplay.PeerStats] {
    machine.stats(at: now).map {
      StatsReplay.PeerStats(number: Int64($0.peer), label: $0.label, report: $0.report)
    }
  }
}

/// A peer in a replay that can be asked for its stats.
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

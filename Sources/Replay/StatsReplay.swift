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
    let endpoints = replayer.drivenActors.filter { $0.words.kind == .endpoint }
    for (driven, probe) in zip(endpoints, probes) {
      peers.append(PeerStats(label: driven.label, report: probe.stats(at: at - driven.words.clock)))
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
    for case .reply(_, .stats(let report)) in outbox.take() { return report }
    return StatsReport()
  }
}

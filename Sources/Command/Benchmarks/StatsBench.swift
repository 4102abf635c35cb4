import FoundationEssentials
import Lab
import Media
import Peer
import Queries
import RetakeCommand
import Tape
import Wire

/// What stats cost: taking a sample of them, and asking a take of ten minutes about them.
struct StatsBench {
  /// A path for the take, which must not exist.
  let path: String

  /// The length of the call that is asked about, in virtual seconds.
  static let seconds: Int64 = 600
  /// How often a sample is taken and a question asked; the fastest counts.
  private static let rounds = 5
  private static let samples = 200

  /// Records the call and adds the rows; small video frames do, since no question looks at them.
  func measure(_ table: inout BenchTable) throws {
    let recorded = try RecordedVirtualCall(
      path: path, seed: 2, links: [LinkSettings(), LinkSettings()], labels: ["caller", "callee"])
    let call = recorded.call
    for peer in 0..<2 {
      call.call(
        peer,
        .addTrack(
          kind: .audio, streamIDs: ["bench"],
          source: .tone(hertz: BenchCall.hertz, pauseSeconds: 2)))
      call.call(
        peer,
        .addTrack(
          kind: .video, streamIDs: ["bench"],
          source: .pattern(width: 64, height: 36, framesPerSecond: 5)))
    }
    call.negotiate()
    recorded.run(for: .seconds(StatsBench.seconds))
    let sample = sampleSeconds(call)
    _ = try recorded.finish()
    // Once a second, so the time of one is the share of a processor.
    try table.add(
      "a sample of the stats each second", sample, floor: 1, "s", .atMost, 0.001)
    let series = try fastest { () throws(TapeError) in
      var bytes = 0
      try StatSeries.write(path: path, types: [], format: .lines) { bytes += $0.utf8.count }
    }
    try table.add("all stats of ten minutes, of 200 ms", series, floor: 0.2, "s", .atMost, 1)
    for (what, sql) in [
      ("levels of ten minutes, of 50 ms", StatsBench.levels),
      ("speakers of ten minutes, of 50 ms", StatsBench.speakers),
    ] {
      let length = try fastest { () throws(TapeError) in
        try SQLConsole.run(path: path, sql: sql, format: .csv) { _ in }
      }
      try table.add(what, length, floor: 0.05, "s", .atMost, 1)
    }
  }

  private static let levels =
    "SELECT track, direction, at_ns / 60000000000 AS minute, avg(dbov), max(percent) "
    + "FROM audio_level WHERE peer = 1 GROUP BY 1, 2, 3"
  private static let speakers = "SELECT participant, from_ns, seconds FROM speaker WHERE peer = 1"

  /// The time that one getStats takes with both streams both ways.
  private func sampleSeconds(_ call: VirtualCall) -> Double {
    var best = Double.infinity
    for _ in 0..<StatsBench.rounds {
      let watch = Stopwatch()
      for _ in 0..<StatsBench.samples { call.call(0, .getStats()) }
      best = min(best, watch.elapsed.wall / Double(StatsBench.samples))
    }
    return best
  }

  private func fastest(_ body: () throws(TapeError) -> Void) throws(TapeError) -> Double {
    var best = Double.infinity
    for _ in 0..<StatsBench.rounds {
      let watch = Stopwatch()
      try body()
      best = min(best, watch.elapsed.wall)
    }
    return best
  }
}

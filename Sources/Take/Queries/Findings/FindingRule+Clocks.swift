import Tape
import Wire

// Rules about clocks: those of media, and those of machines.

extension FindingRule {
  /// A microphone's clock against this side's: its samples come faster or slower than they are
  /// played.
  ///
  /// Receivers stretch audio for it, up to some 200 ppm without anybody noticing.
  static let clockDrift = FindingRule(
    id: "clock-drift", severity: .low, title: "Media clock that drifts",
    thresholds: [
      Threshold("least_ppm", 100, "ppm", "crystals stay below; own choice"),
      Threshold("medium_ppm", 500, "ppm", "own choice"),
      Threshold("least_seconds", 8, "s", "of packets; own choice"),
      Threshold("least_ms", 3, "ms", "of drift in all, and four times what is off its line"),
    ],
    silentUnder: ["standing-queue", "path-became-longer", "high-jitter"],
    sql: """
      SELECT peer, direction, ssrc, min(at_ns) AS first_ns, max(at_ns) AS last_ns,
        min(rtp_time) AS first_time, max(rtp_time) AS last_time
      FROM packet WHERE protocol = 'rtp' AND direction = 'in' GROUP BY peer, ssrc
      """,
    detector: findDrift)

  private static func findDrift(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for (place, stream) in facts.streams.enumerated()
    where stream.role == .media && stream.kind == "audio" {
      // A sender's own clock shows in what it sends, too; an observer has both ends of each packet.
      guard stream.direction == .inbound || facts.peer(stream.peer)?.isObserved != true else {
        continue
      }
      let all = facts.network.timings[place].seconds.filter { $0.packets >= 5 }
      guard let part = longestPart(all), part.count >= Int(saturating: limits["least_seconds"]),
        let first = part.first, let last = part.last
      else { continue }
      let line = drift(part)
      let parts = line.slope  // Microseconds each second are parts of a million.
      let total = abs(parts) * Double(last.second - first.second) / 1000
      guard abs(parts) >= limits["least_ppm"], total >= limits["least_ms"],
        line.off * 4 <= total * 1000
      else { continue }
      found.append(
        Detection(
          "clock-drift", peer: stream.peer, from: first.second *| 1_000_000_000,
          to: min(stream.last, (last.second +| 1) *| 1_000_000_000),
          "its samples \(stream.direction == .inbound ? "came" : "were captured") "
            + "\(Int64(saturating: abs(parts))) ppm too "
            + "\(parts > 0 ? "slowly" : "fast"): \(rounded(total)) ms in "
            + "\(last.second - first.second) s",
          ssrc: stream.ssrc, track: stream.track, direction: stream.direction, kind: stream.kind,
          impact: FindingImpact(delay: total),
          severity: abs(parts) >= limits["medium_ppm"] ? .medium : .low))
    }
    return found
  }

  private static func longestPart(_ seconds: [StreamTiming.Second]) -> [StreamTiming.Second]? {
    var parts: [[StreamTiming.Second]] = []
    for second in seconds {
      if parts.last?.last?.part == second.part {
        parts[parts.count - 1].append(second)
      } else {
        parts.append([second])
      }
    }
    return parts.max { $0.count < $1.count }
  }

  /// The slope between the middles of the first and the last third, and how far off that line nine
  /// in ten of the seconds are.
  private static func drift(_ part: [StreamTiming.Second]) -> (slope: Double, off: Double) {
    let third = max(1, part.count / 3)
    func middle(_ some: ArraySlice<StreamTiming.Second>) -> (at: Double, delay: Double) {
      let delays = some.map(\.least).sorted()
      let times = some.map(\.second).sorted()
      return (Double(times[times.count / 2]), Double(delays[delays.count / 2]))
    }
    let (begin, end) = (middle(part.prefix(third)), middle(part.suffix(third)))
    guard end.at > begin.at else { return (0, 0) }
    let slope = (end.delay - begin.delay) / (end.at - begin.at)
    let off = part.map {
      abs(Double($0.least) - begin.delay - slope * (Double($0.second) - begin.at))
    }.sorted()
    return (slope, off[off.count *| 9 / 10])
  }

  /// Chromium's event log viewer has ten seconds; no queue and no pause explains three.
  static let mediaClockJump = FindingRule(
    id: "media-clock-jump", severity: .medium, title: "Timestamps that jump",
    thresholds: [
      Threshold("least_s", 1, "s", "back, or three ahead of time; own choice")
    ],
    sql: """
      SELECT peer, direction, ssrc, min(rtp_time) AS least, max(rtp_time) AS most FROM packet
      WHERE protocol = 'rtp' AND direction = 'in' GROUP BY peer, ssrc
      """,
    detector: findMediaJumps)

  private static func findMediaJumps(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for (place, stream) in facts.streams.enumerated()
    where stream.direction == .inbound && stream.role == .media {
      for jump in facts.network.timings[place].jumps.prefix(20)
      where Double(abs(jump.length)) / 1e9 >= limits["least_s"] {
        let seconds = Double(abs(jump.length)) / 1e9
        found.append(
          Detection(
            "media-clock-jump", peer: stream.peer, from: jump.at, to: jump.at,
            "the timestamps of packets that follow each other went \(rounded(seconds)) s "
              + (jump.length < 0 ? "back" : "farther than time did"),
            ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: stream.kind))
      }
    }
    return found
  }

  /// rtcstats-features' `clockSkew`: a machine that slept, or whose clock was set.
  static let wallClockJump = FindingRule(
    id: "wall-clock-jump", severity: .low, title: "Wall clock of the other side set",
    scope: .connection,
    thresholds: [
      Threshold("least_ms", 1_000, "ms", "own choice; rtcstats-features gives the value alone")
    ],
    sql: """
      SELECT peer, at_ns, ssrc, fields ->> '$.unix_us' AS unix_us FROM rtcp
      WHERE type = 'sr' AND direction = 'in' ORDER BY row
      """,
    detector: findWallClockJumps)

  private static func findWallClockJumps(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    var former: [[Int64]: CallFacts.SenderReport] = [:]
    var told: [Int64: Int64] = [:]
    for report in facts.senderReports where report.direction == .inbound {
      let name = [report.peer, report.ssrc]
      defer { former[name] = report }
      guard let last = former[name] else { continue }
      let passed = (report.at -| last.at) / 1000
      let jump = report.unixMicroseconds &- last.unixMicroseconds &- passed
      // Each source says the same of one clock.
      guard Double(abs(jump)) / 1000 >= limits["least_ms"],
        report.at -| (told[report.peer] ?? .min / 2) > 10_000_000_000
      else { continue }
      told[report.peer] = report.at
      found.append(
        Detection(
          "wall-clock-jump", peer: report.peer, from: last.at, to: report.at,
          "its sender reports went \(rounded(Double(abs(jump)) / 1e6)) s "
            + "\(jump < 0 ? "back" : "ahead") within \(rounded(Double(passed) / 1e6)) s",
          direction: .inbound))
    }
    return found
  }
}

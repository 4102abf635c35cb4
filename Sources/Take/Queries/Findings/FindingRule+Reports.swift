import Tape
import Wire

// Rules about RTCP: missing reports, and reports that no longer change.

extension FindingRule {
  /// Finds periods without RTCP while media arrived.
  ///
  /// Chromium's event log viewer requires three seconds; audio-only senders report only every five,
  /// so this rule requires several report intervals.
  static let reportsMissing = FindingRule(
    id: "rtcp-silence", severity: .low, title: "No RTCP while media arrived", scope: .flow,
    thresholds: [
      Threshold("least_ms", 3_000, "ms", "Chromium's event log viewer"),
      Threshold("times", 4, "", "and as many times the usual interval; our choice"),
      Threshold("never_ms", 12_000, "ms", "of media without any report; our choice"),
      Threshold("least_packets", 50, "packets", "of media in that time; our choice"),
    ],
    causes: ["path-dead"], silentUnder: ["path-dead"],
    sql: """
      SELECT peer, at_ns - gap_ns AS from_ns, at_ns AS to_ns, gap_ns / 1000000 AS gap_ms FROM (
        SELECT path_end.peer AS peer, at_ns,
          at_ns - lag(at_ns) OVER (PARTITION BY path_end.peer ORDER BY packet_store.row) AS gap_ns
        FROM packet_store JOIN path_end USING (path)
        WHERE path_end.direction = 'in' AND ssrc IS NOT NULL AND marker_type IS NULL
      ) WHERE gap_ns >= :least_ms * 1000000
      """,
    detector: findMissingReports)

  private static func findMissingReports(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      guard let live = peer.live, let way = facts.network.way(peer.number, .inbound) else {
        continue
      }
      let media = facts.streams.filter { $0.peer == peer.number && $0.direction == .inbound }
      guard let first = media.map(\.first).min(), let last = media.map(\.last).max() else {
        continue
      }
      var gaps = way.reportGaps
      var least = limits["least_ms"] * 1e6
      if way.reports == 0 {
        gaps = last > first ? [first...last] : []
        least = limits["never_ms"] * 1e6
      } else {
        if last > way.lastReport { gaps.append(way.lastReport...last) }
        let silent = gaps.reduce(0) { $0 +| $1.upperBound -| $1.lowerBound }
        let usual =
          Double(max(0, way.lastReport -| way.firstReport -| silent))
          / Double(max(1, way.reports -| 1))
        // With few reports, at least 7.5 s must pass: they may be sent only every five seconds.
        let interval = max(usual, way.reports < 10 ? 5e9 / limits["times"] * 1.5 : 0)
        least = max(least, interval * limits["times"])
      }
      for gap in gaps where Double(gap.upperBound -| gap.lowerBound) >= least {
        guard gap.overlaps(live) else { continue }
        let packets = self.media(to: peer.number, gap.lowerBound, gap.upperBound, facts)
        guard Double(packets) >= limits["least_packets"] else { continue }
        let seconds = Double(gap.upperBound -| gap.lowerBound) / 1e9
        found.append(
          Detection(
            "rtcp-silence", peer: peer.number, from: gap.lowerBound, to: gap.upperBound,
            "no RTCP arrived for \(rounded(seconds)) s while \(packets) media packets did",
            direction: .inbound, impact: FindingImpact(count: packets),
            severity: way.reports == 0 ? .info : .medium))
      }
    }
    return found + findReportsNotArriving(facts, limits)
  }

  /// Finds streams that are sent but do not arrive, according to the remote peer's reports.
  static let sentNotArriving = FindingRule(
    id: "sent-not-arriving", severity: .high, title: "Sent but not arriving", scope: .flow,
    thresholds: [
      Threshold("least_ms", 2_000, "ms", "of reports that stand still; as `one-way-media`"),
      Threshold("least_packets", 20, "packets", "sent meanwhile; our choice"),
    ],
    causes: ["path-dead", "section-rejected", "direction-refused"], silentUnder: ["path-dead"],
    sql: """
      SELECT rtcp.peer, rtcp.at_ns, each.value ->> '$.ssrc' AS ssrc,
        each.value ->> '$.highest' AS highest
      FROM rtcp, json_each(rtcp.fields, '$.blocks') AS each
      WHERE rtcp.type IN ('sr', 'rr') AND rtcp.direction = 'in' ORDER BY rtcp.row
      """,
    detector: findNotArriving)

  private static func findNotArriving(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let least = Int64(saturating: limits["least_ms"]) *| 1_000_000
    var found: [Detection] = []
    for stream in facts.streams where stream.direction == .outbound && stream.role == .media {
      let reports = facts.reports(on: stream)
      for run in standing(reports, of: stream, facts) where run.to -| run.from >= least {
        let sent = facts.sum(of: stream, from: run.from, to: run.to).packets
        guard Double(sent) >= limits["least_packets"] else { continue }
        let seconds = Double(run.to -| run.from) / 1e9
        found.append(
          Detection(
            "sent-not-arriving", peer: stream.peer, from: run.from, to: run.to,
            "\(sent) packets were sent in \(rounded(seconds)) s, and \(run.count) reports of the "
              + "remote peer count none of them",
            ssrc: stream.ssrc, track: stream.track, direction: .outbound, kind: stream.kind,
            impact: FindingImpact(withoutMedia: seconds, share: 1, count: Int64(sent))))
      }
    }
    return found
  }

  /// Returns the periods in which the remote peer reported nothing new about a stream: its block is
  /// unchanged or, as for a silent source (RFC 3550 section 6.4), left out.
  static func standing(
    _ reports: [CallFacts.Report], of stream: CallFacts.Stream, _ facts: CallFacts
  ) -> [(from: Int64, to: Int64, count: Int)] {
    var times: [(from: Int64, to: Int64, count: Int)] = []
    for run in reports.runs(where: { $0.highest == $1.highest }) where run.count > 1 {
      times.append((run[0].at, run[run.count - 1].at, run.count))
    }
    times += leftOut(reports, of: stream, facts)
    // If the peer never reported on the stream, it may send no report blocks at all.
    guard let last = reports.last?.at else { return times }
    let later = (facts.reportTimes[stream.peer] ?? []).filter { $0 > last && $0 <= stream.last }
    // Each source may have its own report interval, of five seconds or more.
    let usual =
      reports.count > 1
      ? (last -| reports[0].at) / Int64(reports.count - 1)
      : stream.kind == "video" ? 1_200_000_000 : 5_000_000_000
    if later.count > 1, later[later.count - 1] -| last >= usual *| 5 / 2 {
      times.append((last, later[later.count - 1], later.count))
    }
    return times
  }

  /// Returns the periods between two blocks on a stream in which several reports omitted the stream
  /// and at least 70 % of its packets were lost.
  private static func leftOut(
    _ reports: [CallFacts.Report], of stream: CallFacts.Stream, _ facts: CallFacts
  ) -> [(from: Int64, to: Int64, count: Int)] {
    let times = facts.reportTimes[stream.peer] ?? []
    let pauses = zip(reports, reports.dropFirst()).map { $1.at &- $0.at }.sorted()
    guard !pauses.isEmpty else { return [] }
    let usual = pauses[pauses.count / 2]
    var found: [(from: Int64, to: Int64, count: Int)] = []
    for (before, after) in zip(reports, reports.dropFirst())
    where after.at &- before.at >= usual *| 5 / 2 {
      let without = times.filter { $0 > before.at && $0 < after.at }
      let (lost, expected) = (after.lost &- before.lost, after.highest &- before.highest)
      guard without.count >= 2, expected > 0, lost *| 10 >= expected *| 7, let last = without.last
      else { continue }
      found.append((before.at, last, without.count))
    }
    return found
  }
}

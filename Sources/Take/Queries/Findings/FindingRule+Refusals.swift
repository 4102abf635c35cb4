import Tape
import Wire

// The rule about packets that arrived but were refused by SRTP.

extension FindingRule {
  /// Finds received packets that SRTP refused because they were altered, protected with another
  /// key, replayed or too early.
  ///
  /// Refusals are recorded only when their number reaches a power of two. If the take has
  /// statistics, the exact number is the excess of `packetsLost` over the loss on the wire.
  static let srtpRefused = FindingRule(
    id: "srtp-refused", severity: .medium, title: "Packets rejected by SRTP", scope: .flow,
    thresholds: [
      Threshold("least_rows", 4, "", "8 packets and more"),
      Threshold("early_rows", 7, "", "64 and more before the keys were known"),
    ],
    causes: ["duplicates", "sequence-restart"],
    sql: """
      SELECT peer, at_ns, detail ->> '$.reason' AS reason FROM event
      WHERE type = 'refused' AND detail ->> '$.layer' = 'srtp'
        AND detail ->> '$.reason' NOT LIKE 'own packet%'
      ORDER BY row LIMIT \(CallFacts.most)
      """,
    detector: findRefusals)

  private struct Refusals {
    var peer: Int64
    var reason: String
    var times: [Int64] = []

    /// Whether the packets were changed on the way or protected with another key.
    var isForged: Bool { reason.hasPrefix("authentication") }
    var isEarly: Bool { reason.hasPrefix("packet before") }
    var isReplayed: Bool { reason.contains("replay") }
  }

  private static func findRefusals(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var all: [Refusals] = []
    let rows = try connection.prepare(srtpRefused.sql)
    while try rows.step() {
      let (peer, reason) = (rows.integer(0), rows.text(2) ?? "")
      let place = all.firstIndex { $0.peer == peer && $0.reason == reason } ?? all.count
      if place == all.count { all.append(Refusals(peer: peer, reason: reason)) }
      all[place].times.append(rows.integer(1))
    }
    var found: [Detection] = []
    for one in all {
      let least = limits[one.isEarly ? "early_rows" : "least_rows"]
      guard Double(one.times.count) >= least, let first = one.times.first,
        let last = one.times.last
      else { continue }
      // Row n reports refused packet number 2^(n - 1), so n rows mean at least that many packets,
      // but fewer than twice as many.
      let fewest = Int64(1) << Int64(min(one.times.count - 1, 40))
      let counted = one.isForged ? try counted(at: one.peer, facts, connection) : nil
      let isExact = counted.map { $0.count >= fewest } ?? false
      let text =
        if isExact, let counted {
          "\(counted.count) packets that came were refused, by the statistics until "
            + "\(decimal(Double(counted.until) / 1e9)) s"
        } else {
          "\(fewest) to \(2 *| fewest -| 1) packets that came were refused, the \(fewest)th at "
            + "\(decimal(Double(last) / 1e9)) s"
        }
      found.append(
        Detection(
          "srtp-refused", peer: one.peer, from: first,
          to: isExact ? max(last, counted?.last ?? last) : last,
          "\(text): \(one.reason)"
            + (one.isForged
              ? ", so that they were changed on the way or protected with another key" : ""),
          direction: .inbound,
          impact: FindingImpact(count: isExact ? counted?.count ?? fewest : fewest),
          severity: one.isReplayed || one.isEarly ? .low : .high,
          basis: one.isForged ? .ambiguous : nil))
    }
    return found
  }

  /// Returns how many of a peer's received packets its statistics count as lost although they
  /// arrived.
  ///
  /// `until` is the time of the last sample, and `last` the time of the last sample in which the
  /// number had grown.
  private static func counted(
    at peer: Int64, _ facts: CallFacts, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> (count: Int64, last: Int64, until: Int64)? {
    let rows = try connection.prepare(
      """
      SELECT at_ns, CAST(members ->> '$.ssrc' AS BIGINT) & 4294967295,
        CAST(members ->> '$.packetsLost' AS BIGINT)
      FROM stat WHERE peer = \(peer) AND type = 'inbound-rtp'
        AND members ->> '$.packetsLost' IS NOT NULL
      ORDER BY row LIMIT \(CallFacts.most)
      """)
    var counts: [Int64: Int64] = [:]
    var found: (last: Int64, until: Int64)?
    while try rows.step() {
      let (at, ssrc, lost) = (rows.integer(0), rows.integer(1), rows.integer(2))
      guard
        let stream = facts.streams.first(where: {
          $0.peer == peer && $0.direction == .inbound && $0.ssrc == ssrc && $0.role == .media
        })
      else { continue }
      let count = lost -| Int64(facts.sum(of: stream, from: .min, to: at).lost)
      found = (count > counts[ssrc] ?? 0 ? at : found?.last ?? at, at)
      counts[ssrc] = max(count, counts[ssrc] ?? 0)
    }
    let sum = counts.values.reduce(0, +|)
    return found.map { (sum, $0.last, $0.until) }
  }
}

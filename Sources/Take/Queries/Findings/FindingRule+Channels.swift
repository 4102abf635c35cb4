import Tape
import Wire

// Rules about data channels, the estimate of the bit rate and the pacer.

extension FindingRule {
  /// DTLS 1.2 numbers its records in the clear, so that lost ones show without keys.
  ///
  /// SCTP sends what was lost again, and all that was sent after it on an ordered channel waits.
  /// With keys its sender knows by what it sends again, and by gaps in acknowledgements.
  static let dataBehindLoss = FindingRule(
    id: "data-behind-loss", severity: .medium, title: "Data channel behind lost packets",
    scope: .flow,
    thresholds: [
      Threshold("least_share", 0.02, "", "of the records; as `loss`"),
      Threshold("least_lost", 5, "", "own choice"),
    ],
    causes: ["loss", "path-dead", "standing-queue"], silentUnder: ["path-dead"],
    sql: """
      SELECT peer, at_ns, direction, size, substr(hex(bytes), 1, 26) AS record FROM packet
      WHERE protocol = 'dtls' ORDER BY row
      """,
    detector: findDataLoss)

  private static func findDataLoss(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for records in facts.network.datagrams.records where records.direction == .inbound {
      let share = Double(records.lost) / Double(max(1, records.lost +| records.count))
      guard share >= limits["least_share"], Double(records.lost) >= limits["least_lost"] else {
        continue
      }
      // The seconds in which numbers are missing.
      var former = records.lowest -| 1
      var spans: [Int64] = []
      for second in records.seconds {
        if second.highest -| former > second.count { spans.append(second.second) }
        former = second.highest
      }
      let from = max(records.first, (spans.first ?? 0) *| 1_000_000_000)
      let to = min(records.last, ((spans.last ?? 0) +| 1) *| 1_000_000_000)
      found.append(
        Detection(
          "data-behind-loss", peer: records.peer, from: from, to: max(from, to),
          "\(records.lost) of \(records.lost + records.count) packets with data "
            + "(\(percentage(share)) %) were lost"
            + (try delayWords(records.peer, facts, connection)),
          direction: .inbound, kind: "data",
          impact: FindingImpact(share: share, count: records.lost)))
    }
    for way in facts.network.channels.ways {
      let isLonely = facts.peer(way.peer).map { $0.other == nil || $0.isObserved } ?? true
      // Without the numbers of DTLS 1.2 a receiver knows it by those of the chunks.
      let isCounted = facts.network.datagrams.records.contains {
        $0.peer == way.peer && $0.direction == .inbound
      }
      guard way.direction == .outbound ? isLonely : !isCounted else { continue }
      found += dataLoss(way, facts, limits)
    }
    return found
  }

  /// What acknowledgements with gaps and chunks that were sent again say.
  private static func dataLoss(
    _ way: ChannelFacts.Way, _ facts: CallFacts, _ limits: Limits
  ) -> [Detection] {
    let isSent = way.direction == .outbound
    let missing = isSent ? way.repeated : max(way.skipped, way.repeated)
    let share = Double(missing) / Double(max(1, way.chunks +| way.repeated))
    guard share >= limits["least_share"], Double(missing) >= limits["least_lost"],
      !isSent || Double(way.withGaps) >= limits["least_lost"]
    else { return [] }
    var words =
      isSent
      ? "\(way.repeated) of \(way.chunks) chunks (\(percentage(share)) %) were sent again"
      : "\(missing) of \(way.chunks) chunks (\(percentage(share)) %) came after later ones"
    if isSent {
      words += ", and \(way.withGaps) of \(way.acknowledgements) acknowledgements had gaps"
    }
    if way.longestRepeat >= 500_000_000 {
      words += "; one was sent again after \(way.longestRepeat / 1_000_000) ms"
    }
    let from = max(0, way.firstTrouble)
    return [
      Detection(
        "data-behind-loss", peer: way.peer, from: from, to: max(from, way.lastTrouble), words,
        direction: way.direction, kind: "data",
        impact: FindingImpact(share: share, count: missing))
    ]
  }

  /// How long the slowest message took, where both ends are in the take.
  private static func delayWords(
    _ peer: Int64, _ facts: CallFacts, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> String {
    guard let other = facts.peer(peer)?.other else { return "" }
    let rows = try connection.prepare(
      """
      WITH
        sent AS (
          SELECT channel, at_ns, size, row_number() OVER (PARTITION BY channel ORDER BY row) AS n
          FROM message_store WHERE peer = ?1 AND direction = 'out'
        ),
        came AS (
          SELECT channel, at_ns, size, row_number() OVER (PARTITION BY channel ORDER BY row) AS n
          FROM message_store WHERE peer = ?2 AND direction = 'in'
        )
      SELECT max(came.at_ns - sent.at_ns) / 1000000 FROM sent JOIN came USING (channel, n, size)
      """)
    rows.bind(other, at: 1)
    rows.bind(peer, at: 2)
    guard try rows.step(), !rows.isNull(0), rows.integer(0) > 0 else { return "" }
    return "; the slowest message took \(rows.integer(0)) ms"
  }

  /// VL's webrtc-issue-detector: less than audio and a little video need.
  static let estimateLow = FindingRule(
    id: "estimate-low", severity: .low, title: "Little bit rate available", scope: .flow,
    thresholds: [
      Threshold("most_kbps", 100, "kbit/s", "webrtc-issue-detector, with video"),
      Threshold("least_seconds", 2, "s", "of samples; own choice"),
    ],
    causes: ["standing-queue", "loss-at-peer", "loss", "path-dead", "high-jitter"],
    sql: """
      WITH
        sample AS (
          SELECT peer, at_ns, members ->> '$.availableOutgoingBitrate' AS rate FROM stat
          WHERE type = 'candidate-pair' AND members ->> '$.availableOutgoingBitrate' IS NOT NULL
            AND members ->> '$.nominated'
            AND peer IN (
              SELECT peer FROM stat
              WHERE type = 'outbound-rtp' AND members ->> '$.kind' = 'video')
        )
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        'the estimate fell to ' || (CAST(min(rate) AS INTEGER) / 1000) || ' kbit/s' AS evidence,
        'out' AS direction, count(*) AS count
      FROM sample WHERE rate < :most_kbps * 1000
      GROUP BY peer HAVING max(at_ns) - min(at_ns) >= :least_seconds * 1000000000
      """)

  /// rtcstats' delayedthroughput: what waits here already waits before it reaches the network.
  static let pacerDelay = FindingRule(
    id: "pacer-delay", severity: .low, title: "Packets waiting to be sent", scope: .stream,
    thresholds: [
      Threshold("least_ms", 20, "ms", "mean of a sample; rtcstats delayedthroughput"),
      Threshold("least_samples", 3, "", "own choice"),
      Threshold("medium_ms", 150, "ms", "libwebrtc's own test of its pacer"),
    ],
    causes: ["standing-queue", "estimate-low", "process-starved"],
    sql: """
      WITH
        sample AS (
          SELECT peer, at_ns, members ->> '$.ssrc' AS ssrc, members ->> '$.kind' AS kind,
            1e3 * ((members ->> '$.totalPacketSendDelay')
              - lag(members ->> '$.totalPacketSendDelay') OVER stream) AS more_ms,
            (members ->> '$.packetsSent') - lag(members ->> '$.packetsSent') OVER stream AS packets
          FROM stat WHERE type = 'outbound-rtp'
          WINDOW stream AS (PARTITION BY peer, members ->> '$.ssrc' ORDER BY row)
        )
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        'packets waited ' || CAST(round(sum(more_ms) / sum(packets)) AS INTEGER)
          || ' ms in this side''s pacer on average' AS evidence,
        ssrc, 'out' AS direction, kind, sum(more_ms) / sum(packets) AS delay_ms,
        iif(sum(more_ms) / sum(packets) >= :medium_ms, 'medium', 'low') AS severity
      FROM sample WHERE packets >= 5 AND more_ms > :least_ms * packets
      GROUP BY peer, ssrc HAVING count(*) >= :least_samples
      """)
}

import Tape
import Wire

// Rules about the API calls in a negotiation and their order.

extension FindingRule {
  /// Finds negotiation calls that failed (rtcstats-features' `Failure` of each call).
  ///
  /// A call that succeeds on the next attempt had a transient problem in the application, such as
  /// glare.
  static let descriptionRefused = FindingRule(
    id: "description-refused", severity: .medium, title: "Description refused", scope: .connection,
    thresholds: [
      Threshold("retry_ms", 10_000, "ms", "a call that goes well by then repairs it; our choice")
    ],
    sql: """
      SELECT peer, at_ns AS from_ns, coalesce(reply_at_ns, at_ns) AS to_ns,
        name || ' was refused: ' || error AS evidence,
        iif(name LIKE 'add%' OR EXISTS (
          SELECT 1 FROM call AS other
          WHERE other.peer = call.peer AND other.name = call.name AND other.error IS NULL
            AND other.row > call.row AND other.at_ns <= call.at_ns + :retry_ms * 1000000
        ), 'low', 'medium') AS severity
      FROM call
      WHERE name IN ('setLocalDescription', 'setRemoteDescription', 'addICECandidate',
          'addIceCandidate') AND error IS NOT NULL
        -- The rule `answer-without-offer` names these.
        AND NOT (error LIKE 'InvalidStateError%' AND arguments ->> '$._0.type' = 'answer')
      """)

  /// Finds answers that were refused because no offer was pending, usually because the application
  /// handles a message twice (Telnyx 33006 and 33007).
  static let answerWithoutOffer = FindingRule(
    id: "answer-without-offer", severity: .low,
    title: "Answer without an offer", scope: .connection,
    sql: """
      SELECT peer, at_ns AS from_ns, coalesce(reply_at_ns, at_ns) AS to_ns,
        'an answer arrived while no offer was pending: ' || error AS evidence
      FROM call
      WHERE name IN ('setLocalDescription', 'setRemoteDescription')
        AND error LIKE 'InvalidStateError%' AND arguments ->> '$._0.type' = 'answer'
      """)

  /// Finds offers that were never answered (rtcstats-features' `pendingNegotiationAtEnd`).
  static let negotiationOpen = FindingRule(
    id: "negotiation-open", severity: .medium, title: "Offer without an answer",
    scope: .connection,
    thresholds: [
      Threshold("least_open_ms", 2_000, "ms", "shorter is a call that ends just then; our choice")
    ],
    causes: ["description-refused", "turn-unreachable"], silentUnder: ["restart-unfinished"],
    sql: """
      SELECT peer, from_ns, to_ns,
        iif(state = 'have-local-offer', 'its offer was not answered for ',
          'the remote offer was not answered for ')
          || round(seconds, 1) || ' s, to the end'
          -- Only for a first offer: before later ones, the remote peer had answered.
          || iif(state = 'have-local-offer' AND NOT EXISTS (
              SELECT 1 FROM signaling WHERE signaling.peer = open.peer AND direction = 'in'
            ) AND NOT EXISTS (
              SELECT 1 FROM packet_store JOIN path_end USING (path)
              WHERE path_end.peer = open.peer AND path_end.direction = 'in'
                AND path NOT IN (SELECT path FROM carried_path)
            ), '; nothing at all came back, so the remote peer may never have received it', '')
          AS evidence
      FROM state_time AS open
      WHERE machine = 'signaling'
        AND state IN ('have-local-offer', 'have-remote-offer', 'have-local-pranswer',
          'have-remote-pranswer')
        AND to_ns - from_ns >= :least_open_ms * 1000000
        AND NOT EXISTS (
          SELECT 1 FROM state WHERE state.peer = open.peer AND state.machine = 'signaling'
            AND state.at_ns >= open.to_ns AND state.to_state <> 'closed'
            AND state.at_ns > open.from_ns)
      """)

  /// Finds offers answered after more than a second, the limit of rtcstats; a user who has to
  /// accept the call takes longer.
  static let slowSignaling = FindingRule(
    id: "slow-signaling", severity: .low, title: "Slow answer to an offer", scope: .connection,
    thresholds: [
      Threshold("least_ms", 1_000, "ms", "rtcstats highsignalingtime")
    ],
    sql: """
      WITH
        slow AS (
          SELECT open.peer, open.from_ns, open.to_ns, open.seconds, (
              SELECT min(at_ns) FROM signaling
              WHERE signaling.peer = open.peer AND direction = 'out' AND type = 'offer'
                AND at_ns BETWEEN open.from_ns AND open.to_ns
            ) AS sent_ns
          FROM state_time AS open JOIN state
            ON state.peer = open.peer AND state.machine = 'signaling' AND state.at_ns = open.to_ns
              AND state.from_state = open.state AND state.to_state = 'stable'
          WHERE open.machine = 'signaling' AND open.state = 'have-local-offer'
            AND open.to_ns - open.from_ns > :least_ms * 1000000
        )
      SELECT peer, from_ns, to_ns,
        iif(sent_ns - from_ns > 200000000,
          'the offer was sent ' || round((sent_ns - from_ns) / 1e9, 1) || ' s after it was set, '
            || 'and its answer arrived ' || round((to_ns - sent_ns) / 1e9, 1) || ' s later',
          'the answer to an offer arrived after ' || round(seconds, 1) || ' s') AS evidence,
        seconds * 1000 AS delay_ms
      FROM slow
      """)

  /// Finds negotiation calls that took long; rtcstats-features reports the time without a
  /// threshold.
  static let slowDescription = FindingRule(
    id: "slow-description", severity: .low, title: "Slow negotiation call", scope: .end,
    thresholds: [
      Threshold("least_ms", 500, "ms", "our choice; others give the time alone")
    ],
    causes: ["process-starved"],
    sql: """
      SELECT peer, at_ns AS from_ns, reply_at_ns AS to_ns,
        name || ' took ' || ((reply_at_ns - at_ns) / 1000000) || ' ms' AS evidence,
        (reply_at_ns - at_ns) / 1e6 AS delay_ms
      FROM call
      WHERE name IN ('createOffer', 'createAnswer', 'setLocalDescription', 'setRemoteDescription')
        AND reply_at_ns - at_ns > :least_ms * 1000000
      """)

  /// Finds ICE restarts that were answered late or never, which leave the broken path selected
  /// (Telnyx 47001).
  static let restartUnfinished = FindingRule(
    id: "restart-unfinished", severity: .high, title: "ICE restart not finished",
    scope: .connection,
    thresholds: [
      Threshold("most_ms", 10_000, "ms", "our choice; rtcstats-features counts none at all"),
      Threshold("least_open_ms", 2_000, "ms", "shorter is a call that ends just then; our choice"),
    ],
    causes: ["description-refused"],
    sql: """
      WITH
        wanted AS (
          SELECT peer, at_ns FROM call_request
          WHERE name = 'restartICE' OR name = 'restartIce'
            OR name = 'createOffer' AND arguments ->> '$.iceRestart' = 1
        ),
        outcome AS (
          SELECT wanted.peer AS peer, wanted.at_ns AS at_ns,
            (
              SELECT min(at_ns) FROM state
              WHERE state.peer = wanted.peer AND machine = 'signaling' AND to_state = 'stable'
                AND from_state <> 'have-remote-offer' AND state.at_ns >= wanted.at_ns
            ) AS done_ns,
            coalesce((
              SELECT min(at_ns) FROM state
              WHERE state.peer = wanted.peer AND machine = 'signaling' AND to_state = 'closed'
            ), \(end)) AS end_ns
          FROM wanted
        )
      SELECT peer, min(at_ns) AS from_ns, max(coalesce(done_ns, end_ns)) AS to_ns,
        iif(max(done_ns IS NULL),
          'an ICE restart was requested, and no answer to it arrived in '
            || round((max(end_ns) - min(at_ns)) / 1e9, 1) || ' s, to the end',
          'an ICE restart was answered after '
            || round((max(done_ns) - min(at_ns)) / 1e9, 1) || ' s') AS evidence
      FROM outcome
      WHERE iif(done_ns IS NULL, end_ns - at_ns >= :least_open_ms * 1000000,
        done_ns - at_ns > :most_ms * 1000000)
      GROUP BY peer, done_ns
      """)

  /// Finds rapid renegotiation: the application's `negotiationneeded` handler triggers itself.
  ///
  /// The severity is low unless it is very rapid, because participants may be joining a meeting.
  static let renegotiationStorm = FindingRule(
    id: "renegotiation-storm", severity: .low, title: "Renegotiation storm", scope: .connection,
    thresholds: [
      Threshold(
        "most", 5, "", "more in 10 s is a storm; our choice, rtcstats-features counts them"),
      Threshold("window_s", 10, "s", "see above"),
      Threshold("hard_s", 3, "s", "as many in this time are medium"),
    ],
    sql: """
      WITH
        done AS (
          SELECT peer, at_ns, count(*) OVER near AS number, count(*) OVER nearer AS hard,
            min(at_ns) OVER near AS begin_ns
          FROM state WHERE machine = 'signaling' AND to_state = 'stable'
          WINDOW
            near AS (PARTITION BY peer ORDER BY at_ns
              RANGE BETWEEN :window_s * 1000000000 PRECEDING AND CURRENT ROW),
            nearer AS (PARTITION BY peer ORDER BY at_ns
              RANGE BETWEEN :hard_s * 1000000000 PRECEDING AND CURRENT ROW)
        )
      SELECT peer, min(begin_ns) AS from_ns, max(at_ns) AS to_ns,
        max(number) || ' negotiations within :window_s s' AS evidence,
        iif(max(hard) > :most, 'medium', 'low') AS severity, max(number) AS count
      FROM done WHERE number > :most GROUP BY peer
      """)
}

// MARK: - Channels

// Rules about data channels, the bit rate estimate and the pacer.

extension FindingRule {
  /// Finds lost data channel records.
  ///
  /// No keys are needed, because the record numbers of DTLS 1.2 are not encrypted.
  ///
  /// SCTP retransmits lost data, and everything behind it on an ordered channel waits. With keys,
  /// losses show at the sender as retransmissions and gaps in acknowledgements.
  static let dataBehindLoss = FindingRule(
    id: "data-behind-loss", severity: .medium, title: "Data channel behind lost packets",
    scope: .flow,
    thresholds: [
      Threshold("least_share", 0.02, "", "of the records; as `loss`"),
      Threshold("least_lost", 5, "", "our choice"),
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
      // The seconds with missing record numbers.
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
      // Without DTLS 1.2 record numbers, a receiver's losses show in the chunk numbers.
      let isCounted = facts.network.datagrams.records.contains {
        $0.peer == way.peer && $0.direction == .inbound
      }
      guard way.direction == .outbound ? isLonely : !isCounted else { continue }
      found += dataLoss(way, facts, limits)
    }
    return found
  }

  /// Finds loss by acknowledgements with gaps and by retransmitted chunks.
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
      : "\(missing) of \(way.chunks) chunks (\(percentage(share)) %) arrived after later ones"
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

  /// Describes the slowest message's latency; empty if the take lacks one of the ends.
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

  /// Finds bandwidth estimates that are less than audio and a small video need
  /// (webrtc-issue-detector).
  static let estimateLow = FindingRule(
    id: "estimate-low", severity: .low, title: "Low bandwidth estimate", scope: .flow,
    thresholds: [
      Threshold("most_kbps", 100, "kbit/s", "webrtc-issue-detector, with video"),
      Threshold("least_seconds", 2, "s", "of samples; our choice"),
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

  /// Finds packets that wait before they reach the network (rtcstats' delayedthroughput).
  static let pacerDelay = FindingRule(
    id: "pacer-delay", severity: .low, title: "Packets waiting to be sent", scope: .stream,
    thresholds: [
      Threshold("least_ms", 20, "ms", "mean of a sample; rtcstats delayedthroughput"),
      Threshold("least_samples", 3, "", "our choice"),
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
          || ' ms in the local pacer on average' AS evidence,
        ssrc, 'out' AS direction, kind, sum(more_ms) / sum(packets) AS delay_ms,
        iif(sum(more_ms) / sum(packets) >= :medium_ms, 'medium', 'low') AS severity
      FROM sample WHERE packets >= 5 AND more_ms > :least_ms * packets
      GROUP BY peer, ssrc HAVING count(*) >= :least_samples
      """)
}

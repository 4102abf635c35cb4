import Tape

// Rules about calls of the negotiation and their order.

extension FindingRule {
  /// The `Failure` of each call in rtcstats-features.
  ///
  /// One that went well at the next try was a hiccup of the application's, such as glare.
  static let descriptionRefused = FindingRule(
    id: "description-refused", severity: .medium, title: "Description refused", scope: .connection,
    thresholds: [
      Threshold("retry_ms", 10_000, "ms", "a call that goes well by then repairs it; own choice")
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

  /// Telnyx' 33006 and 33007: an application that handles one message twice.
  static let answerWithoutOffer = FindingRule(
    id: "answer-without-offer", severity: .low, title: "Answer to no offer", scope: .connection,
    sql: """
      SELECT peer, at_ns AS from_ns, coalesce(reply_at_ns, at_ns) AS to_ns,
        'an answer came while no offer was open: ' || error AS evidence
      FROM call
      WHERE name IN ('setLocalDescription', 'setRemoteDescription')
        AND error LIKE 'InvalidStateError%' AND arguments ->> '$._0.type' = 'answer'
      """)

  /// `pendingNegotiationAtEnd` of rtcstats-features.
  static let negotiationOpen = FindingRule(
    id: "negotiation-open", severity: .medium, title: "Offer without an answer",
    scope: .connection,
    thresholds: [
      Threshold("least_open_ms", 2_000, "ms", "shorter is a call that ends just then; own choice")
    ],
    causes: ["description-refused"], silentUnder: ["restart-unfinished"],
    sql: """
      SELECT peer, from_ns, to_ns,
        iif(state = 'have-local-offer', 'its offer was not answered for ',
          'the offer of the other side was not answered for ')
          || round(seconds, 1) || ' s, to the end' AS evidence
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

  /// More than a second is what rtcstats calls high; a person who has to accept takes longer.
  static let slowSignaling = FindingRule(
    id: "slow-signaling", severity: .low, title: "Slow answer", scope: .connection,
    thresholds: [
      Threshold("least_ms", 1_000, "ms", "rtcstats highsignalingtime")
    ],
    sql: """
      SELECT open.peer, open.from_ns, open.to_ns,
        'the answer to an offer came after ' || round(open.seconds, 1) || ' s' AS evidence,
        open.seconds * 1000 AS delay_ms
      FROM state_time AS open JOIN state
        ON state.peer = open.peer AND state.machine = 'signaling' AND state.at_ns = open.to_ns
          AND state.from_state = open.state AND state.to_state = 'stable'
      WHERE open.machine = 'signaling' AND open.state = 'have-local-offer'
        AND open.to_ns - open.from_ns > :least_ms * 1000000
      """)

  /// rtcstats-features gives the time and no bound.
  static let slowDescription = FindingRule(
    id: "slow-description", severity: .low, title: "Slow negotiation call", scope: .end,
    thresholds: [
      Threshold("least_ms", 500, "ms", "own choice; others give the time alone")
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

  /// A restart that nobody answered leaves the path that did not hold (Telnyx' 47001).
  static let restartUnfinished = FindingRule(
    id: "restart-unfinished", severity: .high, title: "ICE restart not finished",
    scope: .connection,
    thresholds: [
      Threshold("most_ms", 10_000, "ms", "own choice; rtcstats-features counts none at all"),
      Threshold("least_open_ms", 2_000, "ms", "shorter is a call that ends just then; own choice"),
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
          'a restart of ICE was asked for, and no answer to it came in '
            || round((max(end_ns) - min(at_ns)) / 1e9, 1) || ' s, to the end',
          'a restart of ICE was answered after '
            || round((max(done_ns) - min(at_ns)) / 1e9, 1) || ' s') AS evidence
      FROM outcome
      WHERE iif(done_ns IS NULL, end_ns - at_ns >= :least_open_ms * 1000000,
        done_ns - at_ns > :most_ms * 1000000)
      GROUP BY peer, done_ns
      """)

  /// What an application does whose handler of `negotiationneeded` answers itself.
  ///
  /// Once a second may be a meeting whose people come in.
  static let renegotiationStorm = FindingRule(
    id: "renegotiation-storm", severity: .low, title: "Renegotiation storm", scope: .connection,
    thresholds: [
      Threshold(
        "most", 5, "", "more in 10 s is a storm; own choice, rtcstats-features counts them"),
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

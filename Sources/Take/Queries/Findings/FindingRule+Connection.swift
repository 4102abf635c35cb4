// Rules about the connection and its path.

extension FindingRule {
  /// SQL: the time at which each peer's connection finally failed or was closed, as
  /// `connection_end`.
  ///
  /// A connection that recovered from a failure, for example by an ICE restart, did not end. The
  /// end is determined by the connection's states, or by its ICE states if the connection reports
  /// no state except `closed`, as in older browsers.
  static let connectionEnds = """
        connecting AS (
          SELECT peer, row, at_ns, to_state FROM state
          WHERE machine = iif(peer IN (
            SELECT peer FROM state WHERE machine = 'connection' AND to_state <> 'closed'),
            'connection', 'ice-connection')
        ),
        connection_end AS (
          SELECT peer, min(at_ns) AS ended_ns FROM connecting
          WHERE to_state IN ('failed', 'closed') AND row > coalesce((
            SELECT max(row) FROM connecting AS other WHERE other.peer = connecting.peer
              AND other.to_state NOT IN ('failed', 'closed')), -1)
          GROUP BY peer
        )
    """

  static let neverConnected = FindingRule(
    id: "never-connected", severity: .critical, title: "Never connected", scope: .connection,
    sql: """
      WITH
      \(connectionEnds)
      -- An observed peer has only ICE states, and these may begin in the middle of the call, so
      -- media that arrives shows a connection.
      SELECT connecting.peer AS peer, min(at_ns) AS from_ns,
        coalesce(ended_ns, \(end)) AS to_ns,
        'its states were ' || group_concat(to_state, ', ') AS evidence,
        (coalesce(ended_ns, \(end)) - min(at_ns)) / 1e9 AS without_media_s
      FROM connecting LEFT JOIN connection_end ON connection_end.peer = connecting.peer
      GROUP BY connecting.peer HAVING sum(to_state IN ('connected', 'completed')) = 0
        AND connecting.peer NOT IN (
          SELECT path_end.peer FROM packet_store JOIN path_end USING (path)
          WHERE marker_type IS NOT NULL AND path_end.direction = 'in')
        AND connecting.peer NOT IN (\(reportedMedia))
      """)

  /// Peers whose own statistics count received media.
  static let reportedMedia = """
    SELECT peer FROM stat
          WHERE type = 'inbound-rtp' AND members ->> '$.packetsReceived' > 0
    """

  /// Finds connections whose ICE was disconnected or failed, and connections that failed because of
  /// DTLS while ICE stayed connected.
  ///
  /// The state of a connection covers both (RFC 8829).
  static let disconnected = FindingRule(
    id: "disconnected", severity: .high, title: "Connection lost", scope: .connection,
    silentUnder: ["never-connected"],
    sql: """
      WITH
        closing AS (
          SELECT peer, min(at_ns) AS closed_ns FROM state
          WHERE machine IN ('connection', 'ice-connection') AND to_state = 'closed' GROUP BY peer
        ),
        lost AS (
          SELECT one.peer AS peer, one.from_ns AS from_ns,
            coalesce(next.to_ns, one.to_ns) AS to_ns,
            iif(next.peer IS NULL, 'ICE was ' || one.state, 'ICE was disconnected, failed after '
              || round((next.from_ns - one.from_ns) / 1e9, 1) || ' s, and did not recover')
              AS words, '' AS more, 1 AS is_silent
          FROM state_time AS one LEFT JOIN state_time AS next
            ON next.peer = one.peer AND next.machine = one.machine AND one.state = 'disconnected'
              AND next.state = 'failed' AND next.from_ns = one.to_ns
          WHERE one.machine = 'ice-connection' AND (one.state = 'disconnected'
            OR one.state = 'failed' AND NOT EXISTS (
              SELECT 1 FROM state_time AS before
              WHERE before.peer = one.peer AND before.machine = one.machine
                AND before.state = 'disconnected' AND before.to_ns = one.from_ns))
          UNION ALL
          SELECT failed.peer, failed.from_ns, failed.to_ns, 'its state was failed',
            coalesce(', while ICE stayed ' || ice.state, ''), 0
          FROM state_time AS failed LEFT JOIN state_time AS ice
            ON ice.peer = failed.peer AND ice.machine = 'ice-connection'
              AND ice.from_ns <= failed.from_ns AND ice.to_ns > failed.from_ns
          WHERE failed.machine = 'connection' AND failed.state = 'failed'
            AND coalesce(ice.state, 'connected') IN ('connected', 'completed')
            AND EXISTS (
              SELECT 1 FROM state WHERE state.peer = failed.peer AND machine = 'connection'
                AND to_state = 'connected' AND state.at_ns <= failed.from_ns)
        ),
        cut AS (
          SELECT lost.*, min(to_ns, coalesce(closed_ns, to_ns)) AS until_ns
          FROM lost LEFT JOIN closing USING (peer)
        )
      SELECT peer, from_ns, until_ns AS to_ns,
        words || ' for ' || iif(until_ns - from_ns < 1e9,
          CAST(round((until_ns - from_ns) / 1e6) AS INTEGER) || ' ms',
          round((until_ns - from_ns) / 1e9, 1) || ' s') || more AS evidence,
        iif(is_silent, (until_ns - from_ns) / 1e9, 0) AS without_media_s
      FROM cut WHERE until_ns >= from_ns
      """)

  /// Finds paths that keep changing; selecting the first pair, at the start or after an ICE
  /// restart, does not count as a change.
  static let flapping = FindingRule(
    id: "ice-flapping", severity: .medium, title: "Unstable path", scope: .connection,
    sql: """
      WITH
        -- Each username fragment is a generation (RFC 8445 section 9).
        generation AS (
          SELECT peer, min(row) AS row, min(at_ns) AS at_ns FROM candidate
          WHERE type = 'local-candidate' AND username_fragment IS NOT NULL
          GROUP BY peer, username_fragment
        ),
        moment AS (
          SELECT peer, at_ns, 0 AS kind FROM generation
          UNION ALL SELECT peer, from_ns, 1 FROM selected_pair
          UNION ALL SELECT peer, from_ns, 2 FROM state_time
            WHERE machine = 'ice-connection' AND state = 'disconnected'
        ),
        placed AS (
          SELECT *, sum(kind = 0) OVER (PARTITION BY peer ORDER BY at_ns, kind) AS restarts
          FROM moment
        ),
        change AS (
          SELECT peer, at_ns FROM (
            SELECT *, row_number() OVER (PARTITION BY peer, restarts, kind ORDER BY at_ns) AS place
            FROM placed WHERE kind > 0
          ) WHERE kind = 2 OR place > 1
        ),
        counted AS (
          SELECT peer, at_ns,
            count(*) OVER near AS changes, min(at_ns) OVER near AS begin_ns
          FROM change WINDOW near AS (
            PARTITION BY peer ORDER BY at_ns RANGE BETWEEN 10000000000 PRECEDING AND CURRENT ROW)
        )
      SELECT peer, min(begin_ns) AS from_ns, max(at_ns) AS to_ns,
        max(changes) || ' changes of the selected pair within 10 s' AS evidence
      FROM counted WHERE changes >= 4 GROUP BY peer
      """)

  static let relay = FindingRule(
    id: "relay-in-use", severity: .info, title: "Media over a relay", scope: .connection,
    sql: """
      SELECT peer, from_ns, to_ns,
        local || ' (' || local_type || ') to ' || remote || ' (' || remote_type || ')' AS evidence
      FROM selected_pair WHERE 'relay' IN (local_type, remote_type)
      """)

  static let roundTrip = FindingRule(
    id: "high-round-trip", severity: .medium, title: "Long round trip", scope: .connection,
    thresholds: [
      Threshold("least_ms", 300, "ms", "twice the 150 ms one way of ITU-T G.114")
    ],
    sql: """
      WITH slow AS (
        SELECT peer, at_ns, checks, 0 AS reports, round_trip_ms FROM round_trip
        UNION ALL
        SELECT peer, at_ns, 0, 1, round_trip_ms FROM media_round_trip
      )
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        iif(sum(checks) > 0, sum(checks) || ' connectivity check'
            || iif(sum(checks) = 1, '', 's'), '')
          || iif(sum(checks) > 0 AND sum(reports) > 0, ' and ', '')
          || iif(sum(reports) > 0, sum(reports) || ' round trip'
            || iif(sum(reports) = 1, '', 's') || ' that RTCP measured', '')
          || ' took :least_ms ms or more, the longest '
          || CAST(round(max(round_trip_ms)) AS INTEGER) || ' ms' AS evidence,
        max(round_trip_ms) AS delay_ms
      FROM slow WHERE round_trip_ms >= :least_ms \(window)
      GROUP BY peer
      """)

  static let loss = FindingRule(
    id: "loss", severity: .medium, title: "Packet loss", scope: .flow,
    thresholds: lossThresholds,
    causes: ["disconnected", "sequence-restart"],
    sumsUp: true,
    sql: """
      SELECT peer, direction, ssrc, expected, received, lost,
        round(100.0 * lost / expected, 1) AS percent
      FROM loss WHERE direction = 'in' AND lost >= :least_lost AND expected >= :least_expected
        AND lost * 100 >= :least_share * expected
      """, detector: findLoss)

  static let lossBurst = FindingRule(
    id: "loss-burst", severity: .medium, title: "Burst of packet loss", scope: .flow,
    thresholds: burstThresholds,
    causes: ["disconnected", "one-way-media", "stream-gap", "sequence-restart", "loss"],
    sql: """
      WITH
      \(sequenceParts),
        extended AS (
          SELECT peer, ssrc, part, at_ns,
            sum(iif(begins, 0, step_size)) OVER (PARTITION BY peer, ssrc, part ORDER BY row)
              AS position
          FROM parted
        ),
        sorted AS (
          SELECT peer, ssrc, at_ns, lag(at_ns) OVER stream AS before_ns,
            position - lag(position) OVER stream - 1 AS missing
          FROM extended WINDOW stream AS (PARTITION BY peer, ssrc, part ORDER BY position, at_ns)
        )
      SELECT peer, before_ns AS from_ns, at_ns AS to_ns,
        missing || ' packets in a row lost' AS evidence, ssrc
      -- A packet that arrived before its predecessor was reordered, or the numbers restarted.
      FROM sorted WHERE missing >= :least_burst AND at_ns >= before_ns
      """, detector: findBursts)

  /// Finds losses at the remote peer from its reports, for takes that record only this side.
  static let lossAtPeer = FindingRule(
    id: "loss-at-peer", severity: .medium, title: "Packet loss by its receiver's reports",
    scope: .flow, thresholds: lossThresholds,
    causes: ["disconnected", "loss", "loss-burst"],
    // If the take has the receiver's packets, these rules count the losses exactly.
    silentUnder: ["loss", "loss-burst"],
    sql: """
      SELECT rtcp.peer AS peer, rtcp.at_ns AS at_ns, each.value ->> '$.ssrc' AS ssrc,
        each.value ->> '$.lost' AS lost, each.value ->> '$.fraction_lost' / 2.56 AS percent
      FROM rtcp, json_each(rtcp.fields, '$.blocks') AS each
      WHERE rtcp.type IN ('sr', 'rr') AND rtcp.direction = 'in'
      ORDER BY ssrc, rtcp.row
      """, detector: findLossAtPeer)

  /// Finds streams whose quality the encoder reports as limited.
  ///
  /// A target bit rate that fell to a quarter is a limit too, unless the application set limits
  /// itself.
  static let limited = FindingRule(
    id: "encoder-limited", severity: .low, title: "Encoder limited",
    sumsUp: true,
    sql: """
      WITH
        sample AS (
          SELECT peer, row, at_ns, members ->> '$.ssrc' AS ssrc,
            members ->> '$.qualityLimitationReason' AS reason,
            members ->> '$.targetBitrate' AS target,
            max(iif(members ->> '$.kind' = 'video' AND members ->> '$.rid' IS NULL,
              members ->> '$.targetBitrate', NULL)) OVER (
              PARTITION BY peer, members ->> '$.ssrc' ORDER BY row
              ROWS UNBOUNDED PRECEDING) AS highest
          FROM stat WHERE type = 'outbound-rtp'
        ),
        judged AS (
          SELECT *, reason = 'none' AND target > 0 AND target * 4 <= highest AND peer NOT IN (
              SELECT peer FROM call_request WHERE name IN ('limitBitrate', 'setParameters')
            ) AS has_fallen
          FROM sample
        )
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        iif(has_fallen, 'its target fell from ' || (CAST(max(highest) AS INTEGER) / 1000)
            || ' to ' || (CAST(min(target) AS INTEGER) / 1000) || ' kbit/s, in ' || count(*)
            || iif(count(*) = 1, ' sample', ' samples') || ' of its statistics',
          count(*) || iif(count(*) = 1, ' sample', ' samples') || ' of its statistics'
            || iif(count(*) = 1, ' was', ' were') || ' limited by '
            || iif(reason = 'cpu', 'the processor', reason)) AS evidence,
        ssrc, 'out' AS direction, 'video' AS kind
      FROM judged
      WHERE reason <> 'none' OR has_fallen GROUP BY peer, ssrc, reason
      HAVING max(at_ns) - min(at_ns) >= 1000000000
      """)
}

// MARK: - Network

// Rules about negotiation, ICE, TURN, DTLS, the transport and data channels.

extension FindingRule {
  static let networkRules: [FindingRule] =
    signalingRules + sectionRules + candidateRules + establishmentRules + wayRules + timingRules
    + repairRules

  private static let signalingRules: [FindingRule] = [
    descriptionRefused, answerWithoutOffer, negotiationOpen, slowSignaling, slowDescription,
    restartUnfinished, renegotiationStorm,
  ]

  private static let sectionRules: [FindingRule] = [
    sectionRejected, directionRefused, switchedOff, mediaAbsent, doubledLines, payloadTypeUnknown,
    payloadTypeChanged,
    mediaWithoutTransceiver, crossedTypes, undecodable,
  ]

  private static let candidateRules: [FindingRule] = [
    turnRefused, turnRefusedOnTheWire, turnUnreachable, slowServer, socketRefused, noCandidates,
    noRemoteCandidates, nameUnresolved, familyMismatch, onlyHostCandidates, checksUnanswered,
    closedWhileChecking, sendFailed, needlessRelay, relayOverTCP, connectionChurn, iceWarmUp,
    wrongPassword, addressChanged,
  ]

  private static let establishmentRules: [FindingRule] = [
    fingerprintMismatch, dtlsFailed, slowHandshake, slowConnect, consentLost, consentNearlyLost,
    rolesClash,
  ]

  private static let wayRules: [FindingRule] = [
    pathDead, processStarved, peerStarved, mediaInBursts, pathStalled, reportsMissing,
    sentNotArriving, largePacketsLost,
  ]

  private static let timingRules: [FindingRule] = [
    standingQueue, longerPath, highJitter, clockDrift, mediaClockJump, wallClockJump,
  ]

  private static let repairRules: [FindingRule] = [
    reordering, duplicates, lossWithoutRepair, repairsMissing, lateRepair, nackStorm, srtpRefused,
    dataBehindLoss, channelNotOpen, estimateLow, pacerDelay,
  ]

  /// The rules about a connection that a path breaks if it loses packets of all protocols; lost
  /// media alone does not.
  static let brokenByLoss: Set = [
    "never-connected", "slow-connect", "slow-handshake", "checks-unanswered", "channel-not-open",
    "disconnected", "consent-lost", "ice-flapping", "restart-unfinished",
    "one-way-media", "media-absent", "media-never-came", "sent-not-arriving", "rtcp-silence",
    "key-frame-requests-unanswered",
  ]

  /// Additional causes for some rules, by the rule's id; they precede the causes that the rule
  /// itself names.
  static let networkCauses: [String: [String]] = [
    "never-connected": [
      "dtls-roles-clash", "ice-password-wrong", "fingerprint-mismatch", "dtls-failed",
      "name-unresolved", "turn-refused",
      "turn-refused-seen", "turn-unreachable", "no-candidates", "no-remote-candidates",
      "family-mismatch", "only-host-candidates", "checks-unanswered", "restart-unfinished",
      "negotiation-open", "description-refused", "slow-handshake", "closed-while-checking",
    ],
    "disconnected": [
      "turn-refused", "turn-refused-seen", "address-changed", "ice-password-wrong",
      "consent-lost", "path-dead", "restart-unfinished", "process-starved",
    ],
    "ice-flapping": ["address-changed", "path-dead", "consent-lost"],
    "slow-handshake": ["dtls-roles-clash", "ice-password-wrong"],
    "dtls-failed": ["dtls-roles-clash"],
    "checks-unanswered": ["ice-password-wrong"],
    "consent-lost": ["turn-refused", "turn-refused-seen", "address-changed"],
    "path-dead": ["turn-refused", "turn-refused-seen", "address-changed", "ice-password-wrong"],
    "sent-not-arriving": [
      "turn-refused", "turn-refused-seen", "address-changed", "payload-types-crossed",
      "large-packets-lost",
      "consent-lost",
    ],
    "rtcp-silence": ["turn-refused", "address-changed"],
    "key-frame-requests-unanswered": [
      "large-packets-lost", "payload-types-crossed", "video-undecodable", "encoder-stopped",
    ],
    "key-frame-storm": ["large-packets-lost", "payload-types-crossed", "video-undecodable"],
    "repairs-missing": ["large-packets-lost"],
    "no-repair": ["large-packets-lost", "consent-lost"],
    "nack-storm": ["large-packets-lost", "high-jitter", "srtp-refused", "consent-lost"],
    "late-repair-delay": ["srtp-refused"],
    "consent-nearly-lost": [
      "turn-refused", "turn-refused-seen", "address-changed", "sent-not-arriving",
    ],
    "pacer-delay": [
      "large-packets-lost", "path-dead", "sent-not-arriving", "loss", "loss-burst", "loss-at-peer",
    ],
    "wall-clock-jump": ["process-starved", "peer-starved"],
    "codec-changed": ["payload-type-changed"],
    "encoder-behind-source": ["encoder-stopped"],
    "video-paused": ["encoder-stopped"],
    "frames-dropped": [
      "video-undecodable", "payload-types-crossed", "large-packets-lost",
      "key-frame-requests-unanswered",
    ],
    "audio-stretched": ["microphone-gaps"],
    "audio-late": ["microphone-gaps"],
    "audio-interrupted": ["microphone-gaps"],
    "standing-queue": ["microphone-gaps"],
    "one-way-media": [
      "turn-refused", "turn-refused-seen", "address-changed", "path-dead", "large-packets-lost",
      "section-rejected",
      "direction-refused", "payload-type-unknown",
      "media-without-transceiver", "sent-not-arriving", "srtp-refused", "consent-lost",
    ],
    "stream-gap": [
      "turn-refused", "turn-refused-seen", "address-changed", "encoder-stopped", "path-dead",
      "consent-lost", "large-packets-lost", "process-starved", "peer-starved", "path-stalled",
      "sent-not-arriving",
    ],
    "loss": [
      "large-packets-lost", "address-changed", "srtp-refused", "path-dead", "consent-lost",
      "standing-queue",
    ],
    "loss-burst": [
      "large-packets-lost", "address-changed", "srtp-refused", "path-dead", "consent-lost",
      "standing-queue", "high-jitter",
    ],
    "loss-at-peer": [
      "large-packets-lost", "address-changed", "srtp-refused", "path-dead", "consent-lost",
      "standing-queue",
      "sent-not-arriving", "no-repair", "repairs-missing",
    ],
    "high-jitter": ["large-packets-lost", "media-in-bursts"],
    "microphone-gaps": ["peer-starved", "media-in-bursts"],
    "audio-video-apart": ["media-in-bursts"],
    "media-clock-jump": ["large-packets-lost"],
    "high-round-trip": [
      "standing-queue", "path-became-longer", "process-starved", "peer-starved", "path-stalled",
    ],
    "freeze": [
      "large-packets-lost", "address-changed", "turn-refused", "turn-refused-seen",
      "encoder-stopped", "srtp-refused", "path-dead", "consent-lost", "process-starved",
      "peer-starved", "path-stalled",
      "repairs-missing", "no-repair", "standing-queue", "payload-type-unknown", "rtcp-silence",
      "path-became-longer",
    ],
    "video-stopped": [
      "large-packets-lost", "address-changed", "turn-refused", "turn-refused-seen",
      "encoder-stopped", "payload-types-crossed", "path-dead", "consent-lost", "process-starved",
      "peer-starved", "path-stalled", "payload-type-unknown",
      "direction-refused", "section-rejected", "sent-not-arriving", "repairs-missing",
      "no-repair", "rtcp-silence",
    ],
    "no-key-frame": [
      "large-packets-lost", "address-changed", "payload-types-crossed", "video-undecodable",
      "turn-refused", "path-dead", "consent-lost", "repairs-missing", "no-repair",
      "payload-type-unknown",
      "rtcp-silence", "process-starved", "peer-starved",
    ],
    "late-first-frame": [
      "large-packets-lost", "payload-types-crossed", "video-undecodable", "path-dead",
      "slow-handshake", "slow-connect", "payload-type-unknown", "no-repair",
      "process-starved",
    ],
    "concealed-audio": [
      "address-changed", "turn-refused", "microphone-gaps", "path-dead", "consent-lost",
      "process-starved", "peer-starved", "path-stalled",
      "payload-type-unknown", "standing-queue", "high-jitter", "reordering", "clock-drift",
      "srtp-refused", "path-became-longer",
    ],
    "audio-paused": ["process-starved", "peer-starved", "consent-lost"],
    "estimate-low": ["large-packets-lost"],
    "frame-rate-unsteady": ["large-packets-lost"],
    "encoder-limited": [
      "standing-queue", "rtcp-silence", "path-dead", "high-jitter", "large-packets-lost",
      "sent-not-arriving", "loss", "loss-burst", "loss-at-peer",
    ],
    "sequence-restart": [],
  ]
}

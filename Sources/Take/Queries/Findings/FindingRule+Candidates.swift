import Tape

// Rules about candidates and pairs.

extension FindingRule {
  /// Peers that never reached `connected` or `completed` and received no media.
  private static let unconnected = """
    \(connectionEnds),
        unconnected AS (
          SELECT state.peer AS peer, min(at_ns) AS from_ns,
            min(coalesce(min(iif(to_state = 'closed', at_ns, NULL)), \(end)),
              max(coalesce(min(ended_ns), \(end)), min(at_ns))) AS to_ns
          FROM state LEFT JOIN connection_end USING (peer) WHERE machine = 'ice-connection'
          GROUP BY state.peer HAVING sum(to_state IN ('connected', 'completed')) = 0
            AND max(to_state <> 'closed') AND state.peer NOT IN (
              SELECT path_end.peer FROM packet_store JOIN path_end USING (path)
              WHERE marker_type IS NOT NULL AND path_end.direction = 'in')
        )
    """

  /// Finds peers without a local candidate, to which the remote peer cannot reply (Telnyx 33003).
  static let noCandidates = FindingRule(
    id: "no-candidates", severity: .high, title: "No local candidate", scope: .connection,
    causes: ["socket-refused", "turn-refused", "turn-unreachable"],
    sql: """
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        'gathering ended without a candidate' AS evidence
      FROM state
      WHERE machine = 'ice-gathering' AND to_state = 'complete'
        AND peer NOT IN (SELECT peer FROM candidate WHERE type = 'local-candidate')
      GROUP BY peer
      """)

  static let noRemoteCandidates = FindingRule(
    id: "no-remote-candidates", severity: .high, title: "No remote candidate",
    scope: .connection,
    thresholds: [
      Threshold("least_ms", 3_000, "ms", "trickled ones may take a moment; our choice")
    ],
    causes: ["description-refused", "no-candidates", "name-unresolved"],
    sql: """
      -- Without a remote candidate, ICE has nothing to check and may never report `checking`.
      WITH waiting AS (
        SELECT peer, min(at_ns) AS from_ns,
          coalesce(min(iif(to_state IN ('failed', 'closed'), at_ns, NULL)), \(end)) AS to_ns
        FROM state
        WHERE machine IN ('ice-connection', 'connection')
          OR machine = 'signaling' AND to_state = 'stable'
        GROUP BY peer HAVING sum(to_state IN ('connected', 'completed')) = 0
          AND peer NOT IN (
            SELECT path_end.peer FROM packet_store JOIN path_end USING (path)
            WHERE marker_type IS NOT NULL AND path_end.direction = 'in')
      )
      SELECT peer, from_ns, to_ns,
        'no remote candidate arrived in ' || round((to_ns - from_ns) / 1e9, 1) || ' s'
          || iif(peer IN (
            SELECT peer FROM signaling WHERE direction = 'in'
              AND instr(CAST(message AS TEXT), 'end-of-candidates') > 0),
            '; the remote peer signaled the end of candidates, so there is nothing '
              || 'to check', '') AS evidence
      FROM waiting
      WHERE to_ns - from_ns >= :least_ms * 1000000
        AND peer NOT IN (SELECT peer FROM candidate WHERE type = 'remote-candidate')
        AND peer NOT IN (SELECT peer FROM network WHERE kind = 'resolve' AND address LIKE '%.local')
        AND peer IN (SELECT peer FROM state WHERE machine = 'signaling' AND to_state = 'stable')
      """)

  /// Finds mDNS candidates (RFC 8828) whose names did not resolve here; harmless if the remote
  /// peer's checks reveal the address.
  static let nameUnresolved = FindingRule(
    id: "name-unresolved", severity: .info, title: "Candidate name not resolved",
    scope: .connection,
    sql: """
      WITH
      \(unconnected),
        asked AS (
          SELECT question.peer AS peer, question.at_ns AS from_ns,
            coalesce(answer.at_ns, \(end)) AS to_ns, question.address AS name
          FROM network AS question LEFT JOIN network AS answer
            ON answer.peer = question.peer AND answer.request = question.request
              AND answer.kind = 'resolved' AND answer.row > question.row
          WHERE question.kind = 'resolve' AND question.address LIKE '%.local'
            AND coalesce(answer.address, '') = ''
          UNION ALL
          -- In observed calls, a name is known only from the description.
          SELECT candidate.peer, min(candidate.at_ns), max(candidate.at_ns), candidate.address
          FROM candidate JOIN unconnected USING (peer)
          WHERE candidate.type = 'remote-candidate' AND candidate.address LIKE '%.local'
            AND candidate.peer NOT IN (SELECT peer FROM network)
          GROUP BY candidate.peer, candidate.address
        )
      SELECT asked.peer AS peer, min(asked.from_ns) AS from_ns,
        coalesce(unconnected.to_ns, max(asked.to_ns)) AS to_ns,
        iif(count(DISTINCT name) = 1, 'there was no answer for ' || min(name),
          'there was no answer for ' || count(DISTINCT name) || ' names, such as ' || min(name))
          || iif(unconnected.peer IS NULL, '; another candidate connected', '') AS evidence,
        iif(unconnected.peer IS NULL, 'info', 'high') AS severity, count(DISTINCT name) AS count
      FROM asked LEFT JOIN unconnected USING (peer) GROUP BY asked.peer
      """)

  /// Finds calls in which each side has addresses from one family only, and the families differ.
  static let familyMismatch = FindingRule(
    id: "family-mismatch", severity: .high, title: "No address family in common",
    scope: .connection,
    sql: """
      WITH
      \(unconnected),
        family AS (
          SELECT peer, type,
            max(address LIKE '%:%') AS has_six, max(address LIKE '%.%.%.%') AS has_four
          FROM candidate WHERE address NOT LIKE '%.local' GROUP BY peer, type
        )
      SELECT unconnected.peer AS peer, from_ns, to_ns,
        'the local candidates are ' || iif(own.has_four, 'IPv4', 'IPv6')
          || ' only, the remote ones ' || iif(theirs.has_four, 'IPv4', 'IPv6') || ' only'
          AS evidence
      FROM unconnected
        JOIN family AS own ON own.peer = unconnected.peer AND own.type = 'local-candidate'
        JOIN family AS theirs
          ON theirs.peer = unconnected.peer AND theirs.type = 'remote-candidate'
      WHERE own.has_four + theirs.has_four = 1 AND own.has_six + theirs.has_six = 1
      """)

  /// Addresses reachable only within their network (RFC 1918, RFC 3927, RFC 4193, RFC 4291, RFC
  /// 6598), and mDNS names (RFC 8828), which hide such addresses.
  private static let isPrivate = """
    (address LIKE '10.%' OR address LIKE '192.168.%' OR address LIKE '169.254.%'
            OR address LIKE '172.%' AND CAST(substr(address, 5) AS INTEGER) BETWEEN 16 AND 31
            OR address LIKE '100.%' AND CAST(substr(address, 5) AS INTEGER) BETWEEN 64 AND 127
            OR address LIKE 'fe80:%' OR address LIKE 'fc__:%' OR address LIKE 'fd__:%'
            OR address LIKE '%.local')
    """

  /// Finds peers whose checks failed with host candidates alone (Telnyx 33005).
  ///
  /// Host candidates suffice within one network and between public addresses; if checks fail there,
  /// the reason lies elsewhere. Addresses that differ only in their last part count as one network.
  static let onlyHostCandidates = FindingRule(
    id: "only-host-candidates", severity: .medium, title: "Only host candidates",
    scope: .connection,
    thresholds: [
      Threshold("least_ms", 5_000, "ms", "of checks without success; webrtc-inspector's 5 s")
    ],
    causes: ["turn-refused", "turn-unreachable"],
    silentUnder: ["family-mismatch", "no-remote-candidates"],
    sql: """
      WITH
      \(unconnected),
        known AS (
          SELECT peer, type, group_concat(DISTINCT candidate_type) AS types
          FROM candidate WHERE candidate_type <> 'prflx' GROUP BY peer, type
        ),
        -- Addresses that differ only in their last part belong to the same network.
        near AS (
          SELECT own.peer AS peer FROM candidate AS own JOIN candidate AS theirs
            ON theirs.peer = own.peer AND theirs.type = 'remote-candidate'
              AND own.address NOT LIKE '%.local'
              AND rtrim(lower(theirs.address), '0123456789abcdef')
                = rtrim(lower(own.address), '0123456789abcdef')
          WHERE own.type = 'local-candidate'
        ),
        public AS (
          SELECT peer FROM candidate WHERE NOT \(isPrivate)
          GROUP BY peer HAVING count(DISTINCT type) = 2
        ),
        \(lateAnswers)
      SELECT unconnected.peer AS peer, from_ns, to_ns,
        'both ends have only addresses of their own network: no STUN or TURN server '
          || 'gave one' AS evidence
      FROM unconnected
        JOIN known AS own ON own.peer = unconnected.peer AND own.type = 'local-candidate'
        JOIN known AS theirs
          ON theirs.peer = unconnected.peer AND theirs.type = 'remote-candidate'
      WHERE own.types = 'host' AND theirs.types = 'host'
        AND to_ns - from_ns >= :least_ms * 1000000
        AND unconnected.peer NOT IN (SELECT peer FROM near)
        AND unconnected.peer NOT IN (SELECT peer FROM public)
        AND unconnected.peer NOT IN (SELECT peer FROM late)
        AND unconnected.peer IN (
          SELECT peer FROM candidate_pair GROUP BY peer HAVING max(requests_sent) > 0)
      """)

  /// For each peer that never connected, the responses that arrived too late, after ICE had
  /// abandoned their checks, as on a path with a long delay.
  private static let lateAnswers = """
    late AS (
          SELECT peer, sum(answered_ns IS NOT NULL) AS answers,
            min(answered_ns - asked_ns) AS delay_ns
          FROM (
            SELECT unconnected.peer AS peer,
              min(iif(direction = 'out', at_ns, NULL)) AS asked_ns,
              min(iif(direction = 'in', at_ns, NULL)) AS answered_ns
            FROM unconnected CROSS JOIN packet ON packet.peer = unconnected.peer
            WHERE packet.ssrc IS NULL AND packet.size >= 20
              AND substr(bytes, 1, 2) = iif(direction = 'out', x'0001', x'0101')
              AND (packet.peer, packet.remote) IN (SELECT peer, remote FROM candidate_pair)
            GROUP BY unconnected.peer, substr(bytes, 5, 16)
          )
          WHERE asked_ns IS NOT NULL GROUP BY peer HAVING answers > 0
        )
    """

  /// Finds checks that stay unanswered for 5 s, as in webrtc-inspector's `ice_stuck_checking`.
  static let checksUnanswered = FindingRule(
    id: "checks-unanswered", severity: .high, title: "Connectivity checks not answered",
    scope: .connection,
    thresholds: [
      Threshold("least_ms", 5_000, "ms", "webrtc-inspector ice_stuck_checking")
    ],
    causes: ["only-host-candidates", "family-mismatch", "turn-refused", "turn-unreachable"],
    sql: """
      WITH
      \(unconnected),
        pair AS (
          SELECT peer, pair, max(requests_sent) AS sent, max(responses_received) AS answered,
            max(requests_received) AS came
          FROM candidate_pair GROUP BY peer, pair
        ),
        \(lateAnswers)
      SELECT unconnected.peer AS peer, from_ns, to_ns,
        sum(sent > 0) || iif(sum(sent > 0) = 1, ' pair was', ' pairs were')
          || ' checked for ' || round((to_ns - from_ns) / 1e9, 1)
          || iif(late.peer IS NULL, ' s, and no check was answered',
            ' s, and ' || answers || iif(answers = 1, ' response', ' responses')
              || ' came too late, at best after ' || round(delay_ns / 1e9, 1) || ' s: the path is '
              || 'too slow, or an end is')
          || iif(sum(came) > 0, '; the remote peer''s checks arrived', '')
          || iif(late.peer IS NULL AND unconnected.peer IN (
            SELECT peer FROM candidate WHERE candidate_type <> 'prflx'
            GROUP BY peer HAVING max(candidate_type <> 'host') = 0 AND count(DISTINCT type) = 2
          ), '; both ends have only host candidates, which can only reach each other within one '
            || 'network', '') AS evidence,
        sum(sent > 0) AS count
      FROM unconnected JOIN pair ON pair.peer = unconnected.peer
        LEFT JOIN late ON late.peer = unconnected.peer
      WHERE to_ns - from_ns >= :least_ms * 1000000
      GROUP BY unconnected.peer HAVING sum(sent) > 0 AND sum(answered) = 0
      """)

  /// Finds connections that were closed before the checks ended, which callstats calls "aborted".
  static let closedWhileChecking = FindingRule(
    id: "closed-while-checking", severity: .low, title: "Closed while ICE was checking",
    scope: .connection,
    thresholds: [
      Threshold("least_ms", 500, "ms", "of checks; our choice")
    ],
    causes: [
      "name-unresolved", "no-remote-candidates", "family-mismatch", "turn-refused",
      "turn-unreachable", "only-host-candidates", "checks-unanswered", "negotiation-open",
    ],
    sql: """
      SELECT checking.peer AS peer, from_ns, to_ns,
        'it was closed after ' || round(seconds, 1) || CASE
            WHEN checking.peer IN (SELECT peer FROM peer WHERE role = 'reported')
              THEN ' s in the state checking'
            WHEN checking.peer IN (
              SELECT peer FROM packet_store JOIN path_end USING (path) WHERE direction = 'out')
              THEN ' s of checks'
            ELSE ' s in the state checking, in which it sent no check' END AS evidence
      FROM state_time AS checking JOIN state
        ON state.peer = checking.peer AND state.machine = checking.machine
          AND state.at_ns = checking.to_ns AND state.to_state = 'closed'
      WHERE checking.machine = 'ice-connection' AND checking.state = 'checking'
        AND to_ns - from_ns >= :least_ms * 1000000
        AND checking.peer NOT IN (
          SELECT peer FROM state
          WHERE machine = 'ice-connection' AND to_state IN ('connected', 'completed'))
      """)

  // MARK: The selected pair

  /// Finds relays in use although another pair worked: a relay costs delay and money.
  static let needlessRelay = FindingRule(
    id: "needless-relay", severity: .low, title: "Relay although a direct path worked",
    scope: .connection,
    sql: """
      WITH
        direct AS (
          SELECT peer, min(at_ns) AS at_ns, min(local) AS local, min(remote) AS remote
          FROM candidate_pair
          WHERE state = 'succeeded' AND 'relay' NOT IN (local_type, remote_type) GROUP BY peer
        )
      SELECT used.peer AS peer, max(used.from_ns, direct.at_ns) AS from_ns, used.to_ns AS to_ns,
        'the call went over ' || iif(used.local_type = 'relay', used.local, used.remote)
          || ' (relay) for ' || round((used.to_ns - max(used.from_ns, direct.at_ns)) / 1e9, 1)
          || ' s while ' || direct.local || ' to ' || direct.remote || ' worked' AS evidence
      FROM selected_pair AS used JOIN direct USING (peer)
      WHERE 'relay' IN (used.local_type, used.remote_type)
        AND used.to_ns - max(used.from_ns, direct.at_ns) >= 2000000000
      """)

  /// Finds relays reached over TCP or TLS, where a lost packet delays all media behind it.
  static let relayOverTCP = FindingRule(
    id: "relay-over-tcp", severity: .low, title: "Relay over TCP or TLS", scope: .connection,
    sql: """
      WITH
        relayed AS (
          SELECT peer, members ->> '$.relayProtocol' AS protocol,
            members ->> '$.address' AS address, min(at_ns) AS at_ns
          FROM stat
          WHERE type = 'local-candidate' AND members ->> '$.relayProtocol' IN ('tcp', 'tls')
          GROUP BY peer, protocol, address
        )
      SELECT used.peer AS peer, used.from_ns AS from_ns, used.to_ns AS to_ns,
        'media went to the relay over ' || upper(relayed.protocol) AS evidence
      FROM selected_pair AS used JOIN relayed ON relayed.peer = used.peer
        AND used.local_type = 'relay' AND instr(used.local, relayed.address) > 0
      UNION ALL
      SELECT path_end.peer, min(packet_store.at_ns), max(packet_store.at_ns),
        'media went to the relay over TCP'
      FROM carried_path JOIN path_end USING (path) JOIN packet_store USING (path)
      WHERE carrier = 'turn-tcp' AND marker_type IS NOT NULL
      GROUP BY path_end.peer HAVING count(*) >= 50
      """)

  /// Finds connections lost soon after they were established, and recovered later: a middlebox
  /// drops a path, or opens it late (rtcstats' connectionchurn).
  static let connectionChurn = FindingRule(
    id: "connection-churn", severity: .medium, title: "Connection lost right after connecting",
    scope: .connection,
    thresholds: [
      Threshold("most_ms", 5_000, "ms", "from connected to lost; rtcstats connectionchurn")
    ],
    causes: ["path-dead", "consent-lost", "process-starved"],
    sql: """
      WITH
        turn AS (
          SELECT peer, min(iif(to_state IN ('connected', 'completed'), at_ns, NULL)) AS up_ns,
            min(iif(to_state IN ('disconnected', 'failed'), at_ns, NULL)) AS down_ns
          FROM state WHERE machine = 'ice-connection' GROUP BY peer
        )
      SELECT turn.peer AS peer, down_ns AS from_ns, min(state.at_ns) AS to_ns,
        'it was lost ' || ((down_ns - up_ns) / 1000000) || ' ms after connecting, and '
          || 'recovered after ' || round((min(state.at_ns) - down_ns) / 1e9, 1) || ' s' AS evidence
      FROM turn JOIN state ON state.peer = turn.peer AND state.machine = 'ice-connection'
        AND state.at_ns > down_ns AND state.to_state IN ('connected', 'completed')
      WHERE down_ns - up_ns BETWEEN 0 AND :most_ms * 1000000 GROUP BY turn.peer
      """)

  /// Finds a first ICE attempt that failed because it had too few candidates (rtcstats' icewarmup).
  static let iceWarmUp = FindingRule(
    id: "ice-warm-up", severity: .low, title: "ICE failed before all candidates arrived",
    scope: .connection,
    sql: """
      SELECT failed.peer AS peer, min(failed.at_ns) AS from_ns, min(candidate.at_ns) AS to_ns,
        'ICE failed with only host candidates, and a ' || min(candidate.candidate_type)
          || ' candidate arrived ' || round((min(candidate.at_ns) - min(failed.at_ns)) / 1e9, 1)
          || ' s later' AS evidence
      FROM state AS failed JOIN candidate ON candidate.peer = failed.peer
        AND candidate.at_ns > failed.at_ns AND candidate.candidate_type IN ('srflx', 'relay')
      WHERE failed.machine = 'ice-connection' AND failed.to_state = 'failed'
        AND NOT EXISTS (
          SELECT 1 FROM candidate AS other WHERE other.peer = failed.peer
            AND other.at_ns <= failed.at_ns AND other.candidate_type IN ('srflx', 'relay'))
      GROUP BY failed.peer
      """)
}

import Tape

// Rules about STUN and TURN servers, and sockets.

extension FindingRule {
  /// Failures from `icecandidateerror` and from the stack: a STUN error code, or no response.
  private static let serverFailures = """
        failure AS (
          SELECT peer, at_ns, detail ->> '$.reason' AS reason,
            detail ->> '$.reason' LIKE '%: the server does not answer%' AS is_gone
          FROM event WHERE type = 'refused' AND detail ->> '$.layer' = 'turn'
          UNION ALL
          SELECT peer, at_ns, (detail ->> '$.url') || ': ' || (detail ->> '$.errorCode') || ' '
              || (detail ->> '$.errorText'), detail ->> '$.errorCode' = 701
          FROM event WHERE type = 'icecandidateerror'
            AND peer NOT IN (
              SELECT peer FROM event
              WHERE type = 'refused' AND detail ->> '$.layer' = 'turn')
        )
    """

  /// Finds a server that refuses: 401 for credentials, 403 for a forbidden address, 486 for a
  /// quota, 508 for capacity (RFC 8656 section 19).
  static let turnRefused = FindingRule(
    id: "turn-refused", severity: .medium, title: "TURN server refused", scope: .connection,
    sql: """
      WITH
      \(serverFailures),
        relayed AS (
          SELECT peer, min(from_ns) AS from_ns, max(to_ns) AS to_ns FROM selected_pair
          WHERE local_type = 'relay' GROUP BY peer
        ),
        -- A call over a relay that is lost ends with the lifetime of the allocation.
        lost AS (
          SELECT failure.peer AS peer, max(state_time.to_ns) AS to_ns
          FROM failure JOIN relayed ON relayed.peer = failure.peer
            AND failure.at_ns >= relayed.from_ns
          JOIN state_time ON state_time.peer = failure.peer AND machine = 'ice-connection'
            AND state IN ('disconnected', 'failed')
            AND state_time.from_ns >= failure.at_ns - 1000000000
          WHERE NOT is_gone GROUP BY failure.peer
        )
      SELECT failure.peer AS peer, min(at_ns) AS from_ns,
        max(max(at_ns), coalesce(max(lost.to_ns), 0)) AS to_ns,
        group_concat(DISTINCT iif(instr(reason, ': ') > 0,
          substr(reason, 1, instr(reason, ': ') - 1) || ' answered '
            || substr(reason, instr(reason, ': ') + 2), reason))
          || iif(max(lost.peer) IS NULL, '', ', while the call was using it')
          || iif(failure.peer IN (
              SELECT peer FROM peer WHERE configuration ->> '$.iceTransportPolicy' = 'relay'
            ) AND failure.peer NOT IN (
              SELECT peer FROM candidate
              WHERE type = 'local-candidate' AND candidate_type = 'relay'),
            '; it may only use relays (iceTransportPolicy) and has none, so it cannot connect', '')
          AS evidence,
        count(*) AS count,
        -- A call that connected does not need the relay.
        iif(max(lost.peer) IS NULL AND failure.peer IN (
          SELECT peer FROM state
          WHERE machine = 'ice-connection' AND to_state IN ('connected', 'completed')
        ), 'low', 'high') AS severity
      FROM failure LEFT JOIN lost ON lost.peer = failure.peer
      WHERE NOT is_gone GROUP BY failure.peer
      """,
    detector: findRefusedRequests)

  /// Returns the meaning of a TURN server's refusal (RFC 8656 section 19); empty for other codes.
  private static func meaning(of code: Int) -> String {
    switch code {
    case 401: " (wrong user name or password)"
    case 403: " (it may not relay to that address)"
    case 437: " (it does not know this relay)"
    case 486: " (this user has too many relays)"
    case 508: " (it has no room for another relay)"
    default: ""
    }
  }

  private static let turnMethods = [
    3: "Allocate", 4: "Refresh", 8: "CreatePermission", 9: "ChannelBind",
  ]

  /// Adds the name of the refused request, known from the response on the wire, to the evidence of
  /// the query's detections.
  private static func findRefusedRequests(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found = try TakeFindings.ask(turnRefused, connection)
    for place in found.indices {
      let one = found[place]
      let response = facts.network.datagrams.refusals.first {
        $0.peer == one.peer && $0.at == one.fromNanoseconds
          && one.evidence.contains(" answered \($0.code) ")
      }
      guard let response, let method = turnMethods[response.method] else { continue }
      found[place].evidence = one.evidence.replacing(
        " answered \(response.code) ", with: " answered \(method) with \(response.code) ")
    }
    for place in found.indices {
      found[place].evidence = found[place].evidence.replacing(
        "401 Unauthorized", with: "401 Unauthorized\(meaning(of: 401))")
    }
    return found
  }

  /// Finds a server that refuses a client in an observed call; its responses are not encrypted.
  ///
  /// A client's first 401 is the challenge (RFC 8489 section 9.2.4), and 438 asks for a fresh
  /// nonce.
  static let turnRefusedOnTheWire = FindingRule(
    id: "turn-refused-seen", severity: .medium, title: "TURN server refused a client",
    scope: .connection, silentUnder: ["turn-refused"],
    sql: """
      SELECT peer, at_ns, local, remote, hex(bytes) AS message FROM packet
      WHERE protocol = 'stun' AND direction = 'in' AND substr(hex(bytes), 1, 4) IN ('0113', '0114')
      """,
    detector: findRefusals)

  private static func findRefusals(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      let all = facts.network.datagrams.refusals.filter {
        $0.peer == peer.number && turnMethods[$0.method] != nil
      }
      let challenges = all.filter { $0.code == 401 }
      let named = all.filter { ![401, 438, 300].contains($0.code) }
      // The first 401 is the challenge; a client with the right password gets no third 401.
      let refused = named.isEmpty && challenges.count >= 3 ? challenges : named
      guard let first = refused.first, let last = refused.last else { continue }
      found.append(
        Detection(
          "turn-refused-seen", peer: peer.number, from: first.at, to: last.at,
          "\(turnMethods[first.method] ?? "") was answered with \(first.code)"
            + "\(meaning(of: Int(first.code))), "
            + (refused.count == 1 ? "once" : "\(refused.count) times"),
          impact: FindingImpact(count: Int64(refused.count)),
          severity: peer.live == nil ? .high : .low))
    }
    return found
  }

  static let turnUnreachable = FindingRule(
    id: "turn-unreachable", severity: .medium, title: "STUN or TURN server does not answer",
    scope: .connection,
    thresholds: [
      Threshold(
        "least_requests", 4, "", "of one call; the fourth goes 3.5 s after the first (RFC 8489)")
    ],
    sql: """
      WITH
      \(serverFailures)
      SELECT peer, coalesce((
          SELECT min(at_ns) FROM state
          WHERE state.peer = failure.peer AND machine = 'ice-gathering' AND to_state = 'gathering'
        ), min(at_ns)) AS from_ns, max(at_ns) AS to_ns,
        'no answer arrived: ' || group_concat(DISTINCT reason) AS evidence, count(*) AS count,
        iif(peer IN (
          SELECT peer FROM state
          WHERE machine = 'ice-connection' AND to_state IN ('connected', 'completed')
        ), 'low', 'high') AS severity
      FROM failure WHERE is_gone GROUP BY peer
      UNION ALL
      -- Calls that were abandoned before their requests timed out.
      SELECT peer, min(at_ns), max(at_ns),
        count(*) || ' requests for a relay were not answered', count(*), 'high'
      FROM packet
      WHERE protocol = 'stun' AND direction = 'out' AND substr(bytes, 1, 2) = x'0003'
        AND peer NOT IN (SELECT peer FROM failure WHERE is_gone)
        AND peer NOT IN (
          SELECT peer FROM state
          WHERE machine = 'ice-connection' AND to_state IN ('connected', 'completed'))
        AND peer NOT IN (
          SELECT peer FROM packet
          WHERE protocol = 'stun' AND direction = 'in'
            AND substr(bytes, 1, 2) IN (x'0103', x'0113'))
      GROUP BY peer HAVING count(*) >= :least_requests
      """)

  /// Finds servers whose first candidate arrived more than 500 ms after gathering began (rtcstats'
  /// highstundelay and highturndelay).
  static let slowServer = FindingRule(
    id: "slow-server", severity: .low, title: "Slow STUN or TURN server", scope: .connection,
    thresholds: [
      Threshold("least_ms", 500, "ms", "rtcstats highstundelay, highturndelay")
    ],
    sql: """
      WITH
        first AS (
          SELECT peer, candidate_type, min(at_ns) AS at_ns FROM candidate
          WHERE type = 'local-candidate' AND candidate_type IN ('srflx', 'relay')
          GROUP BY peer, candidate_type
        ),
        gathering AS (
          SELECT peer, min(at_ns) AS at_ns FROM state
          WHERE machine = 'ice-gathering' AND to_state = 'gathering' GROUP BY peer
        )
      SELECT first.peer AS peer, gathering.at_ns AS from_ns, first.at_ns AS to_ns,
        'the first ' || iif(candidate_type = 'relay', 'relayed', 'reflexive')
          || ' candidate was found after ' || ((first.at_ns - gathering.at_ns) / 1000000) || ' ms'
          AS evidence, (first.at_ns - gathering.at_ns) / 1e6 AS delay_ms
      FROM first JOIN gathering USING (peer)
      WHERE first.at_ns - gathering.at_ns > :least_ms * 1000000
      """)

  /// Finds sockets that the system refuses to bind.
  static let socketRefused = FindingRule(
    id: "socket-refused", severity: .medium, title: "Socket refused by the system", scope: .end,
    sql: """
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        count(*) || iif(count(*) = 1, ' request was', ' requests were')
          || ' refused: errno ' || group_concat(DISTINCT code) AS evidence, count(*) AS count,
        iif(peer IN (
          SELECT peer FROM state
          WHERE machine = 'ice-connection' AND to_state IN ('connected', 'completed')
        ), 'low', 'medium') AS severity
      FROM network WHERE kind = 'bind-failed' GROUP BY peer
      """)

  static let sendFailed = FindingRule(
    id: "send-failed", severity: .medium, title: "Datagrams that the system did not send",
    scope: .end,
    thresholds: [
      Threshold("least_packets", 20, "packets", "fewer go with a socket that closes; our choice")
    ],
    sql: """
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        sum(packets) || ' datagrams were not sent: errno ' || group_concat(DISTINCT code)
          AS evidence, sum(packets) AS count
      FROM network WHERE kind = 'send-failed'
      GROUP BY peer HAVING sum(packets) >= :least_packets
      """)
}

/// What an expert would look for in a take, each with the SQL that finds it.
///
/// Every query gives peer, from_ns, to_ns and the evidence as a sentence.
package struct ProblemRule: Sendable {
  /// The name of the problem, in lower case with hyphens.
  package let name: String
  /// The query, one statement.
  package let sql: String

  /// All rules in the order in which a session can go wrong.
  package static let all: [ProblemRule] = [
    neverConnected, disconnected, flapping, relay, roundTrip, oneWay, loss, lossBurst, lossAtPeer,
    noKeyFrame, freeze, stopped, concealed, silence, mutedSpeech,
    speechWhileMuted, limited, sequenceRestart, rtcpOfOtherSource, unevenTimestamps,
  ]

  /// When the take ends; one that was cut short has no ending.
  static let end = "coalesce((SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape))"

  private static let neverConnected = ProblemRule(
    name: "never-connected",
    sql: """
      -- An end that was only seen has no state of its connection but that of ICE, and what was seen
      -- of ICE may begin in the middle: media that comes is a connection.
      SELECT peer, min(at_ns) AS from_ns, \(end) AS to_ns,
        'the connection was never connected; it went through '
          || group_concat(to_state, ', ') AS evidence
      FROM state
      WHERE machine = 'connection' OR machine = 'ice-connection'
        AND peer NOT IN (SELECT peer FROM state WHERE machine = 'connection')
      GROUP BY peer HAVING sum(to_state IN ('connected', 'completed')) = 0
        AND peer NOT IN (
          SELECT path_end.peer FROM packet_store JOIN path_end USING (path)
          WHERE marker_type IS NOT NULL AND path_end.direction = 'in')
      """)

  private static let disconnected = ProblemRule(
    name: "disconnected",
    sql: """
      SELECT peer, from_ns, to_ns,
        machine || ' was ' || state || ' for ' || round(seconds, 1) || ' s' AS evidence
      FROM state_time
      WHERE machine = 'ice-connection' AND state IN ('disconnected', 'failed')
      """)

  private static let flapping = ProblemRule(
    name: "ice-flapping",
    sql: """
      SELECT peer, min(from_ns) AS from_ns, max(from_ns) AS to_ns,
        count(*) || ' changes of the selected pair within 10 s' AS evidence
      FROM (
        SELECT peer, from_ns, from_ns / 10000000000 AS part FROM selected_pair
        UNION ALL
        SELECT peer, from_ns, from_ns / 10000000000 FROM state_time
        WHERE machine = 'ice-connection' AND state = 'disconnected'
      )
      GROUP BY peer, part HAVING count(*) >= 4
      """)

  private static let relay = ProblemRule(
    name: "relay-in-use",
    sql: """
      SELECT peer, from_ns, to_ns,
        local || ' (' || local_type || ') to ' || remote || ' (' || remote_type || ')' AS evidence
      FROM selected_pair WHERE 'relay' IN (local_type, remote_type)
      """)

  private static let roundTrip = ProblemRule(
    name: "high-round-trip",
    sql: """
      WITH slow AS (
        SELECT peer, at_ns, checks, 0 AS reports, round_trip_ms FROM round_trip
        UNION ALL
        SELECT peer, at_ns, 0, 1, round_trip_ms FROM media_round_trip
      )
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        iif(sum(checks) > 0, sum(checks) || ' connectivity checks', '')
          || iif(sum(checks) > 0 AND sum(reports) > 0, ' and ', '')
          || iif(sum(reports) > 0, sum(reports) || ' round trips that RTCP measured', '')
          || ' took more than 300 ms, the longest '
          || CAST(round(max(round_trip_ms)) AS INTEGER) || ' ms' AS evidence
      FROM slow WHERE round_trip_ms > 300
      GROUP BY peer
      """)

  private static let oneWay = ProblemRule(
    name: "one-way-media",
    sql: """
      WITH
        span AS (
          SELECT peer, from_ns, to_ns FROM state_time
          WHERE machine = 'connection' AND state IN ('connected', 'disconnected')
        ),
        way AS (
          SELECT DISTINCT track.peer AS peer, direction, span.from_ns AS from_ns,
            span.to_ns AS to_ns
          FROM track JOIN span ON span.peer = track.peer AND track.at_ns < span.to_ns
        ),
        instant AS (
          SELECT way.peer AS peer, way.direction AS direction, from_ns, packet.at_ns AS at_ns
          FROM way JOIN packet ON packet.peer = way.peer AND packet.direction = way.direction
            AND packet.protocol = 'rtp' AND packet.at_ns BETWEEN from_ns AND to_ns
          UNION ALL SELECT peer, direction, from_ns, from_ns FROM way
          UNION ALL SELECT peer, direction, from_ns, to_ns FROM way
        ),
        gap AS (
          SELECT peer, direction, lag(at_ns) OVER way AS begin_ns, at_ns AS end_ns
          FROM instant WINDOW way AS (PARTITION BY peer, direction, from_ns ORDER BY at_ns)
        ),
        judged AS (
          SELECT peer, direction, begin_ns, end_ns, (
            SELECT count(*) FROM packet
            WHERE packet.peer = gap.peer AND packet.direction <> gap.direction
              AND packet.protocol = 'rtp' AND packet.at_ns > begin_ns AND packet.at_ns < end_ns
          ) AS others
          FROM gap WHERE end_ns - begin_ns >= 2000000000
        )
      SELECT peer, begin_ns AS from_ns, end_ns AS to_ns,
        'no media came ' || direction || ' for ' || round((end_ns - begin_ns) / 1e9, 1)
          || ' s while ' || others || ' packets went the other way' AS evidence
      FROM judged WHERE others * 1e9 >= 5.0 * (end_ns - begin_ns)
      """)

  private static let loss = ProblemRule(
    name: "loss",
    sql: """
      SELECT loss.peer AS peer, first_ns AS from_ns, last_ns AS to_ns,
        lost || ' of ' || expected || ' packets of ssrc ' || loss.ssrc || ' did not come ('
          || round(100.0 * lost / expected, 1) || ' %)' AS evidence
      FROM loss JOIN (
        SELECT peer, direction, ssrc, min(first_ns) AS first_ns, max(last_ns) AS last_ns
        FROM stream GROUP BY peer, direction, ssrc
      ) AS span USING (peer, direction, ssrc)
      WHERE direction = 'in' AND expected >= 50 AND lost * 50 >= expected
      """)

  private static let lossBurst = ProblemRule(
    name: "loss-burst",
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
        missing || ' packets of ssrc ' || ssrc || ' in a row did not come' AS evidence
      FROM sorted WHERE missing >= 5
      """)

  /// What the other side does not get shows in its reports alone when only this side is recorded.
  private static let lossAtPeer = ProblemRule(
    name: "loss-at-peer",
    sql: """
      SELECT peer, from_ns, to_ns,
        'the other side says that ' || lost || ' of ' || (lost + received)
          || ' packets of ssrc ' || ssrc || ' did not come ('
          || round(100.0 * lost / (lost + received), 1) || ' %)' AS evidence
      FROM (
        SELECT peer, members ->> '$.ssrc' AS ssrc, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
          max(members ->> '$.packetsLost') AS lost,
          max(members ->> '$.packetsReceived') AS received
        FROM stat WHERE type = 'remote-inbound-rtp' GROUP BY peer, ssrc
      )
      WHERE lost + received >= 50 AND lost * 50 >= lost + received
      """)

  private static let limited = ProblemRule(
    name: "encoder-limited",
    sql: """
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        count(*) || iif(count(*) = 1, ' sample', ' samples') || ' of ssrc ' || ssrc
          || iif(count(*) = 1, ' was', ' were') || ' limited by ' || reason AS evidence
      FROM (
        SELECT peer, at_ns, members ->> '$.ssrc' AS ssrc,
          members ->> '$.qualityLimitationReason' AS reason
        FROM stat WHERE type = 'outbound-rtp'
      )
      WHERE reason <> 'none' GROUP BY peer, ssrc, reason
      HAVING max(at_ns) - min(at_ns) >= 1000000000
      """)
}

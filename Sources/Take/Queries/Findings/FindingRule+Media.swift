// Rules about media that does not arrive, whatever its kind.

extension FindingRule {
  // MARK: Negotiated media

  /// The negotiated directions as `agreed`: a row for each period in which a peer's direction was
  /// active for a kind of media; a row with an empty kind covers all kinds together.
  ///
  /// Only answers count: an offer alone changes nothing. Without descriptions, a track is active
  /// from its agreement until the remote peer ends it. Observed media is active from its first
  /// packet.
  static let agreed = """
        answer AS (
          -- A message is the description, or JSON that contains it with escaped line ends.
          SELECT row, peer, at_ns, direction, '[' || replace(json_quote(replace(replace(replace(
            CAST(message AS TEXT), char(13), ''), '\\r', ''), '\\n', char(10))), '\\n', '","')
            || ']' AS lines
          FROM signaling WHERE type IN ('answer', 'pranswer')
        ),
        line AS MATERIALIZED (
          SELECT answer.row AS row, answer.peer AS peer, answer.at_ns AS at_ns,
            answer.direction AS direction, each.key AS number, each.value AS text
          FROM answer, json_each(iif(json_valid(lines), lines, '[]')) AS each
          WHERE each.value LIKE 'm=%'
            OR each.value IN ('a=sendrecv', 'a=sendonly', 'a=recvonly', 'a=inactive')
        ),
        section AS (
          SELECT row, peer, at_ns, direction, max(iif(text LIKE 'm=%', text, NULL)) AS head,
            coalesce(max(iif(text LIKE 'a=%', text, NULL)), 'a=sendrecv') AS way
          FROM (
            SELECT *, sum(text LIKE 'm=%') OVER (PARTITION BY row ORDER BY number) AS place
            FROM line
          ) WHERE place > 0 GROUP BY row, place
        ),
        -- What this peer receives ('in') and sends; in the remote peer's answer, it is reversed.
        turn AS (
          SELECT row, section.peer AS peer, at_ns, side.direction AS direction, side.kind AS kind,
            max(head NOT LIKE 'm=_____ 0 %' AND head LIKE 'm=' || side.pattern AND way IN (
              'a=sendrecv',
              iif((section.direction = 'in') = (side.direction = 'in'), 'a=sendonly', 'a=recvonly')
            )) AS is_on
          FROM section JOIN (
            SELECT 'in' AS direction, 'audio' AS kind, 'audio%' AS pattern
            UNION ALL VALUES ('in', 'video', 'video%'), ('in', '', '_____ %'),
              ('out', 'audio', 'audio%'), ('out', 'video', 'video%'), ('out', '', '_____ %')
          ) AS side
          GROUP BY row, side.direction, side.kind
          UNION ALL
          SELECT min(row), peer, min(at_ns), direction, kind, 1 FROM track
          WHERE kind IN ('audio', 'video') AND peer NOT IN (SELECT peer FROM section)
          GROUP BY peer, direction, kind
          UNION ALL
          SELECT min(row), peer, min(at_ns), direction, '', 1 FROM track
          WHERE kind IN ('audio', 'video') AND peer NOT IN (SELECT peer FROM section)
          GROUP BY peer, direction
        ),
        turned AS (
          SELECT * FROM (
            SELECT *, lag(is_on) OVER (PARTITION BY peer, direction, kind ORDER BY row) AS former
            FROM turn
          ) WHERE is_on IS NOT former
        ),
        agreed AS MATERIALIZED (
          SELECT peer, direction, kind, from_ns, coalesce(to_ns, 9223372036854775807) AS to_ns
          FROM (
            SELECT *, at_ns AS from_ns,
              lead(at_ns) OVER (PARTITION BY peer, direction, kind ORDER BY row) AS to_ns
            FROM turned
          ) WHERE is_on
        )
    """

  /// The periods in which each peer was connected, as `live`.
  static let lives = """
        -- When each peer was connected; for an observed peer, when its packets were seen.
        live AS MATERIALIZED (
          SELECT peer, min(from_ns) AS from_ns, max(to_ns) AS to_ns, 0 AS is_seen FROM state_time
          WHERE machine = 'connection' AND state IN ('connected', 'disconnected') GROUP BY peer
          UNION ALL
          SELECT path_end.peer, min(first_ns), max(last_ns), 1
          FROM path_end JOIN peer ON peer.peer = path_end.peer AND role = 'observed'
          JOIN (
            SELECT path, min(at_ns) AS first_ns, max(at_ns) AS last_ns FROM packet_store
            WHERE ssrc IS NOT NULL GROUP BY path
          ) USING (path)
          GROUP BY path_end.peer
        )
    """

  /// The common table expressions `agreed` and `live`.
  static let agreements = "\(agreed),\n\(lives)"

  /// The periods in which a peer should have received or sent media, as `span`.
  private static let spans = """
        span AS MATERIALIZED (
          SELECT agreed.peer AS peer, direction, max(agreed.from_ns, live.from_ns) AS from_ns,
            min(agreed.to_ns, live.to_ns) AS to_ns
          FROM agreed JOIN live ON live.peer = agreed.peer
            AND agreed.from_ns < live.to_ns AND live.from_ns < agreed.to_ns
          -- Both ends of an observed call have the same packets, so each direction is judged at
          -- its receiver alone.
          WHERE kind = '' AND (direction = 'in' OR NOT is_seen)
        )
    """

  // MARK: Times without packets

  /// The pauses of two seconds or more between a received stream's packets, as `pause`.
  ///
  /// Each pause has the number of packets missing when the stream continues. The last pause lasts
  /// until the connection ends.
  static let pauses = """
        came AS (
          SELECT path_end.peer AS peer, packet_store.row AS row, at_ns,
            packet_store.ssrc & 0xffffffff AS ssrc, sequence, marker_type & 127 AS payload_type
          FROM packet_store JOIN path_end USING (path)
          WHERE marker_type IS NOT NULL AND path_end.direction = 'in'
        ),
        pause AS MATERIALIZED (
          SELECT peer, ssrc, begin_ns, end_ns, begin_row, end_row,
            (sequence - former - 1) & 65535 AS missing, former_type
          FROM (
            SELECT peer, ssrc, sequence, lag(at_ns) OVER stream AS begin_ns, at_ns AS end_ns,
              lag(row) OVER stream AS begin_row, row AS end_row,
              lag(sequence) OVER stream AS former, lag(payload_type) OVER stream AS former_type
            FROM came WINDOW stream AS (PARTITION BY peer, ssrc ORDER BY row)
          ) WHERE end_ns - begin_ns >= 2000000000
          UNION ALL
          SELECT peer, ssrc, at_ns, NULL, max(row), NULL, 0, payload_type
          FROM came GROUP BY peer, ssrc
        )
    """

  /// The periods of two seconds or more without expected media, with the number of packets in the
  /// other direction, as `gap`.
  private static let oneWayGaps = """
        passed AS (
          SELECT path_end.peer AS peer, path_end.direction AS direction, packet_store.row AS row,
            at_ns
          FROM packet_store JOIN path_end USING (path) WHERE marker_type IS NOT NULL
        ),
        instant AS (
          SELECT span.peer AS peer, span.direction AS direction, from_ns, at_ns, row
          FROM span JOIN passed ON passed.peer = span.peer AND passed.direction = span.direction
            AND at_ns BETWEEN from_ns AND to_ns
          UNION ALL SELECT peer, direction, from_ns, from_ns, NULL FROM span
          UNION ALL SELECT peer, direction, from_ns, to_ns, NULL FROM span
        ),
        long AS MATERIALIZED (
          SELECT * FROM (
            SELECT peer, direction, lag(at_ns) OVER way AS begin_ns, at_ns AS end_ns,
              lag(row) OVER way AS begin_row, row AS end_row
            FROM instant WINDOW way AS (PARTITION BY peer, direction, from_ns ORDER BY at_ns, row)
          ) WHERE end_ns - begin_ns >= 2000000000
        ),
        gap AS MATERIALIZED (
          SELECT peer, direction, begin_ns, end_ns, begin_row, end_row, (
            -- Reads only the rows of that time and some around it, because the kernel's time of a
            -- packet may be slightly before its step.
            SELECT count(*) FROM packet_store JOIN path_end USING (path)
            WHERE path_end.peer = long.peer AND path_end.direction <> long.direction
              AND marker_type IS NOT NULL AND at_ns > begin_ns AND at_ns < end_ns
              AND packet_store.row BETWEEN coalesce(begin_row - 65536000, 0)
                AND coalesce(end_row + 65536000, 9223372036854775807)
          ) AS others
          FROM long
        )
    """

  /// The remote peer's reports: `counted` has its sender reports with their predecessors,
  /// `reported` its report blocks on sent streams.
  static let reports = """
        counted AS MATERIALIZED (
          SELECT peer, ssrc, at_ns, fields ->> '$.packets' AS packets,
            lag(at_ns) OVER sender AS former_ns,
            lag(fields ->> '$.packets') OVER sender AS former
          FROM rtcp WHERE type = 'sr' AND direction = 'in'
          WINDOW sender AS (PARTITION BY peer, ssrc ORDER BY row)
        ),
        reported AS MATERIALIZED (
          SELECT rtcp.peer AS peer, rtcp.row AS row, rtcp.at_ns AS at_ns,
            each.value ->> '$.ssrc' AS ssrc, each.value ->> '$.highest' AS highest,
            each.value ->> '$.lost' AS lost
          FROM rtcp, json_each(rtcp.fields, '$.blocks') AS each
          WHERE rtcp.type IN ('sr', 'rr') AND rtcp.direction = 'in'
        )
    """

  // MARK: One way

  /// Finds media in one direction only: the remote peer sends and nothing arrives; or its reports
  /// show that it receives nothing; or this side sends nothing although it negotiated to.
  ///
  /// A path that is dead in both directions does not count.
  static let oneWay = FindingRule(
    id: "one-way-media", severity: .high, title: "Media in one direction only", scope: .flow,
    causes: ["disconnected"],
    silentUnder: ["never-connected"],
    sql: """
      WITH
      \(agreements),
      \(spans),
      \(pauses),
      \(oneWayGaps),
      \(oneWayJudgement)
      """, detector: findOneWay)

  private static let oneWayJudgement = """
    \(reports),
        -- The increase in lost packets from report to report, summed up to each moment: a gap's
        -- start, its end, and six seconds later, by when reports on the gap must have arrived.
        moment AS (
          SELECT peer, at_ns, lost - lag(lost, 1, lost) OVER (PARTITION BY peer, ssrc ORDER BY row)
            AS more, 1 AS is_report
          FROM reported
          UNION ALL SELECT peer, begin_ns, 0, 0 FROM gap
          UNION ALL SELECT peer, end_ns, 0, 0 FROM gap
          UNION ALL SELECT peer, end_ns + 6000000000, 0, 0 FROM gap
        ),
        sum_of_lost AS MATERIALIZED (
          SELECT DISTINCT peer, at_ns, sum(more) OVER past AS lost,
            sum(is_report) OVER past AS reports
          FROM moment WINDOW past AS (PARTITION BY peer ORDER BY at_ns)
        ),
        -- Whether the media was sent, and whether the other direction worked.
        judged AS (
          SELECT gap.*,
            after.reports > until.reports AS has_reports,
            others - max(0, after.lost - since.lost) AS delivered,
            EXISTS (
              SELECT 1 FROM packet_store JOIN path_end USING (path)
              WHERE path_end.peer = gap.peer AND path_end.direction = gap.direction
                AND marker_type IS NULL AND at_ns > begin_ns AND at_ns < end_ns
                AND packet_store.row BETWEEN coalesce(begin_row, 0)
                  AND coalesce(end_row, 9223372036854775807)
            ) AS is_alive,
            -- It was sent: sequence numbers are missing, or sender reports count it.
            begin_row IS NULL AND end_row IS NULL AND NOT EXISTS (
                SELECT 1 FROM pause WHERE pause.peer = gap.peer AND pause.begin_ns < gap.begin_ns)
              OR EXISTS (
                SELECT 1 FROM pause WHERE pause.peer = gap.peer AND pause.begin_ns <= gap.begin_ns
                  AND pause.end_ns >= gap.end_ns AND missing BETWEEN 1 AND 32767)
              OR EXISTS (
                SELECT 1 FROM counted WHERE counted.peer = gap.peer AND counted.at_ns <= gap.end_ns
                  AND counted.at_ns > gap.begin_ns
                  AND (former_ns >= gap.begin_ns AND packets > former
                    OR former_ns IS NULL AND packets > 0 AND counted.ssrc NOT IN (
                      SELECT ssrc FROM pause WHERE pause.peer = gap.peer)))
              AS is_sent
          FROM gap
          LEFT JOIN sum_of_lost AS since ON since.peer = gap.peer AND since.at_ns = gap.begin_ns
          LEFT JOIN sum_of_lost AS until ON until.peer = gap.peer AND until.at_ns = gap.end_ns
          LEFT JOIN sum_of_lost AS after
            ON after.peer = gap.peer AND after.at_ns = gap.end_ns + 6000000000
          WHERE others * 1e9 >= 5.0 * (end_ns - begin_ns)
        ),
        -- Consecutive reports in which the counters of a sent stream do not advance.
        still AS (
          SELECT peer, ssrc, highest, min(at_ns) AS begin_ns, max(at_ns) AS end_ns,
            min(row) AS begin_row, max(row) AS end_row, count(*) AS times
          FROM (
            SELECT *, sum(is_other) OVER (PARTITION BY peer, ssrc ORDER BY row) AS run
            FROM (
              SELECT *, highest IS NOT lag(highest) OVER (PARTITION BY peer, ssrc ORDER BY row)
                AS is_other
              FROM reported
            )
          ) GROUP BY peer, ssrc, run
          HAVING times >= 2 AND end_ns - begin_ns >= 2000000000
        ),
        deaf AS (
          SELECT still.*, (
            SELECT count(*) FROM packet_store JOIN path_end USING (path)
            WHERE path_end.peer = still.peer AND path_end.direction = 'out'
              AND marker_type IS NOT NULL AND packet_store.ssrc & 0xffffffff = still.ssrc
              AND packet_store.row BETWEEN begin_row AND end_row
          ) AS sent
          FROM still
        )
      SELECT peer, begin_ns AS from_ns, end_ns AS to_ns,
        'no media arrived for ' || round((end_ns - begin_ns) / 1e9, 1)
          || ' s while ' || others || ' packets went in the other direction' AS evidence
      FROM judged
      WHERE direction = 'in' AND is_sent AND iif(has_reports, delivered * 1e9
          >= 5.0 * (end_ns - begin_ns), is_alive)
      UNION ALL
      SELECT peer, begin_ns, end_ns,
        'no media was sent for ' || round((end_ns - begin_ns) / 1e9, 1)
          || ' s while ' || others || ' packets arrived in the other direction'
      FROM judged
      WHERE direction = 'out' AND NOT EXISTS (
        -- The application had removed the source.
        SELECT 1 FROM (
          SELECT arguments FROM call_request WHERE call_request.peer = judged.peer
            AND name = 'replaceSource' AND call_request.at_ns <= judged.begin_ns + 1000000000
          ORDER BY row DESC LIMIT 1
        ) WHERE arguments ->> '$._1' IS NULL)
      UNION ALL
      SELECT peer, begin_ns, end_ns,
        'nothing of ssrc ' || ssrc || ' arrived at the remote peer for '
          || round((end_ns - begin_ns) / 1e9, 1) || ' s: ' || sent || ' packets were sent, and '
          || times || ' of its reports show no progress'
      FROM deaf WHERE sent * 1e9 >= 5.0 * (end_ns - begin_ns)
    """
}

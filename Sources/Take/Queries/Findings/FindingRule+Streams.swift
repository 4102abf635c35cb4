// Rules about RTP streams: their numbers, their times, and the reports on them.

extension FindingRule {
  /// The packets that came, with the part of their stream that they are of: a sender that begins
  /// its sequence numbers anew begins a part, as in the view `loss`.
  static let sequenceParts = """
      spaced AS (
        SELECT peer, ssrc, row, at_ns, sequence,
          lag(sequence) OVER stream AS former,
          ((sequence - lag(sequence) OVER stream + 32768) & 65535) - 32768 AS step_size,
          ((rtp_time - lag(rtp_time) OVER stream + 0x80000000) & 0xffffffff) - 0x80000000 AS ticks,
          at_ns - lag(at_ns) OVER stream AS pause,
          lag(at_ns) OVER stream - first_value(at_ns) OVER stream AS lasted,
          row_number() OVER stream - 1.0 AS packets
        FROM packet WHERE protocol = 'rtp' AND direction = 'in'
        WINDOW stream AS (PARTITION BY peer, ssrc ORDER BY row)
      ),
      marked AS (
        SELECT peer, ssrc, row, at_ns, sequence, former, coalesce(step_size, 0) AS step_size,
          coalesce((abs(step_size) >= 3000 OR step_size <= -100 AND ticks > 0) AND NOT (
            step_size > 0
            AND step_size * 1.0 * lasted BETWEEN packets * pause / 2 AND packets * pause * 2), 0)
            AS begins
        FROM spaced
      ),
      parted AS (
        SELECT *, sum(begins) OVER (PARTITION BY peer, ssrc ORDER BY row) AS part FROM marked
      )
    """

  /// A part of a single packet is no beginning: it came from elsewhere.
  static let sequenceRestart = FindingRule(
    id: "sequence-restart", severity: .medium, title: "Sequence numbers began anew",
    sql: """
      WITH
      \(sequenceParts)
      SELECT peer, at_ns AS from_ns, at_ns AS to_ns,
        'the sequence numbers of ssrc ' || ssrc || ' began anew: ' || sequence || ' after '
          || former || '; a receiver of SRTP may refuse such packets as repeated ones' AS evidence
      FROM (
        SELECT *, lag(size) OVER (PARTITION BY peer, ssrc ORDER BY row) AS former_size
        FROM (SELECT *, count(*) OVER (PARTITION BY peer, ssrc, part) AS size FROM parted)
      )
      WHERE begins AND size > 1 AND former_size > 1
      """, detector: findRestarts)

  /// A stream that is paused has reports without packets, too; those say that nothing is sent.
  static let rtcpOfOtherSource = FindingRule(
    id: "rtcp-other-ssrc", severity: .low, title: "Sender reports of another source",
    sql: """
      WITH
        source AS (
          SELECT DISTINCT path_end.peer AS peer, packet_store.ssrc & 0xffffffff AS ssrc
          FROM packet_store JOIN path_end USING (path)
          WHERE marker_type IS NOT NULL AND path_end.direction = 'in'
        ),
        sender AS (
          SELECT peer, ssrc, count(*) AS reports, min(at_ns) AS from_ns, max(at_ns) AS to_ns
          FROM rtcp WHERE type = 'sr' AND direction = 'in'
          GROUP BY peer, ssrc
          HAVING max(fields ->> '$.packets') > min(fields ->> '$.packets')
        )
      SELECT sender.peer AS peer, from_ns, to_ns,
        reports || ' sender reports are of ssrc ' || sender.ssrc
          || ', of which no packet came, and none of ssrc ' || min(other.ssrc)
          || ': a receiver cannot tell whose clock they state' AS evidence
      FROM sender
        JOIN source AS other ON other.peer = sender.peer
          AND NOT EXISTS (
            SELECT 1 FROM rtcp WHERE type = 'sr' AND direction = 'in' AND rtcp.peer = other.peer
              AND rtcp.ssrc = other.ssrc)
      WHERE NOT EXISTS (
        SELECT 1 FROM source WHERE source.peer = sender.peer AND source.ssrc = sender.ssrc)
      GROUP BY sender.peer, sender.ssrc
      """, detector: findForeignReports)

  /// Packets of these codecs last multiples of 2.5 ms.
  ///
  /// A longer step is a pause where the packet came later by as much.
  static let unevenTimestamps = FindingRule(
    id: "uneven-timestamps", severity: .medium, title: "Uneven timestamps",
    thresholds: [
      .init("least_share", 10, "%", "of the steps, so that single ones are no finding"),
      .init("least_steps", 20, "steps", "fewer are none"),
    ],
    sumsUp: true,
    sql: """
      WITH
        clock AS (
          -- What was concluded of a stream may be revised: the last row counts.
          SELECT peer, ssrc, payload_type, clock_rate AS rate FROM track
          WHERE row IN (
              SELECT max(row) FROM track WHERE direction = 'in' GROUP BY peer, ssrc, payload_type)
            AND codec IN ('opus', 'red', 'pcmu', 'pcma', 'g722') AND kind = 'audio'
            AND clock_rate > 0 AND clock_rate % 400 = 0
        ),
        spaced AS (
          SELECT packet.peer AS peer, packet.ssrc AS ssrc, at_ns, rate,
            (sequence - lag(sequence) OVER stream) & 65535 AS step_size,
            (rtp_time - lag(rtp_time) OVER stream) & 0xffffffff AS ticks,
            at_ns - lag(at_ns) OVER stream AS pause
          FROM packet JOIN clock USING (peer, ssrc, payload_type)
          WHERE protocol = 'rtp' AND direction = 'in'
          WINDOW stream AS (PARTITION BY packet.peer, packet.ssrc ORDER BY row)
        ),
        step AS (
          SELECT peer, ssrc, at_ns, rate, ticks, pause FROM spaced
          WHERE step_size = 1 AND ticks BETWEEN 1 AND 0x7fffffff
        ),
        usual AS (
          SELECT peer, ssrc, ticks FROM (
            SELECT peer, ssrc, ticks, row_number()
              OVER (PARTITION BY peer, ssrc ORDER BY count(*) DESC, ticks) AS place
            FROM step GROUP BY peer, ssrc, ticks
          ) WHERE place = 1
        )
      SELECT step.peer AS peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        sum(is_uneven) || ' of ' || count(*) || ' steps between the timestamps of ssrc '
          || step.ssrc || ' are no lengths of packets, although none is missing: a receiver '
          || 'conceals or shortens what lies between' AS evidence
      FROM (
        SELECT step.peer AS peer, step.ssrc AS ssrc, at_ns,
          step.ticks * 400 % rate <> 0
            OR step.ticks > usual.ticks AND pause * 1e-9 * rate < 0.6 * step.ticks AS is_uneven
        FROM step JOIN usual ON usual.peer = step.peer AND usual.ssrc = step.ssrc
      ) AS step
      GROUP BY step.peer, step.ssrc HAVING sum(is_uneven) >= 20 AND sum(is_uneven) * 10 >= count(*)
      """, detector: findUnevenSteps)
}

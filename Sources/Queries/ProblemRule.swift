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
    speechWhileMuted, limited,
  ]

  /// When the take ends; one that was cut short has no ending.
  private static let end = "coalesce((SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape))"

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
        ordered AS (
          SELECT peer, ssrc, row, at_ns,
            sequence - lag(sequence) OVER (PARTITION BY peer, ssrc ORDER BY row) AS step_size
          FROM packet WHERE protocol = 'rtp' AND direction = 'in'
        ),
        extended AS (
          SELECT peer, ssrc, at_ns,
            sum(coalesce(((step_size + 32768) & 65535) - 32768, 0))
              OVER (PARTITION BY peer, ssrc ORDER BY row) AS position
          FROM ordered
        ),
        sorted AS (
          SELECT peer, ssrc, at_ns, lag(at_ns) OVER stream AS before_ns,
            position - lag(position) OVER stream - 1 AS missing
          FROM extended WINDOW stream AS (PARTITION BY peer, ssrc ORDER BY position, at_ns)
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

  private static let noKeyFrame = ProblemRule(
    name: "no-key-frame",
    sql: """
      WITH
        moment AS (
          SELECT peer, ssrc, at_ns, at_ns AS key_ns FROM frame
          WHERE kind = 'video' AND direction = 'in' AND key = 1
            AND outcome IN ('decoded', 'not decoded')
          UNION ALL
          SELECT peer, ssrc, at_ns, NULL FROM rtcp
          WHERE direction = 'out' AND type IN ('pli', 'fir')
        ),
        -- The first key frame after each of them; backwards, which SQLite does in one pass.
        request AS (
          SELECT peer, ssrc, at_ns, key_ns, min(key_ns) OVER (
            PARTITION BY peer, ssrc ORDER BY at_ns DESC
            GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
          ) AS answer_ns
          FROM moment
        ),
        waiting AS (
          SELECT peer, ssrc, min(at_ns) AS from_ns, count(*) AS requests,
            coalesce(answer_ns, \(end)) AS to_ns
          FROM request WHERE key_ns IS NULL GROUP BY peer, ssrc, answer_ns
        )
      SELECT peer, from_ns, to_ns,
        requests || ' requests for a key frame of ssrc ' || ssrc || ', none shown for '
          || round((to_ns - from_ns) / 1e9, 1) || ' s' AS evidence
      FROM waiting WHERE to_ns - from_ns >= 2000000000
      """)

  /// The time between one shown video frame and the next, where it is long: `gap`, with the packets
  /// of the stream that came, how many of them are not the next frame's, and how many are missing.
  ///
  /// Only the rows of such a time are looked at, which the numbers of the frames' rows bound.
  private static let gaps = """
        coming AS MATERIALIZED (SELECT path, peer FROM path_end WHERE direction = 'in'),
        shown AS (
          SELECT frame_store.row AS row, peer, ssrc, track, at_ns, rtp_time & 0xffffffff AS rtp_time
          FROM frame_store JOIN format USING (format)
          WHERE kind = 'video' AND direction = 'in' AND outcome IN ('decoded', 'not decoded')
        ),
        long AS MATERIALIZED (
          SELECT * FROM (
            SELECT peer, ssrc, track, rtp_time, lag(at_ns) OVER picture AS from_ns, at_ns AS to_ns,
              lag(row, 2, 0) OVER picture AS former_row, lag(row) OVER picture AS from_row,
              row AS to_row, 0 AS is_last
            FROM shown WINDOW picture AS (PARTITION BY peer, track ORDER BY row)
            UNION ALL
            SELECT peer, ssrc, track, NULL, max(at_ns), \(lastMoment), max(row), max(row),
              1 << 62, 1
            FROM shown GROUP BY peer, track
          ) WHERE to_ns - from_ns >= 150000000
        ),
        gap AS MATERIALIZED (
          SELECT peer, ssrc, track, from_ns, to_ns, is_last,
            (
              SELECT count(*) FROM packet_store
              WHERE packet_store.row BETWEEN from_row AND to_row AND \(isOfGap)
            ) AS packets,
            (
              SELECT count(*) FROM packet_store
              WHERE packet_store.row BETWEEN from_row AND to_row AND \(isOfGap)
                AND packet_store.rtp_time & 0xffffffff IS NOT long.rtp_time
            ) AS others,
            -- From the frame before on, so that the packet before the gap is there.
            (
              SELECT sum(max(0, ((sequence - former + 32768) & 65535) - 32769)) FROM (
                SELECT sequence, lag(sequence) OVER (ORDER BY packet_store.row) AS former
                FROM packet_store
                WHERE packet_store.row BETWEEN former_row AND to_row AND \(isOfGap)
              ) WHERE former IS NOT NULL
            ) AS missing
          FROM long
        )
    """

  private static let isOfGap = """
    marker_type IS NOT NULL AND packet_store.ssrc & 0xffffffff = long.ssrc
                AND path IN (SELECT path FROM coming WHERE coming.peer = long.peer)
    """

  /// The end of the take for a peer, or that of its connection.
  private static let lastMoment = """
    min(\(end), coalesce((
            SELECT min(at_ns) FROM state
            WHERE state.peer = shown.peer AND machine = 'connection' AND to_state = 'closed'
          ), 9223372036854775807))
    """

  /// Where the sender had no frame for a while, as of a screen on which nothing changes, nothing is
  /// missing, and all that came is the next frame: nothing stood still there.
  private static let freeze = ProblemRule(
    name: "freeze",
    sql: """
      WITH
      \(gaps)
      SELECT freeze.peer AS peer, freeze.from_ns AS from_ns, freeze.to_ns AS to_ns,
        'video track ' || freeze.track || ' stood still for ' || CAST(gap_ms AS INTEGER)
          || ' ms, where a frame usually lasts ' || CAST(mean_ms AS INTEGER) || ' ms' AS evidence
      FROM freeze LEFT JOIN gap
        ON gap.peer = freeze.peer AND gap.track = freeze.track AND gap.to_ns = freeze.to_ns
        AND gap.from_ns = freeze.from_ns
      WHERE gap.peer IS NULL OR missing > 0 OR others > 0 OR packets = 0
      """)

  /// Longer than what counts as a freeze, or for good; unless the two sides agreed on that, or the
  /// sender said good-bye.
  private static let stopped = ProblemRule(
    name: "video-stopped",
    sql: """
      WITH
      \(gaps)
      SELECT peer, from_ns, to_ns,
        'video track ' || track || ' showed no frame for ' || round((to_ns - from_ns) / 1e9, 1)
          || ' s' || iif(is_last, ', to the end', '') || ': '
          || CASE
            WHEN packets * 1e9 >= 5.0 * (to_ns - from_ns)
              THEN packets || ' packets of it came meanwhile'
                || iif(missing > 0, ', and ' || missing || ' are missing', '')
            WHEN missing > 0 THEN missing || ' packets of it are missing'
            ELSE 'its sender sent nothing, or nothing of it came'
          END AS evidence
      FROM gap
      WHERE (to_ns - from_ns > 5000000000
          OR is_last AND to_ns - from_ns > 2000000000
            AND packets * 1e9 >= 5.0 * (to_ns - from_ns))
        AND NOT EXISTS (
          SELECT 1 FROM signaling
          WHERE signaling.peer = gap.peer AND type IN ('offer', 'answer')
            AND signaling.at_ns BETWEEN from_ns - 1000000000 AND from_ns + 1000000000
        )
        AND NOT EXISTS (
          SELECT 1 FROM rtcp
          WHERE rtcp.peer = gap.peer AND direction = 'in' AND type = 'bye' AND rtcp.ssrc = gap.ssrc
            AND rtcp.at_ns BETWEEN from_ns - 1000000000 AND to_ns
        )
      """)

  private static let concealed = ProblemRule(
    name: "concealed-audio",
    sql: """
      WITH
        spaced AS (
          SELECT peer, ssrc, at_ns,
            (sequence - lag(sequence) OVER stream) & 65535 AS step_size,
            (rtp_time - lag(rtp_time) OVER stream) & 0xffffffff AS ticks
          FROM packet
          WHERE protocol = 'rtp' AND direction = 'in'
            AND (peer, ssrc) IN (SELECT peer, ssrc FROM format WHERE kind = 'audio')
          WINDOW stream AS (PARTITION BY peer, ssrc ORDER BY row)
        ),
        usual AS (
          SELECT peer, ssrc, min(ticks) AS ticks FROM spaced
          WHERE step_size = 1 AND ticks BETWEEN 1 AND 0x7fffffff GROUP BY peer, ssrc
        ),
        -- Blocks that the sender left out in silence (DTX): no packet is missing, only time.
        pause AS (
          SELECT spaced.peer AS peer, spaced.ssrc AS ssrc, at_ns / 1000000000 AS second,
            sum(spaced.ticks / usual.ticks - 1) AS blocks
          FROM spaced JOIN usual ON usual.peer = spaced.peer AND usual.ssrc = spaced.ssrc
          WHERE step_size = 1 AND spaced.ticks < 0x80000000
          GROUP BY spaced.peer, spaced.ssrc, second
        ),
        played AS (
          -- Concealed blocks are of no stream.
          SELECT peer, track, max(ssrc) AS ssrc, at_ns / 1000000000 AS second, count(*) AS blocks,
            sum(outcome = 'concealed') AS all_concealed
          FROM frame WHERE kind = 'audio' AND direction = 'in'
          GROUP BY peer, track, second
        ),
        poor AS (
          -- A pause is known when it ends, which may be in the next second.
          SELECT played.peer AS peer, track, played.second AS second, played.blocks AS blocks,
            max(0, all_concealed - coalesce(pause.blocks, 0) - coalesce(later.blocks, 0))
              AS concealed
          FROM played LEFT JOIN pause
            ON pause.peer = played.peer AND pause.ssrc = played.ssrc
            AND pause.second = played.second
          LEFT JOIN pause AS later
            ON later.peer = played.peer AND later.ssrc = played.ssrc
            AND later.second = played.second + 1
          WHERE played.blocks >= 20 AND concealed * 5 >= played.blocks
            AND all_concealed < played.blocks
        ),
        numbered AS (
          SELECT *, second - row_number() OVER (PARTITION BY peer, track ORDER BY second) AS run
          FROM poor
        )
      SELECT peer, min(second) * 1000000000 AS from_ns,
        min((max(second) + 1) * 1000000000, \(end)) AS to_ns,
        sum(concealed) || ' of ' || sum(blocks) || ' blocks of audio track ' || track
          || ' were concealed: their packets were lost or late' AS evidence
      FROM numbered GROUP BY peer, track, run
      """)

  private static let silence = ProblemRule(
    name: "silent-audio",
    sql: """
      WITH
        block AS (
          SELECT row, peer, track, direction, at_ns,
            CASE
              WHEN audio_level IS NOT NULL THEN audio_level >= 127
              ELSE energy = 0
            END AS is_silent
          FROM frame
          WHERE kind = 'audio'
            -- What nobody decoded is not silent, unless its sender says so.
            AND (audio_level IS NOT NULL OR outcome NOT IN ('not decoded', 'passed on'))
        ),
        numbered AS (
          SELECT *, sum(1 - is_silent) OVER (PARTITION BY peer, track, direction ORDER BY row)
            AS run
          FROM block
        )
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        count(*) || ' blocks of audio track ' || track || ' (' || direction
          || ') in a row were digital silence' AS evidence
      FROM numbered WHERE is_silent
      GROUP BY peer, track, direction, run HAVING max(at_ns) - min(at_ns) >= 3000000000
      """)

  /// The packets say that somebody speaks, and what was decoded from them is silence.
  private static let mutedSpeech = ProblemRule(
    name: "silent-while-speaking",
    sql: """
      WITH
        mute AS (
          SELECT row, peer, track, at_ns
          FROM level
          WHERE direction = 'in' AND sender_level <= 47 AND energy < samples * 107.4
        ),
        spaced AS (
          SELECT *, at_ns - lag(at_ns) OVER (PARTITION BY peer, track ORDER BY row) AS pause
          FROM mute
        ),
        numbered AS (
          SELECT *, sum(coalesce(pause, 1e9) > 5e8) OVER (PARTITION BY peer, track ORDER BY row)
            AS run
          FROM spaced
        )
      SELECT peer, min(at_ns) - 100000000 AS from_ns, max(at_ns) AS to_ns,
        'the sender of audio track ' || track || ' spoke for '
          || round((max(at_ns) - min(at_ns)) / 1e9 + 0.1, 1)
          || ' s by its own level, and nothing was heard' AS evidence
      FROM numbered GROUP BY peer, track, run HAVING count(*) >= 10
      """)

  /// Who does not say so is not told by the stack: the notice is one of genesis.
  private static let speechWhileMuted = ProblemRule(
    name: "speech-while-muted",
    sql: """
      SELECT peer, from_ns, to_ns,
        'somebody spoke for ' || round((to_ns - from_ns) / 1e9, 1) || ' s into the microphone of '
          || 'transceiver ' || transceiver || ', whose track was disabled' AS evidence
      FROM (
        SELECT peer, at_ns AS from_ns, detail ->> '$.transceiver' AS transceiver,
          detail ->> '$.phase' AS phase,
          coalesce(
            lead(at_ns) OVER (PARTITION BY peer, detail ->> '$.transceiver' ORDER BY row), \(end)
          ) AS to_ns
        FROM event WHERE type = 'mutedspeech'
      )
      WHERE phase = 'began'
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

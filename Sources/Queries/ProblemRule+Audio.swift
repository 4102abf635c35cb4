// Rules about audio.

extension ProblemRule {
  static let concealed = ProblemRule(
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

  static let silence = ProblemRule(
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
  static let mutedSpeech = ProblemRule(
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
  static let speechWhileMuted = ProblemRule(
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
}

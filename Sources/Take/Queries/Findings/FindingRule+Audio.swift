// Rules about audio.

extension FindingRule {
  static let concealed = FindingRule(
    id: "concealed-audio", severity: .medium, title: "Concealed audio",
    thresholds: [
      .init("least_share", 20, "%", "of a second, in one second at least; half a word is missing"),
      .init("low_share", 5, "%", "of each second; Webex calls more than 5 % a severe second"),
      .init("least_concealed", 5, "blocks", "of such seconds in a row, if none has least_share"),
      .init("least_blocks", 20, "blocks", "of fewer in a second no share is stated"),
    ],
    causes: [
      "disconnected", "one-way-media", "stream-gap", "sequence-restart", "uneven-timestamps",
      "loss-burst", "loss",
    ],
    sumsUp: true,
    sql: """
      WITH
        voice AS MATERIALIZED (
          SELECT path_end.peer AS peer, packet_store.ssrc & 0xffffffff AS ssrc,
            packet_store.row AS row, at_ns, sequence, packet_store.rtp_time & 0xffffffff AS rtp_time
          FROM packet_store JOIN path_end USING (path)
          WHERE marker_type IS NOT NULL AND path_end.direction = 'in'
            AND (path_end.peer, packet_store.ssrc & 0xffffffff)
              IN (SELECT peer, ssrc & 0xffffffff FROM format WHERE kind = 'audio')
        ),
        spaced AS (
          SELECT peer, ssrc, at_ns,
            (sequence - lag(sequence) OVER stream) & 65535 AS step_size,
            (rtp_time - lag(rtp_time) OVER stream) & 0xffffffff AS ticks
          FROM voice WINDOW stream AS (PARTITION BY peer, ssrc ORDER BY row)
        ),
        usual AS MATERIALIZED (
          SELECT peer, ssrc, min(ticks) AS ticks FROM spaced
          WHERE step_size = 1 AND ticks BETWEEN 1 AND 0x7fffffff GROUP BY peer, ssrc
        ),
        -- Concealed blocks have no SSRC; `place` counts the other blocks up to each one.
        block AS MATERIALIZED (
          SELECT frame_store.row AS row, peer, track, ssrc & 0xffffffff AS ssrc, at_ns, outcome,
            frame_store.rtp_time & 0xffffffff AS rtp_time,
            sum(outcome <> 'concealed') OVER (PARTITION BY peer, track ORDER BY frame_store.row)
              AS place
          FROM frame_store JOIN format USING (format)
          WHERE kind = 'audio' AND direction = 'in'
        ),
        arrival AS MATERIALIZED (
          SELECT peer, ssrc, rtp_time, min(row) AS row, sequence
          FROM voice GROUP BY peer, ssrc, rtp_time
        ),
        made AS (
          SELECT made.peer AS peer, made.track AS track, made.at_ns / 1000000000 AS second,
            row_number() OVER (
              PARTITION BY made.peer, made.track, made.place ORDER BY made.row) AS number,
            -- The blocks missing before the next one, by timestamps, and the packets, by sequence
            -- numbers; a recovered block comes from the packet after it.
            ((next.rtp_time - former.rtp_time) & 0xffffffff) / usual.ticks - 1
              - (next.outcome = 'recovered') AS missing,
            -- After a restart, sequence numbers cannot be compared.
            max(0, ((arrival.sequence - past.sequence + 32768) & 65535) - 32769)
              - (next.outcome = 'recovered') AS lost,
            arrival.row < made.row AS has_come, next.row IS NULL AS is_end
          FROM block AS made
          LEFT JOIN block AS former ON former.peer = made.peer AND former.track = made.track
            AND former.place = made.place AND former.outcome <> 'concealed'
          LEFT JOIN block AS next ON next.peer = made.peer AND next.track = made.track
            AND next.place = made.place + 1 AND next.outcome <> 'concealed'
          LEFT JOIN usual ON usual.peer = next.peer AND usual.ssrc = next.ssrc
          LEFT JOIN arrival ON arrival.peer = next.peer AND arrival.ssrc = next.ssrc
            AND arrival.rtp_time = next.rtp_time
          LEFT JOIN arrival AS past ON past.peer = former.peer AND past.ssrc = former.ssrc
            AND past.rtp_time = former.rtp_time
          WHERE made.outcome = 'concealed'
        ),
        -- Blocks concealed although no packet was lost or late: the sender paused (DTX) or stopped,
        -- or more blocks were concealed than are missing although the next packet had arrived,
        -- because the playout slowed down (insertedSamplesForDeceleration).
        spared AS (
          SELECT peer, track, second, count(*) AS blocks FROM made
          WHERE is_end OR missing > lost AND number > lost OR has_come AND number > missing
          GROUP BY peer, track, second
        ),
        played AS (
          SELECT peer, track, at_ns / 1000000000 AS second, count(*) AS blocks,
            sum(outcome = 'concealed') AS all_concealed
          FROM block GROUP BY peer, track, second
        ),
        poor AS (
          SELECT played.peer AS peer, played.track AS track, played.second AS second,
            played.blocks AS blocks, all_concealed - coalesce(spared.blocks, 0) AS concealed
          FROM played LEFT JOIN spared ON spared.peer = played.peer
            AND spared.track = played.track AND spared.second = played.second
          WHERE played.blocks >= 20 AND concealed * 20 >= played.blocks
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
      HAVING max(concealed * 5 >= blocks) OR sum(concealed) >= 5
      """, detector: findConcealment)

  /// Finds a microphone that delivers only digital silence.
  ///
  /// A silent participant is usually listening. The silence must therefore last ten seconds or more
  /// without any sound before or after it, or include half a minute in which nobody else speaks.
  ///
  /// Muted microphones and untransmitted silence (DTX) do not count.
  static let silence = FindingRule(
    id: "silent-audio", severity: .low, title: "Digital silence",
    thresholds: [.init("least_unspoken_s", 30, "s", "in which nobody else speaks; ORC")],
    sql: """
      WITH
        -- When a track was muted, by the application or by an event.
        switch AS (
          SELECT peer, at_ns, row, arguments ->> '$.transceiver' AS track,
            iif(arguments ->> '$.isInbound', 'in', 'out') AS direction,
            NOT (arguments ->> '$.isEnabled') AS is_muted
          FROM call_request WHERE name = 'setEnabled'
          UNION ALL
          SELECT peer, at_ns, row, detail ->> '$.transceiver', detail ->> '$.direction',
            type IN ('mute', 'disabled')
          FROM event WHERE type IN ('mute', 'disabled', 'unmute', 'enabled')
        ),
        moment AS (
          SELECT frame_store.row AS row, peer, track, direction, at_ns,
            CASE
              WHEN audio_level IS NOT NULL THEN audio_level >= 127
              ELSE energy = 0
            END AS is_silent, NULL AS is_muted
          FROM frame_store JOIN format USING (format)
          WHERE kind = 'audio' AND outcome <> 'concealed'
            -- Audio that was not decoded is silent only if its sender's level says so.
            AND (audio_level IS NOT NULL OR outcome NOT IN ('not decoded', 'passed on'))
          UNION ALL SELECT row, peer, track, direction, at_ns, NULL, is_muted FROM switch
        ),
        -- Blocks after each switch belong together.
        placed AS (
          SELECT *, sum(is_muted IS NOT NULL) OVER way AS switches,
            sum(coalesce(1 - is_silent, is_muted IS NOT NULL)) OVER way AS run
          FROM moment WINDOW way AS (PARTITION BY peer, track, direction ORDER BY row)
        ),
        block AS (
          SELECT *, max(is_muted) OVER (PARTITION BY peer, track, direction, switches) AS is_off
          FROM placed
        ),
        silent AS MATERIALIZED (
          SELECT peer, track, direction, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
            count(*) AS blocks
          FROM block WHERE is_silent AND is_muted IS NULL AND is_off IS NOT 1
          GROUP BY peer, track, direction, run
          -- With fewer than five blocks per second, the sender pauses (DTX).
          HAVING max(at_ns) - min(at_ns) >= 10000000000
            AND count(*) * 1e9 >= 5.0 * (max(at_ns) - min(at_ns))
        ),
        life AS (
          SELECT peer, track, direction, sum(NOT is_silent) AS loud FROM moment
          WHERE is_silent IS NOT NULL GROUP BY peer, track, direction
        ),
        judged AS (
          SELECT silent.*, loud, to_ns - from_ns - coalesce((
            SELECT sum(min(speaker.to_ns, silent.to_ns) - max(speaker.from_ns, silent.from_ns))
            FROM speaker WHERE speaker.peer = silent.peer
              AND (speaker.track <> silent.track OR speaker.direction <> silent.direction)
              AND speaker.from_ns < silent.to_ns AND speaker.to_ns > silent.from_ns
          ), 0) AS unspoken_ns
          FROM silent JOIN life ON life.peer = silent.peer AND life.track = silent.track
            AND life.direction = silent.direction
        )
      SELECT peer, from_ns, to_ns,
        blocks || ' blocks of audio track ' || track || ' (' || direction
          || ') in a row were digital silence' || iif(loud = 0, ': it never gave a sound', '')
          AS evidence
      FROM judged WHERE loud = 0 OR unspoken_ns >= 30000000000
      """, detector: findSilence)

  /// Finds audio whose packets announce speech although the decoded audio is silent.
  static let mutedSpeech = FindingRule(
    id: "silent-while-speaking", severity: .high, title: "Voice not heard",
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
        'its sender spoke for ' || round((max(at_ns) - min(at_ns)) / 1e9 + 0.1, 1)
          || ' s by its own level, and nothing was heard' AS evidence,
        track, 'in' AS direction, 'audio' AS kind,
        (max(at_ns) - min(at_ns)) / 1e9 + 0.1 AS without_media_s
      FROM numbered GROUP BY peer, track, run HAVING count(*) >= 10
      """)

  /// Finds speech into a muted microphone, which the stack reports only if the peer's genesis
  /// enables this notice.
  static let speechWhileMuted = FindingRule(
    id: "speech-while-muted", severity: .high, title: "Spoken while muted",
    sql: """
      SELECT peer, from_ns, to_ns,
        'somebody spoke for ' || round((to_ns - from_ns) / 1e9, 1)
          || ' s into a microphone whose track was disabled' AS evidence,
        transceiver AS track, 'out' AS direction, 'audio' AS kind,
        (to_ns - from_ns) / 1e9 AS without_media_s
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

// Rules about streams that pause, or stop to arrive.

extension FindingRule {
  /// A stream of which nothing came for three seconds or more although it was sent, or with which
  /// all else ceased to come.
  ///
  /// Where its sender paused, nothing is missing.
  static let streamGap = FindingRule(
    id: "stream-gap", severity: .high, title: "Interruption",
    causes: ["disconnected", "one-way-media", "sequence-restart"],
    sql: """
      WITH
      \(agreements),
      \(pauses),
      \(streamGapJudgement)
      """, detector: findStreamGaps)

  private static let longPauses = """
    \(reports),
        media AS MATERIALIZED (
          SELECT peer, ssrc, max(kind) AS kind, max(track) AS track FROM (
            SELECT peer, ssrc & 0xffffffff AS ssrc, kind, track FROM format
            WHERE kind IN ('audio', 'video') AND direction = 'in' AND ssrc <> 0
            UNION ALL
            SELECT peer, ssrc & 0xffffffff, kind, track FROM track
            WHERE direction = 'in' AND ssrc IS NOT NULL AND kind IN ('audio', 'video')
              AND codec NOT IN ('rtx', 'red', 'ulpfec', 'flexfec', 'flexfec-03', '')
          ) GROUP BY peer, ssrc
        ),
        long AS MATERIALIZED (
          SELECT pause.peer AS peer, pause.ssrc AS ssrc, kind, track, begin_ns, begin_row,
            coalesce(pause.end_row, 9223372036854775807) AS end_row,
            pause.end_row IS NULL AS is_last,
            -- What went back to an earlier number, or jumps by more than can have been sent, began
            -- anew.
            iif(missing <= 32767 AND missing * 1e9 <= 2e3 * (pause.end_ns - begin_ns), missing, 0)
              AS missing,
            coalesce(pause.end_ns, live.to_ns) AS end_ns, former_type
          FROM pause JOIN media ON media.peer = pause.peer AND media.ssrc = pause.ssrc
          JOIN live ON live.peer = pause.peer
          WHERE coalesce(pause.end_ns, live.to_ns) - begin_ns >= 3000000000
            AND begin_ns >= live.from_ns
            AND EXISTS (
              SELECT 1 FROM agreed WHERE agreed.peer = pause.peer AND agreed.direction = 'in'
                AND agreed.kind = media.kind AND agreed.from_ns <= begin_ns
                AND agreed.to_ns >= begin_ns + 2000000000)
            AND NOT EXISTS (
              SELECT 1 FROM event WHERE event.peer = pause.peer AND type = 'trackended'
                AND detail ->> '$.transceiver' = media.track
                AND event.at_ns BETWEEN begin_ns - 2000000000
                  AND coalesce(pause.end_ns, live.to_ns))
            AND NOT EXISTS (
              SELECT 1 FROM rtcp WHERE rtcp.peer = pause.peer AND rtcp.type = 'bye'
                AND rtcp.direction = 'in' AND rtcp.at_ns BETWEEN begin_ns - 1000000000
                  AND coalesce(pause.end_ns, live.to_ns))
        ),
        judged AS (
          SELECT *,
            missing > 0 OR EXISTS (
              SELECT 1 FROM counted WHERE counted.peer = long.peer AND counted.ssrc = long.ssrc
                AND counted.at_ns <= end_ns AND former_ns >= begin_ns AND packets > former
            ) AS is_sent,
            EXISTS (
              SELECT 1 FROM packet_store JOIN path_end USING (path)
              WHERE path_end.peer = long.peer AND path_end.direction = 'in'
                AND at_ns > begin_ns AND at_ns < end_ns
                AND packet_store.row BETWEEN begin_row AND long.end_row
            ) AS is_alive
          FROM long
        )
    """

  private static let streamGapJudgement = """
    \(longPauses)
      SELECT peer, begin_ns AS from_ns, end_ns AS to_ns,
        'nothing of ' || kind || ' ssrc ' || ssrc || ' came for '
          || round((end_ns - begin_ns) / 1e9, 1) || ' s' || iif(is_last, ', to the end', '') || ': '
          || CASE
            WHEN missing > 0 THEN missing || ' packets of it are missing'
            WHEN is_sent THEN 'its sender says that it went on sending'
            ELSE 'nothing else came either'
          END || iif(missing > 0 AND NOT is_alive, ', and nothing else came either', '') AS evidence
      FROM judged WHERE is_sent OR is_last AND NOT is_alive
    """

  /// A voice whose sender sent nothing for a while: muted by taking the microphone away, or a page
  /// that slept.
  static let pausedAudio = FindingRule(
    id: "audio-paused", severity: .low, title: "Audio paused by its sender",
    sql: """
      WITH
      \(agreements),
      \(pauses),
      \(pausedJudgement)
      """, detector: findAudioPauses)

  /// Of G.711 the last packet before a silence may be comfort noise (RFC 3389), payload type 13.
  private static let pausedJudgement = """
    \(longPauses)
      SELECT peer, begin_ns AS from_ns, end_ns AS to_ns,
        'the sender of ' || kind || ' ssrc ' || ssrc || ' sent nothing for '
          || round((end_ns - begin_ns) / 1e9, 1) || ' s' || iif(is_last, ', to the end', '')
          AS evidence
      FROM judged WHERE kind = 'audio' AND NOT is_sent AND former_type <> 13
        AND NOT (is_last AND NOT is_alive)
    """
}

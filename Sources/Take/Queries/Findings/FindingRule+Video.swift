// Rules about received video.

extension FindingRule {
  static let noKeyFrame = FindingRule(
    id: "no-key-frame", severity: .high, title: "Missing key frame",
    thresholds: [.init("least_s", 2, "s", "without a key frame after a demand; ORC has 5 s")],
    causes: ["disconnected", "one-way-media", "stream-gap", "loss-burst", "loss"],
    endsForPeople: true,
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
        -- The first key frame after each request; in reverse order, SQLite needs one pass.
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
      """, detector: findMissingKeyFrames)

  /// Finds key frame requests that are answered late, which link a loss to a freeze.
  static let lateKeyFrame = FindingRule(
    id: "key-frame-late", severity: .info, title: "Late key frame",
    thresholds: [
      .init("least_s", 0.4, "s", "a key frame takes a round trip and its encoding"),
      .init("most_s", 2, "s", "longer is no-key-frame"),
    ],
    causes: ["disconnected", "one-way-media", "stream-gap", "loss-burst", "loss"], isLink: true,
    endsForPeople: true,
    sql: """
      SELECT peer, at_ns, ssrc, type FROM rtcp
      WHERE direction = 'out' AND type IN ('pli', 'fir') ORDER BY row
      """, detector: findLateKeyFrames)

  /// Long gaps between displayed video frames, as `gap`: with the numbers of packets that arrived
  /// and that are missing, and the time for which the sender sent nothing.
  ///
  /// Only packets within a gap or shortly before it are examined, selected by the frames' row
  /// numbers.
  private static let gaps = """
        coming AS MATERIALIZED (SELECT path, peer FROM path_end WHERE direction = 'in'),
        shown AS (
          SELECT frame_store.row AS row, peer, ssrc, track, at_ns,
            frame_store.rtp_time & 0xffffffff AS shown_time,
            min(frame_store.row) OVER (
              PARTITION BY peer, track ORDER BY at_ns
              RANGE BETWEEN 1000000000 PRECEDING AND CURRENT ROW) AS second_row
          FROM frame_store JOIN format USING (format)
          WHERE kind = 'video' AND direction = 'in' AND outcome IN ('decoded', 'not decoded')
        ),
        long AS MATERIALIZED (
          SELECT * FROM (
            SELECT peer, ssrc, track, lag(at_ns) OVER picture AS from_ns, at_ns AS to_ns,
              -- The packets of a displayed frame arrived up to a second, or a frame, earlier.
              min(lag(second_row) OVER picture, lag(row, 2, 0) OVER picture) AS early_row,
              lag(row) OVER picture AS from_row, row AS to_row, 0 AS is_last,
              lag(shown_time) OVER picture AS before_time
            FROM shown WINDOW picture AS (PARTITION BY peer, track ORDER BY row)
            UNION ALL
            SELECT peer, ssrc, track, max(at_ns), \(lastMoment), max(row), max(row),
              1 << 62, 1, shown_time
            FROM shown GROUP BY peer, track
          ) WHERE to_ns - from_ns >= 150000000
        ),
        gap AS MATERIALIZED (
          SELECT peer, ssrc, track, from_ns, to_ns, is_last,
            (
              SELECT count(*) FROM packet_store
              WHERE packet_store.row BETWEEN from_row AND to_row AND \(isOfGap)
            ) AS packets,
            -- The longest time in which the sender sent nothing: no packet arrived, and the
            -- timestamps advanced by as much. Then the number and the sum of those of at least
            -- 150 ms.
            \(pauses("max(pause_ns)")) AS paused_ns,
            \(pauses("sum(pause_ns >= 150000000)")) AS pauses,
            \(pauses("sum(iif(pause_ns >= 150000000, pause_ns, 0))")) AS all_paused_ns,
            -- Missing from shortly before the gap on, in frames after the one before the gap.
            (
              SELECT sum(max(0, ((sequence - former + 32768) & 65535) - 32769)) FROM (
                SELECT sequence, at_ns, packet_store.rtp_time AS rtp_time,
                  lag(sequence) OVER (ORDER BY packet_store.row) AS former
                FROM packet_store
                WHERE packet_store.row BETWEEN early_row AND to_row AND \(isOfGap)
              ) WHERE former IS NOT NULL AND at_ns >= from_ns - 300000000
                AND (rtp_time - before_time - 1) & 0xffffffff < 0x7fffffff
            ) AS missing
          FROM long
        )
    """

  /// Returns an SQL expression: an aggregate over the pauses of a gap's sender.
  private static func pauses(_ aggregate: String) -> String {
    """
    (
              SELECT \(aggregate) FROM (
                SELECT iif((sequence - former) & 65535 = 1
                  AND ((rtp_time - former_time) & 0xffffffff) / 9e4 >= 0.8e-9 * (at_ns - former_ns),
                  at_ns - former_ns, 0) AS pause_ns
                FROM (
                  SELECT at_ns, sequence, packet_store.rtp_time AS rtp_time,
                    lag(at_ns) OVER (ORDER BY packet_store.row) AS former_ns,
                    lag(sequence) OVER (ORDER BY packet_store.row) AS former,
                    lag(packet_store.rtp_time) OVER (ORDER BY packet_store.row) AS former_time
                  FROM packet_store
                  -- These rows include the packet before the pause.
                  WHERE packet_store.row BETWEEN early_row AND to_row AND \(isOfGap)
                )
              )
            )
    """
  }

  private static let isOfGap = """
    marker_type IS NOT NULL AND packet_store.ssrc & 0xffffffff = long.ssrc
                AND path IN (SELECT path FROM coming WHERE coming.peer = long.peer)
    """

  /// The end of the take or of the peer's connection, whichever is first.
  private static let lastMoment = """
    min(\(end), coalesce((
            SELECT min(at_ns) FROM state
            WHERE state.peer = shown.peer AND machine = 'connection' AND to_state = 'closed'
          ), 9223372036854775807))
    """

  /// Finds freezes of received video, as freezeCount counts them (webrtc-stats), unless the sender
  /// paused.
  ///
  /// If the sender had no frame for a while, as with a static screen, no packet is missing and the
  /// stream's clock advanced by the pause: that is not a freeze.
  static let freeze = FindingRule(
    id: "freeze", severity: .high, title: "Freeze",
    causes: [
      "disconnected", "one-way-media", "stream-gap", "sequence-restart", "no-key-frame",
      "key-frame-late", "loss-burst", "loss", "encoder-limited",
    ],
    endsForPeople: true,
    sql: """
      WITH
      \(gaps)
      SELECT freeze.peer AS peer, freeze.from_ns AS from_ns, freeze.to_ns AS to_ns,
        'video track ' || freeze.track || ' froze for ' || CAST(round(gap_ms) AS INTEGER)
          || ' ms; the frames before it lasted ' || CAST(round(mean_ms) AS INTEGER)
          || ' ms on average' AS evidence
      FROM freeze LEFT JOIN gap
        ON gap.peer = freeze.peer AND gap.track = freeze.track AND gap.to_ns = freeze.to_ns
        AND gap.from_ns = freeze.from_ns
      WHERE gap.peer IS NULL OR missing > 0 OR \(isTooLong)
      """, detector: findFreezes)

  /// SQL: whether a gap is a freeze even if its sender's pauses are subtracted; usual frame
  /// intervals do not count as pauses.
  private static let isTooLong = """
    (coalesce(paused_ns, 0) < 0.8 * (gap.to_ns - gap.from_ns)
          AND gap.to_ns - gap.from_ns
            - iif(coalesce(all_paused_ns, 0) > 1.5e6 * mean_ms * pauses, all_paused_ns, 0)
            >= 1e6 * max(3 * mean_ms, mean_ms + 150))
    """

  /// Finds gaps that are longer than a freeze or last until the end, unless they were negotiated or
  /// the sender ended the stream with a BYE.
  static let stopped = FindingRule(
    id: "video-stopped", severity: .high, title: "Picture stopped",
    causes: [
      "disconnected", "one-way-media", "stream-gap", "sequence-restart", "no-key-frame",
      "key-frame-late", "loss-burst", "loss",
    ],
    silentUnder: ["media-switched-off"],
    endsForPeople: true,
    sql: """
      WITH
      \(gaps)
      SELECT peer, from_ns, to_ns,
        'video track ' || track || ' showed no frame for ' || round((to_ns - from_ns) / 1e9, 1)
          || ' s' || iif(is_last, ', to the end', '') || ': '
          || CASE
            WHEN packets * 1e9 >= 5.0 * (to_ns - from_ns)
              THEN packets || ' packets of it arrived meanwhile'
                || iif(missing > 0, ', and ' || missing || ' are missing', '')
            WHEN missing > 0 THEN missing || ' packets of it are missing'
            ELSE 'its sender sent nothing, or none of it arrived'
          END AS evidence
      FROM gap
      WHERE (to_ns - from_ns > 5000000000
          OR is_last AND to_ns - from_ns > iif(missing > 0, 1000000000, 2000000000)
            AND packets * 1e9 >= 5.0 * (to_ns - from_ns))
        -- Leaves out pauses of the sender, as with a static screen, after which nothing is missing.
        AND (is_last OR missing > 0 OR coalesce(paused_ns, 0) < 0.8 * (to_ns - from_ns))
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
      """, detector: findStops)

  /// Finds a static screen or a disabled camera: nothing was sent, and nothing is missing.
  static let pausedVideo = FindingRule(
    id: "video-paused", severity: .low, title: "Video paused by its sender",
    silentUnder: ["media-switched-off"],
    sql: """
      WITH
      \(gaps)
      SELECT peer, from_ns, to_ns,
        'the sender of video track ' || track || ' sent nothing for '
          || round((to_ns - from_ns) / 1e9, 1) || ' s' AS evidence
      FROM gap
      WHERE to_ns - from_ns > 5000000000 AND NOT is_last AND coalesce(missing, 0) = 0
        AND paused_ns >= 0.8 * (to_ns - from_ns)
        -- Leaves out pauses that were negotiated.
        AND NOT EXISTS (
          SELECT 1 FROM signaling
          WHERE signaling.peer = gap.peer AND type IN ('offer', 'answer')
            AND signaling.at_ns BETWEEN from_ns - 1000000000 AND from_ns + 1000000000
        )
      UNION ALL
      -- Shorter pauses that the view freeze counts.
      SELECT gap.peer, gap.from_ns, gap.to_ns,
        'the sender of video track ' || gap.track || ' sent nothing for '
          || round(paused_ns / 1e9, 1) || ' s'
      FROM freeze JOIN gap ON gap.peer = freeze.peer AND gap.track = freeze.track
        AND gap.to_ns = freeze.to_ns AND gap.from_ns = freeze.from_ns
      WHERE coalesce(missing, 0) = 0 AND NOT \(isTooLong)
      """, detector: findVideoPauses)

  /// Finds first frames that are displayed long after the connection and the first packet, in calls
  /// whose start was seen.
  static let lateFrame = FindingRule(
    id: "late-first-frame", severity: .high, title: "Late first picture",
    thresholds: [.init("least_s", 3, "s", "from connected and first packet to picture")],
    causes: ["no-key-frame", "key-frame-late", "loss-burst", "loss"],
    endsForPeople: true,
    sql: """
      WITH
        connected AS (
          SELECT peer, min(at_ns) AS at_ns FROM state
          WHERE machine = 'connection' AND to_state = 'connected'
            OR machine = 'ice-connection' AND to_state IN ('connected', 'completed')
              AND peer NOT IN (SELECT peer FROM state WHERE machine = 'connection')
          GROUP BY peer
        ),
        stream AS (
          SELECT peer, ssrc & 0xffffffff AS ssrc, track, min(at_ns) AS agreed_ns FROM track
          WHERE kind = 'video' AND direction = 'in' AND ssrc IS NOT NULL
            AND codec NOT IN ('rtx', 'red', 'ulpfec', 'flexfec', 'flexfec-03', '')
          GROUP BY peer, ssrc
        ),
        came AS MATERIALIZED (
          SELECT path_end.peer AS peer, packet_store.ssrc & 0xffffffff AS ssrc,
            min(at_ns) AS first_ns, max(at_ns) AS last_ns, count(*) AS packets
          FROM packet_store JOIN path_end USING (path)
          WHERE marker_type IS NOT NULL AND path_end.direction = 'in'
            AND (path_end.peer, packet_store.ssrc & 0xffffffff) IN (SELECT peer, ssrc FROM stream)
          GROUP BY path_end.peer, packet_store.ssrc
        ),
        shown AS (
          SELECT peer, track, min(at_ns) AS at_ns FROM frame_store JOIN format USING (format)
          WHERE kind = 'video' AND direction = 'in' AND outcome IN ('decoded', 'not decoded')
          GROUP BY peer, track
        ),
        waiting AS (
          SELECT stream.peer AS peer, stream.track AS track, stream.ssrc AS ssrc,
            max(connected.at_ns, first_ns) AS from_ns, shown.at_ns AS shown_ns,
            coalesce(shown.at_ns, last_ns) AS to_ns, packets
          FROM stream JOIN connected ON connected.peer = stream.peer
          JOIN came ON came.peer = stream.peer AND came.ssrc = stream.ssrc
          LEFT JOIN shown ON shown.peer = stream.peer AND shown.track = stream.track
          -- If the call began before the take, the first frame in the take is not the first one.
          WHERE first_ns > 2000000000 OR NOT EXISTS
            (SELECT 1 FROM coverage WHERE what = 'late-start' AND coverage.peer IS NULL)
        )
      SELECT peer, from_ns, to_ns,
        iif(shown_ns IS NULL, 'no picture of video track ' || track || ' was shown in ',
          'the first picture of video track ' || track || ' was shown after ')
          || round((to_ns - from_ns) / 1e9, 1) || ' s, although packets of ssrc ' || ssrc || ' \
          arrived'
          AS evidence
      FROM waiting
      WHERE to_ns - from_ns > 3000000000
        AND (shown_ns IS NOT NULL OR packets * 1e9 >= 5.0 * (to_ns - from_ns)
          -- Only for peers whose media was decrypted.
          AND peer IN (SELECT peer FROM format WHERE direction = 'in'))
      """, detector: findLateFirstFrames)
}

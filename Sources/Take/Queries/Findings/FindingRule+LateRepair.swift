import Tape
import Wire

// Rules about late video: repairs, and key frames that congest a path.

extension FindingRule {
  /// Finds a very late packet that delayed everything after it: a receiver that waits for
  /// retransmissions measures how long they take, and delays its frames by as much.
  ///
  /// libwebrtc's video jitter estimator does this, as measurements confirm.
  static let lateRepairDelay = FindingRule(
    id: "late-repair-delay", severity: .medium, title: "Delay raised by a late repair",
    scope: .stream,
    thresholds: [
      Threshold("least_step", 80, "ms", "or a round trip; what people notice beside sound"),
      Threshold("least_time", 4, "s", "for which the delay stays"),
      Threshold("medium_step", 200, "ms", "more than sound may be early (ITU-R BT.1359)"),
      Threshold("most_lateness", 0.5, "", "of the step: what packets themselves are later by"),
    ], causes: ["late-repair", "loss", "loss-burst", "reordering"],
    silentUnder: ["standing-queue", "path-became-longer"],
    sql: """
      SELECT peer, track, at_ns, rtp_time FROM frame
      WHERE kind = 'video' AND direction = 'in' AND outcome = 'decoded'
      """, detector: findLateRepairs)

  @Sendable private static func findLateRepairs(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for track in facts.tracks where track.kind == "video" && track.direction == .inbound {
      let streams = facts.streams.filter {
        $0.peer == track.peer && $0.track == track.track && $0.direction == .inbound
      }
      guard let media = streams.first(where: { $0.role == .media }),
        streams.count(where: { $0.role == .media }) == 1
      else { continue }
      let repairs = streams.filter { $0.role == .repair }
      let delays = secondDelays(track)
      guard delays.count > 8 else { continue }
      let (least, hold) = (limits["least_step"], limits.count("least_time"))
      var place = 4
      while place +| hold < delays.count {
        let earlier = delays[max(0, place -| 5)..<place].compactMap { $0 }
        // With fewer than three earlier seconds, there is nothing to compare with.
        let before = earlier.count >= 3 ? median(earlier) : Int64.max / 2
        let after = delays[(place +| 1)...(place +| hold)].compactMap { $0 }
        guard let lowest = after.min(), after.count == hold,
          Double(lowest -| before) / 1e6 >= least
        else {
          place +|= 1
          continue
        }
        let second = Int64(place) *| 1_000_000_000
        let from = max(second -| 1_000_000_000, media.first)
        let lateness = facts.sum(
          of: media, from: second +| 1_500_000_000, to: second +| Int64(hold) *| 1_000_000_000
        ).latenessMicroseconds
        let former = facts.sum(of: media, from: max(0, from -| 4_000_000_000), to: from)
          .latenessMicroseconds
        let isRepaired =
          repairs.contains {
            facts.sum(of: $0, from: from, to: second +| 1_200_000_000).packets > 0
          }
          || facts.sum(of: media, from: from, to: second +| 1_200_000_000).reordered > 0
        if isRepaired,
          Double(lateness - former) * 1000 < limits["most_lateness"] * Double(lowest - before)
        {
          found.append(
            Detection(
              "late-repair-delay", peer: track.peer, from: second,
              to: second +| Int64(hold +| 1) *| 1_000_000_000,
              "pictures were shown \(whole(Double(lowest - before) / 1e6)) ms later for \(hold) s "
                + "or more after a repair, although packets arrived as before",
              ssrc: media.ssrc, track: track.track, direction: .inbound, kind: "video",
              impact: FindingImpact(delay: Double(lowest -| before) / 1e6),
              severity: Double(lowest -| before) / 1e6 >= limits["medium_step"] ? .medium : .low))
        }
        place +|= hold
      }
    }
    return found
  }

  /// Returns the frames' median delay in each second of the take, relative to media time, in
  /// nanoseconds; nil for seconds with fewer than three frames.
  private static func secondDelays(_ track: CallFacts.Track) -> [Int64?] {
    var seconds: [[Int64]] = []
    var media: Int64 = 0
    var last: Int64?
    for picture in track.pictures where picture.isGood {
      if let last {
        media &+= ((picture.rtpTime &- last &+ 0x8000_0000) & 0xffff_ffff) &- 0x8000_0000
      }
      last = picture.rtpTime
      let second = Int(min(max(picture.at / 1_000_000_000, 0), 100_000))
      while seconds.count <= second { seconds.append([]) }
      seconds[second].append(picture.at &- media &* 100_000 / 9)
    }
    return seconds.map { $0.count >= 3 ? median($0) : nil }
  }

  /// Finds key frames too large for the path.
  ///
  /// A key frame may be ten times as large as the frames after it; on a path with just enough
  /// capacity for those frames, sending it then takes as long as sending ten of them.
  static let largeKeyFrame = FindingRule(
    id: "key-frame-too-large", severity: .medium, title: "Key frames too large for the path",
    scope: .stream,
    thresholds: [
      Threshold("least_spread", 300, "ms", "for which a key frame arrives: nine frames at 30/s"),
      Threshold("least_factor", 4, "", "larger than a usual frame; W3C hugeFramesSent: 2.5"),
      Threshold("least_count", 2, "frames", "of them; the first one of a call comes alone"),
    ], causes: ["key-frame-storm", "loss", "loss-burst"],
    sql: """
      SELECT peer, track, at_ns, rtp_time, size FROM frame
      WHERE kind = 'video' AND direction = 'in' AND key = 1
      """, detector: findLargeKeyFrames)

  @Sendable private static func findLargeKeyFrames(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for (place, stream) in facts.streams.enumerated()
    where stream.kind == "video" && stream.role == .media {
      let slow = facts.perception.slowFrames.filter {
        $0.stream == place && Double($0.to -| $0.from) / 1e6 >= limits["least_spread"]
      }
      guard slow.count >= limits.count("least_count"),
        let track = stream.track.flatMap({ facts.track(stream.peer, $0, .inbound) })
      else { continue }
      let usual = median(track.pictures.filter { !$0.isKey }.map { Int64($0.size) })
      let keys = Set(
        track.pictures.filter {
          $0.isKey && Double($0.size) >= limits["least_factor"] * Double(usual)
        }.map(\.rtpTime))
      // If a frame lost packets, their repairs are the reason that it arrived spread out.
      let large = slow.filter { frame in
        keys.contains(frame.rtpTime)
          && facts.sum(of: stream, from: frame.from, to: frame.to).lost == 0
      }
      guard let first = large.first, let last = large.last,
        large.count >= limits.count("least_count")
      else { continue }
      let longest = large.map { $0.to - $0.from }.max() ?? 0
      found.append(
        Detection(
          "key-frame-too-large", peer: stream.peer, from: first.from, to: last.to,
          "\(large.count) took up to \(longest / 1_000_000) ms to arrive, with up to "
            + "\((large.map(\.bytes).max() ?? 0) / 1000) kB, while a usual frame has "
            + "\(usual / 1000).\(usual % 1000 / 100) kB",
          ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: "video",
          impact: FindingImpact(
            delay: Double(longest) / 1e6, count: Int64(large.count))))
    }
    return found
  }
}

// MARK: - Gaps

// Rules about streams that pause or stop arriving.

extension FindingRule {
  /// Finds a stream from which nothing arrived for three seconds or more: either its sender was
  /// still sending, or nothing at all arrived until the end.
  ///
  /// A sender's pause does not count, because nothing is missing after it.
  static let streamGap = FindingRule(
    id: "stream-gap", severity: .high, title: "Stream interrupted",
    causes: ["disconnected", "one-way-media", "sequence-restart"],
    silentUnder: ["media-switched-off"],
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
            -- Sequence numbers that went back, or that jumped by more packets than can have been
            -- sent in the pause, were restarted: none is missing.
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
        'no packet of ' || kind || ' ssrc ' || ssrc || ' arrived for '
          || round((end_ns - begin_ns) / 1e9, 1) || ' s' || iif(is_last, ', to the end', '') || ': '
          || CASE
            WHEN missing > 0 THEN missing || ' packets of it are missing'
            WHEN is_sent THEN 'its sender reports that it continued sending'
            ELSE 'nothing else arrived either'
          END || iif(missing > 0 AND NOT is_alive, ', and nothing else arrived either', '')
            AS evidence
      FROM judged WHERE is_sent OR is_last AND NOT is_alive
    """

  /// Finds an audio sender that paused: its microphone was removed, or its page was suspended.
  static let pausedAudio = FindingRule(
    id: "audio-paused", severity: .low, title: "Audio paused by its sender",
    silentUnder: ["media-switched-off"],
    sql: """
      WITH
      \(agreements),
      \(pauses),
      \(pausedJudgement)
      """, detector: findAudioPauses)

  /// Selects long pauses of audio in which nothing was sent; with G.711, the last packet before a
  /// silence may be comfort noise (RFC 3389), payload type 13.
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

import RTP
import Tape
import Wire

// Rules about media clocks and wall clocks.

extension FindingRule {
  /// Finds a sender's sample clock that runs faster or slower than the local clock.
  ///
  /// Receivers stretch audio to compensate, inaudibly up to some 200 ppm.
  static let clockDrift = FindingRule(
    id: "clock-drift", severity: .low, title: "Drifting media clock",
    thresholds: [
      Threshold("least_ppm", 90, "ppm", "crystals stay below 100, less what is off; our choice"),
      Threshold("medium_ppm", 500, "ppm", "our choice"),
      Threshold("least_seconds", 15, "s", "whose delays compare; our choice"),
      Threshold("least_ms", 3, "ms", "of drift in all, and four times what is off its line"),
      Threshold("stop_s", 5, "s", "between stops of a sender: then it lacks processor time"),
    ],
    silentUnder: ["standing-queue", "path-became-longer", "high-jitter", "microphone-gaps"],
    sql: """
      SELECT peer, direction, ssrc, min(at_ns) AS first_ns, max(at_ns) AS last_ns,
        min(rtp_time) AS first_time, max(rtp_time) AS last_time
      FROM packet WHERE protocol = 'rtp' AND direction = 'in' GROUP BY peer, ssrc
      """,
    detector: findDrift)

  private static func findDrift(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for (place, stream) in facts.streams.enumerated()
    where stream.role == .media && stream.kind == "audio" {
      // Sent packets reveal the sender's clock, too. In an observed call, the same packets are also
      // received packets, so only the received packets are examined.
      guard stream.direction == .inbound || facts.peer(stream.peer)?.isObserved != true,
        !isStarved(stream, facts, limits),
        let drift = ClockDrift(
          facts.network.timings[place].seconds, starved: lateSeconds(of: stream.peer, facts),
          least: limits.count("least_seconds")),
        abs(drift.partsPerMillion) >= limits["least_ppm"], drift.total >= limits["least_ms"],
        drift.off * 4 <= drift.total
      else { continue }
      let parts = drift.partsPerMillion
      found.append(
        Detection(
          "clock-drift", peer: stream.peer, from: drift.first *| 1_000_000_000,
          to: min(stream.last, (drift.last +| 1) *| 1_000_000_000),
          "its samples \(stream.direction == .inbound ? "arrived" : "were captured") "
            + "\(Int64(saturating: abs(parts))) ppm too \(parts > 0 ? "slowly" : "fast"): "
            + "\(rounded(drift.total)) ms in \(drift.last -| drift.first) s",
          ssrc: stream.ssrc, track: stream.track, direction: stream.direction, kind: stream.kind,
          impact: FindingImpact(delay: drift.total),
          severity: abs(parts) >= limits["medium_ppm"] ? .medium : .low))
    }
    return found
  }

  /// Returns whether a stream's sender stalled repeatedly.
  ///
  /// A stalled sender captures nothing, and its timestamps count only captured samples.
  private static func isStarved(
    _ stream: CallFacts.Stream, _ facts: CallFacts, _ limits: Limits
  ) -> Bool {
    let stops = facts.network.way(stream.peer, stream.direction)?.silences ?? []
    let during = stops.filter { $0.burst > 0 && $0.to > stream.first && $0.from < stream.last }
    return Double(during.count) * limits["stop_s"] * 1e9 >= Double(stream.last -| stream.first)
  }

  /// Returns the seconds in which the process recording a peer fell behind with its steps.
  private static func lateSeconds(of peer: Int64, _ facts: CallFacts) -> Set<Int64> {
    guard let actor = facts.peer(peer)?.actor else { return [] }
    var seconds: Set<Int64> = []
    for step in facts.network.lateSteps where step.actor == actor {
      let last = step.at / 1_000_000_000
      let first = min(max(step.due / 1_000_000_000, last -| 60), last)
      for second in first...last { seconds.insert(second) }
    }
    return seconds
  }

  /// Finds timestamps that jump a second back, or three seconds ahead, which neither a queue nor a
  /// pause explains; Chromium's event log viewer uses ten seconds.
  static let mediaClockJump = FindingRule(
    id: "media-clock-jump", severity: .medium, title: "Jumping timestamps",
    thresholds: [
      Threshold("least_s", 1, "s", "back, or three ahead of time; our choice")
    ],
    sql: """
      SELECT peer, direction, ssrc, min(rtp_time) AS least, max(rtp_time) AS most FROM packet
      WHERE protocol = 'rtp' AND direction = 'in' GROUP BY peer, ssrc
      """,
    detector: findMediaJumps)

  private static func findMediaJumps(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for (place, stream) in facts.streams.enumerated()
    where stream.direction == .inbound && stream.role == .media {
      for jump in facts.network.timings[place].jumps.prefix(20)
      where Double(abs(jump.length)) / 1e9 >= limits["least_s"] {
        let seconds = Double(abs(jump.length)) / 1e9
        found.append(
          Detection(
            "media-clock-jump", peer: stream.peer, from: jump.at, to: jump.at,
            "the timestamps of consecutive packets jumped \(rounded(seconds)) s "
              + (jump.length < 0 ? "back" : "ahead"),
            ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: stream.kind))
      }
    }
    return found
  }

  /// Finds a wall clock that was set, or a machine that slept (rtcstats-features' `clockSkew`).
  static let wallClockJump = FindingRule(
    id: "wall-clock-jump", severity: .low, title: "Wall clock set",
    scope: .connection,
    thresholds: [
      Threshold("least_ms", 1_000, "ms", "our choice; rtcstats-features gives the value alone")
    ],
    sql: """
      SELECT peer, at_ns, ssrc, fields ->> '$.unix_us' AS unix_us FROM rtcp
      WHERE type = 'sr' AND direction = 'in' ORDER BY row
      """,
    detector: findWallClockJumps)

  private static func findWallClockJumps(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    var former: [[Int64]: CallFacts.SenderReport] = [:]
    var told: [Int64: Int64] = [:]
    for report in facts.senderReports where report.direction == .inbound {
      let name = [report.peer, report.ssrc]
      defer { former[name] = report }
      guard let last = former[name] else { continue }
      let passed = (report.at -| last.at) / 1000
      let jump = report.unixMicroseconds &- last.unixMicroseconds &- passed
      // All sources of a peer share one clock.
      guard Double(abs(jump)) / 1000 >= limits["least_ms"],
        report.at -| (told[report.peer] ?? .min / 2) > 10_000_000_000
      else { continue }
      told[report.peer] = report.at
      found.append(
        Detection(
          "wall-clock-jump", peer: report.peer, from: last.at, to: report.at,
          "its sender reports went \(rounded(Double(abs(jump)) / 1e6)) s "
            + "\(jump < 0 ? "back" : "ahead") within \(rounded(Double(passed) / 1e6)) s",
          direction: .inbound))
    }
    return found
  }
}

// MARK: - Streams

// Rules about RTP streams: sequence numbers, timestamps and reports.

extension FindingRule {
  /// Received packets with the part of their stream that they belong to: a restart of the sequence
  /// numbers begins a part, as in the `loss` view.
  static let sequenceParts = """
      numbered AS (
        SELECT peer, ssrc, row, at_ns, sequence, rtp_time,
          row_number() OVER (PARTITION BY peer, ssrc ORDER BY row) AS number
        FROM packet WHERE protocol = 'rtp' AND direction = 'in'
      ),
      met AS (
        SELECT *, coalesce(number - lag(number) OVER again <= \(NearRestarts.window)
          AND rtp_time <> lag(rtp_time) OVER again, 0) AS is_reused
        FROM numbered WINDOW again AS (PARTITION BY peer, ssrc, sequence ORDER BY row)
      ),
      spaced AS (
        SELECT peer, ssrc, row, at_ns, sequence, is_reused,
          lag(is_reused) OVER stream AS was_reused,
          lag(sequence) OVER stream AS former,
          ((sequence - lag(sequence) OVER stream + 32768) & 65535) - 32768 AS step_size,
          ((lead(sequence) OVER stream - sequence + 32768) & 65535) - 32768 AS next_step,
          ((rtp_time - lag(rtp_time) OVER stream + 0x80000000) & 0xffffffff) - 0x80000000 AS ticks,
          at_ns - lag(at_ns) OVER stream AS pause,
          lag(at_ns) OVER stream - first_value(at_ns) OVER stream AS lasted,
          number - 1.0 AS packets
        FROM met
        WINDOW stream AS (PARTITION BY peer, ssrc ORDER BY row)
      ),
      marked AS (
        SELECT peer, ssrc, row, at_ns, sequence, former, coalesce(step_size, 0) AS step_size,
          coalesce((abs(step_size) >= 3000 OR step_size <= -100 AND ticks > 0) AND NOT (
            step_size > 0
            AND step_size * 1.0 * lasted BETWEEN packets * pause / 2 AND packets * pause * 2)
            OR is_reused AND step_size BETWEEN 1 - \(NearRestarts.most) AND 0
              AND (ticks > 0 OR NOT was_reused)
              AND (next_step = 1 OR next_step BETWEEN 1 - \(NearRestarts.most) AND -step_size), 0)
            AS begins
        FROM spaced
      ),
      parted AS (
        SELECT *, sum(begins) OVER (PARTITION BY peer, ssrc ORDER BY row) AS part FROM marked
      )
    """

  /// Finds restarts of the sequence numbers; a part with a single packet is a stray packet, not a
  /// restart.
  static let sequenceRestart = FindingRule(
    id: "sequence-restart", severity: .medium, title: "Sequence numbers restarted",
    sql: """
      WITH
      \(sequenceParts)
      SELECT peer, at_ns AS from_ns, at_ns AS to_ns,
        'the sequence numbers of ssrc ' || ssrc || ' restarted: ' || sequence || ' after '
          || former || '; an SRTP receiver may reject such packets as replayed' AS evidence
      FROM (
        SELECT *, lag(size) OVER (PARTITION BY peer, ssrc ORDER BY row) AS former_size
        FROM (SELECT *, count(*) OVER (PARTITION BY peer, ssrc, part) AS size FROM parted)
      )
      WHERE begins AND size > 1 AND former_size > 1
      """, detector: findRestarts)

  /// Finds sender reports from a source without packets, while a source with packets has none.
  ///
  /// A paused stream has reports too, but their counters do not advance.
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
          || ', of which no packet arrived, and none of ssrc ' || min(other.ssrc)
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

  /// Finds audio whose timestamps do not advance by the packets' duration, which is a multiple of
  /// 2.5 ms for these codecs.
  ///
  /// A longer step is a pause if the packet also arrived later by as much.
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
          -- Inferred streams may be revised: the last row counts.
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
          || step.ssrc || ' match no packet length, although no packet is missing: a receiver '
          || 'conceals or cuts the difference' AS evidence
      FROM (
        SELECT step.peer AS peer, step.ssrc AS ssrc, at_ns,
          step.ticks * 400 % rate <> 0
            OR step.ticks > usual.ticks AND pause * 1e-9 * rate < 0.6 * step.ticks AS is_uneven
        FROM step JOIN usual ON usual.peer = step.peer AND usual.ssrc = step.ssrc
      ) AS step
      GROUP BY step.peer, step.ssrc HAVING sum(is_uneven) >= 20 AND sum(is_uneven) * 10 >= count(*)
      """, detector: findUnevenSteps)
}

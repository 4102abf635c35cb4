import Tape
import Wire

// Rules about how received media is played.

extension FindingRule {
  /// Possible causes of a buffer that grows or runs empty.
  private static let buffering = [
    "process-starved", "peer-starved", "path-became-longer", "path-stalled", "standing-queue",
    "high-jitter", "loss-burst", "loss", "reordering",
    "clock-drift",
  ]

  static let stretchedAudio = FindingRule(
    id: "audio-stretched", severity: .low, title: "Audio played faster or slower",
    thresholds: [
      Threshold("on_share", 0.1, "", "of the samples were inserted or removed; ORC audio-desync"),
      Threshold("off_share", 0.05, "", "ORC audio-desync"),
      Threshold("least_time", 2, "s", "two samples in a row, as in ORC"),
    ], causes: buffering,
    sql: """
      SELECT peer, at_ns, members ->> '$.insertedSamplesForDeceleration' AS inserted,
        members ->> '$.removedSamplesForAcceleration' AS removed,
        members ->> '$.totalSamplesReceived' AS samples
      FROM stat WHERE type = 'inbound-rtp' AND members ->> '$.kind' = 'audio'
      """, detector: findStretchedAudio)

  private static func stretch(_ before: StatSample, _ after: StatSample) -> Double? {
    guard let samples = after.growth(.totalSamplesReceived, since: before), samples >= 24_000,
      let inserted = after.growth(.insertedSamplesForDeceleration, since: before),
      let removed = after.growth(.removedSamplesForAcceleration, since: before)
    else { return nil }
    return (inserted + removed) / (inserted + removed + samples)
  }

  @Sendable private static func findStretchedAudio(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.perception.series("inbound-rtp", "audio").flatMap { series in
      StatRun.runs(
        series.points(stretch), on: limits["on_share"], off: limits["off_share"],
        least: Int64(saturating: limits["least_time"] * 1e9)
      ).map { run in
        Detection(
          "audio-stretched", peer: series[0].peer, from: run.from, to: run.to,
          "\(shareText(run.mean)) of the samples were inserted or removed to adjust the buffer",
          ssrc: series[0].ssrc, direction: .inbound, kind: "audio",
          impact: FindingImpact(share: run.peak))
      }
    }
  }

  /// Finds audio that waits long in the receiver's buffer, which is a part of the one-way delay.
  ///
  /// According to ITU-T G.114, delays up to 150 ms are unnoticed, and delays beyond 400 ms are
  /// unacceptable.
  static let lateAudio = FindingRule(
    id: "audio-late", severity: .medium, title: "Audio played late",
    thresholds: [
      Threshold("on_delay", 400, "ms", "in the receiver's buffer; ITU-T G.114's bound for one way"),
      Threshold("off_delay", 300, "ms", "below the bound by as much as talk needs"),
      Threshold("least_time", 3, "s", "less is a burst that is caught up with"),
    ], causes: ["audio-video-apart"] + buffering,
    sql: """
      SELECT peer, at_ns, members ->> '$.jitterBufferDelay' AS delay,
        members ->> '$.jitterBufferEmittedCount' AS emitted
      FROM stat WHERE type = 'inbound-rtp' AND members ->> '$.kind' = 'audio'
      """, detector: findLateAudio)

  private static func bufferDelay(_ before: StatSample, _ after: StatSample) -> Double? {
    guard let delay = after.growth(.jitterBufferDelay, since: before),
      let emitted = after.growth(.jitterBufferEmittedCount, since: before), emitted > 0
    else { return nil }
    return 1000 * delay / emitted
  }

  @Sendable private static func findLateAudio(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.perception.series("inbound-rtp", "audio").flatMap { series in
      StatRun.runs(
        series.points(bufferDelay), on: limits["on_delay"], off: limits["off_delay"],
        least: Int64(saturating: limits["least_time"] * 1e9)
      ).map { run in
        Detection(
          "audio-late", peer: series[0].peer, from: run.from, to: run.to,
          "it waited \(whole(run.mean)) ms in the buffer for \(tenths(run.to - run.from)) s",
          ssrc: series[0].ssrc, direction: .inbound, kind: "audio",
          impact: FindingImpact(delay: run.peak))
      }
    }
  }

  static let flushedBuffer = FindingRule(
    id: "jitter-buffer-flushed", severity: .medium, title: "Audio buffer emptied repeatedly",
    thresholds: [
      Threshold("least_flushes", 3, "", "RF hasPeriodicJitterBufferFlushes, a fault of NetEQ")
    ], causes: buffering,
    sql: """
      SELECT peer, at_ns, members ->> '$.jitterBufferFlushes' AS flushes FROM stat
      WHERE type = 'inbound-rtp' AND members ->> '$.jitterBufferFlushes' > 0
      """, detector: findFlushes)

  @Sendable private static func findFlushes(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.perception.series("inbound-rtp", "audio").compactMap { series -> Detection? in
      let flushes = series.points { $1.growth(.jitterBufferFlushes, since: $0) }
        .filter { $0.value > 0 }
      let count = flushes.reduce(0) { $0 + $1.value }
      guard let first = flushes.first, let last = flushes.last, count >= limits["least_flushes"]
      else { return nil }
      return Detection(
        "jitter-buffer-flushed", peer: series[0].peer, from: first.from, to: last.to,
        "\(whole(count)) times within \(tenths(last.to - first.from)) s", ssrc: series[0].ssrc,
        direction: .inbound, kind: "audio", impact: FindingImpact(count: Int64(min(count, 1e12))))
    }
  }

  /// Finds received audio that is never played: packets arrive but the buffer emits nothing.
  static let notPlayed = FindingRule(
    id: "audio-not-played", severity: .medium, title: "Audio received but never played",
    thresholds: [
      Threshold("least_time", 5, "s", "RKB nojitterbufferemittedcount has no bound"),
      Threshold("least_packets", 50, "packets", "a second of audio"),
    ],
    sql: """
      SELECT peer, at_ns, members ->> '$.packetsReceived' AS packets,
        members ->> '$.jitterBufferEmittedCount' AS emitted
      FROM stat WHERE type = 'inbound-rtp' AND members ->> '$.kind' = 'audio'
      """, detector: findNotPlayed)

  @Sendable private static func findNotPlayed(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.perception.series("inbound-rtp", "audio").flatMap { series in
      let points = series.points { before, after in
        guard let packets = after.growth(.packetsReceived, since: before),
          let emitted = after.growth(.jitterBufferEmittedCount, since: before)
        else { return nil }
        return emitted == 0 && packets > 5 * after.seconds(since: before) ? packets : 0
      }
      return StatRun.runs(
        points, on: 1, off: 1, least: Int64(saturating: limits["least_time"] * 1e9)
      )
      .compactMap { run -> Detection? in
        let packets = points.filter { $0.from >= run.from && $0.to <= run.to }
          .reduce(0) { $0 + $1.value }
        guard packets >= limits["least_packets"] else { return nil }
        return Detection(
          "audio-not-played", peer: series[0].peer, from: run.from, to: run.to,
          "\(whole(packets)) packets arrived in \(tenths(run.to - run.from)) s, and none was "
            + "played",
          ssrc: series[0].ssrc, direction: .inbound, kind: "audio",
          impact: FindingImpact(withoutMedia: Double(run.to -| run.from) / 1e9))
      }
    }
  }

  static let synthesizedPlayout = FindingRule(
    id: "playout-starved", severity: .medium, title: "Loudspeaker starved", scope: .end,
    thresholds: [
      Threshold("least_synthesized", 0.2, "s", "ORC: any; a start costs some of it")
    ], causes: ["process-starved"],
    sql: """
      SELECT peer, at_ns, members ->> '$.synthesizedSamplesDuration' AS seconds FROM stat
      WHERE type = 'media-playout' AND seconds > 0
      """, detector: findSynthesizedPlayout)

  @Sendable private static func findSynthesizedPlayout(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.perception.series("media-playout").compactMap { series -> Detection? in
      let points = series.points { $1.growth(.synthesizedSamplesDuration, since: $0) }
        .filter { $0.value > 0 }
      let sum = points.reduce(0) { $0 + $1.value }
      guard let first = points.first, let last = points.last, sum >= limits["least_synthesized"]
      else { return nil }
      return Detection(
        "playout-starved", peer: series[0].peer, from: first.from, to: last.to,
        "\(whole(sum * 1000)) ms were concealed because audio reached the device too late",
        direction: .inbound, kind: "audio", impact: FindingImpact(concealed: min(sum, 1e6)))
    }
  }

  /// Finds interrupted audio: concealment of 150 ms or more is an interruption, and users complain
  /// about more than a second of it in a call.
  static let audioOutage = FindingRule(
    id: "audio-interrupted", severity: .medium, title: "Audio interrupted",
    thresholds: [
      Threshold("least_outage", 150, "ms", "W3C interruptionCount"),
      Threshold("least_total", 1, "s", "of the track; RKB Audio Interruptions gives no bound"),
    ],
    causes: [
      "path-dead", "process-starved", "peer-starved", "loss-burst", "loss",
      "standing-queue", "high-jitter", "reordering", "one-way-media", "stream-gap",
    ],
    sql: """
      SELECT peer, track, at_ns FROM frame WHERE kind = 'audio' AND outcome = 'concealed'
      """, detector: findAudioOutages)

  @Sendable private static func findAudioOutages(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for track in facts.tracks where track.kind == "audio" && track.direction == .inbound {
      guard
        let stream = facts.streams.first(where: {
          $0.peer == track.peer && $0.track == track.track && $0.direction == .inbound
            && $0.role == .media
        })
      else { continue }
      let outages = facts.perception.concealments.filter { one in
        // When a sender pauses (DTX, a removed microphone), no packets are missing.
        one.peer == track.peer && one.track == track.track
          && Double(one.to -| one.from + 20_000_000) / 1e6 >= limits["least_outage"]
          && isMissing(stream, one.from, one.to, facts)
      }
      let total = outages.reduce(Int64(0)) { $0 +| $1.to -| $1.from +| 20_000_000 }
      guard let first = outages.first, let last = outages.last,
        Double(total) / 1e9 >= limits["least_total"]
      else { continue }
      found.append(
        Detection(
          "audio-interrupted", peer: track.peer, from: first.from, to: last.to,
          "\(counted(outages.count, "interruption")), \(tenths(total)) s in all",
          track: track.track, direction: .inbound, kind: "audio",
          impact: FindingImpact(concealed: Double(total) / 1e9)))
    }
    return found
  }

  /// Returns whether a stream's packets are missing or late around a time.
  static func isMissing(
    _ stream: CallFacts.Stream, _ from: Int64, _ to: Int64, _ facts: CallFacts
  ) -> Bool {
    let sum = facts.sum(of: stream, from: from -| 300_000_000, to: to +| 300_000_000)
    if sum.lost > 0 || sum.reordered > 0 { return true }
    if sum.packets == 0 { return false }
    return stream.gaps.contains { gap in
      gap.from <= to && (gap.to ?? .max) >= from && gap.missing > 0
    }
  }

  /// Finds one participant's audio and video that are not played in sync.
  ///
  /// Broadcasters accept audio that is 90 ms early or 185 ms late (ITU-R BT.1359); the clocks in
  /// sender reports are accurate to some 40 ms.
  static let audioVideoApart = FindingRule(
    id: "audio-video-apart", severity: .medium, title: "Audio and video out of sync",
    scope: .connection,
    thresholds: [
      Threshold("most_early_sound", 140, "ms", "BT.1359: 90 is acceptable; reports cost 50"),
      Threshold("most_late_sound", 235, "ms", "BT.1359: 185 is acceptable; reports cost 50"),
      Threshold("least_time", 3, "s", "the playouts need as long to meet"),
    ], causes: ["wall-clock-jump", "media-clock-jump"] + buffering + ["late-repair-delay"],
    silentUnder: ["camera-stopped"],
    sql: """
      SELECT peer, at_ns, members ->> '$.kind' AS kind,
        members ->> '$.estimatedPlayoutTimestamp' AS playout
      FROM stat WHERE type = 'inbound-rtp'
      """, detector: findApart)

  @Sendable private static func findApart(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let (voices, pictures) = (
      facts.perception.series("inbound-rtp", "audio"),
      facts.perception.series("inbound-rtp", "video")
    )
    var found: [Detection] = []
    for video in pictures {
      let peer = video[0].peer
      let name = facts.perception.names[video[0].ssrc ?? -1]
      let others = voices.filter { $0[0].peer == peer }
      let of = others.filter {
        name != nil && facts.perception.names[$0[0].ssrc ?? -1] == name
      }
      // If participants have no names, a single audio stream belongs to the participant in the
      // video.
      guard let audio = of.first ?? (name == nil && others.count == 1 ? others[0] : nil) else {
        continue
      }
      let points = distances(audio, video)
      for (sign, limit) in [(-1.0, "most_early_sound"), (1.0, "most_late_sound")] {
        let signed = points.map { StatPoint(from: $0.from, to: $0.to, value: sign * $0.value) }
        for run in StatRun.runs(
          signed, on: limits[limit], off: limits[limit] * 0.8,
          least: Int64(saturating: limits["least_time"] * 1e9))
        {
          found.append(
            Detection(
              "audio-video-apart", peer: peer, from: run.from, to: run.to,
              "the \(sign < 0 ? "video" : "audio") was \(whole(run.mean)) ms behind for "
                + "\(tenths(run.to - run.from)) s",
              direction: .inbound, impact: FindingImpact(delay: run.peak)))
        }
      }
    }
    return found
  }

  /// Returns how much later the video being played was captured than the audio being played, in
  /// milliseconds.
  private static func distances(_ audio: [StatSample], _ video: [StatSample]) -> [StatPoint] {
    var times: [Int64: Double] = [:]
    for sample in audio { times[sample.call] = sample[.estimatedPlayoutTimestamp] }
    var previous: (at: Int64, frames: Double?)?
    var points: [StatPoint] = []
    for sample in video {
      defer { previous = (sample.at, sample[.framesDecoded]) }
      guard let playout = sample[.estimatedPlayoutTimestamp], let sound = times[sample.call],
        let before = previous, before.at < sample.at
      else { continue }
      // While video is frozen, its estimated playout time is meaningless. A rarely changing screen
      // has no frame for most of the audio.
      if let frames = sample[.framesDecoded], let former = before.frames,
        frames - former < 4 * Double(sample.at &- before.at) / 1e9
      {
        continue
      }
      let distance = playout - sound
      guard abs(distance) < 60_000 else { continue }
      points.append(StatPoint(from: before.at, to: sample.at, value: distance))
    }
    return points
  }
}

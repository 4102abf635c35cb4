import Tape
import Wire

// Rules about devices that malfunction, and encoders that stop.

extension FindingRule {
  /// Finds a voice too quiet for listeners to turn up: the microphone's gain is at its minimum, or
  /// it is the wrong microphone.
  ///
  /// The nominal level of speech is about -26 dBov (ITU-T P.56); 18 dB less is hard to follow. A
  /// background murmur does not rise and fall as syllables do.
  static let quietMicrophone = FindingRule(
    id: "microphone-quiet", severity: .low, title: "Voice hardly audible", scope: .stream,
    thresholds: [
      Threshold("most_level", 0.0063, "", "of full scale, or -44 dBov: the loudest twentieth"),
      Threshold("least_level", 0.001, "", "below it is `microphone-without-signal`"),
      Threshold("least_swing", 4, "", "times the quiet quarter, as of somebody who speaks"),
      Threshold("least_time", 12, "s", "of levels; our choice"),
    ],
    silentUnder: ["microphone-without-signal", "speech-while-muted"],
    sql: """
      SELECT peer, track, direction, max(level) AS loudest, avg(level) AS mean FROM audio_level
      GROUP BY peer, track, direction
      """,
    detector: findQuietMicrophones)

  private static func findQuietMicrophones(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.tracks.compactMap { track -> Detection? in
      let levels = track.levels
      guard track.kind == "audio", let first = levels.first, let last = levels.last,
        Double(levels.count) / 10 >= limits["least_time"]
      else { return nil }
      let sorted = levels.map(\.rms).sorted()
      let loud = Double(sorted[sorted.count *| 19 / 20]) / 32_768
      let soft = Double(sorted[sorted.count / 4]) / 32_768
      guard loud <= limits["most_level"], loud > limits["least_level"],
        loud >= limits["least_swing"] * soft,
        // At least two seconds of audio are at least half as loud.
        levels.count(where: { Double($0.rms) / 32_768 >= loud / 2 }) >= 20,
        !facts.perception.isOff(
          track.peer, track.track, track.direction, from: first.at, to: last.at)
      else { return nil }
      return Detection(
        "microphone-quiet", peer: track.peer, from: first.at, to: last.at,
        "it never got louder than \(permille(loud)) of full scale in \(tenths(last.at - first.at)) "
          + "s; speech has about 5 %",
        track: track.track, direction: track.direction, kind: "audio")
    }
  }

  private static func permille(_ share: Double) -> String {
    let value = Int64((min(max(share, 0), 1) * 10_000).rounded())
    return "\(value / 100).\(value % 100 < 10 ? "0" : "")\(value % 100) %"
  }

  /// Finds blocks of audio that never reached the application: the audio thread is overloaded, or a
  /// driver fails.
  ///
  /// An application that holds audio back during silence leaves long pauses; gaps of a microphone
  /// are short and frequent.
  static let microphoneGaps = FindingRule(
    id: "microphone-gaps", severity: .medium, title: "Microphone losing samples",
    scope: .stream,
    thresholds: [
      Threshold("least_share", 0.03, "", "of the time without samples; our choice"),
      Threshold("least_gaps", 1.5, "gaps/s", "of a block and more, and below 0.3 s; our choice"),
      Threshold("least_time", 3, "s", "our choice"),
    ],
    causes: ["process-starved"],
    sql: """
      SELECT peer, track, at_ns / 1000000000 AS second, sum(samples) / 48 AS milliseconds
      FROM capture WHERE kind = 'audio' GROUP BY peer, track, second
      """,
    detector: findMicrophoneGaps)

  /// The number of a track's samples in a second, and of overlong pauses between its blocks.
  private struct CapturedSecond {
    var second: Int64
    var samples: Int64 = 0
    var gaps: Int64 = 0
  }

  private static func findMicrophoneGaps(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    struct Name: Hashable {
      var peer: Int64
      var track: Int64
    }
    var order: [Name] = []
    var seconds: [Name: [CapturedSecond]] = [:]
    var before: [Name: (at: Int64, samples: Int64)] = [:]
    let rows = try connection.prepare(
      """
      SELECT peer, track, at_ns, samples FROM capture
      WHERE peer > 0 AND kind = 'audio' AND samples > 0 ORDER BY row LIMIT 2000000
      """)
    while try rows.step() {
      let name = Name(peer: rows.integer(0), track: rows.integer(1))
      let (at, samples) = (rows.integer(2), min(rows.integer(3), 480_000))
      let second = at / 1_000_000_000
      if seconds[name] == nil { order.append(name) }
      if seconds[name]?.last?.second != second {
        seconds[name, default: []].append(CapturedSecond(second: second))
      }
      let place = (seconds[name]?.count ?? 1) - 1
      seconds[name]?[place].samples +|= samples
      if let former = before[name] {
        let pause = at &- former.at
        // In nanoseconds, one and a half times the previous block's duration.
        if pause > former.samples *| 31_250, pause < 300_000_000 {
          seconds[name]?[place].gaps +|= 1
        }
      }
      before[name] = (at, samples)
    }
    return findGapsOfOthers(facts, limits)
      + order.flatMap { name in
        gapRuns(seconds[name] ?? [], limits).map { run in
          let share = run.share
          return Detection(
            "microphone-gaps", peer: name.peer, from: run.from, to: min(run.to, facts.end),
            "\(shareText(share)) of \(tenths(run.to - run.from)) s of audio never came from the "
              + "microphone, in \(run.gaps) gaps",
            track: name.track, direction: .outbound, kind: "audio",
            impact: FindingImpact(share: share, count: run.gaps))
        }
      }
  }

  /// Finds gaps of remote microphones from packets: the timestamps continue without a gap, but
  /// slower than real time and in steps of full packets, and they never catch up.
  private static func findGapsOfOthers(_ facts: CallFacts, _ limits: Limits) -> [Detection] {
    facts.streams.indices.flatMap { place in
      slowRuns(place, facts).filter {
        Double($0.to &- $0.from) / 1e9 >= limits["least_time"] && $0.share >= limits["least_share"]
      }.map { run in
        let stream = facts.streams[place]
        return Detection(
          "microphone-gaps", peer: stream.peer, from: run.from, to: min(run.to, facts.end),
          "\(shareText(run.share)) of \(tenths(run.to - run.from)) s of audio was never sent, "
            + "although no packet is missing",
          ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: "audio",
          impact: FindingImpact(share: run.share))
      }
    }
  }

  /// Returns the periods in which received speech arrived more slowly than it is played, and by
  /// what share.
  ///
  /// A queue looks different: it delays packets by fractions of their duration, and only until it
  /// has drained.
  static func slowRuns(_ place: Int, _ facts: CallFacts)
    -> [(from: Int64, to: Int64, share: Double)]
  {
    let stream = facts.streams[place]
    guard stream.direction == .inbound, stream.role == .media, stream.kind == "audio" else {
      return []
    }
    let seconds = facts.network.timings[place].seconds
    var runs: [(from: Int64, to: Int64, share: Double)] = []
    var begin: Int?
    for index in seconds.indices.dropFirst() {
      let (before, after) = (seconds[index - 1], seconds[index])
      let rise = after.median &- before.median
      let isSlow =
        after.part == before.part && after.second == before.second &+ 1 && rise >= 20_000
        && rise < 900_000 && Int64(after.swings) *| 15_000 *| 4 >= rise
      if isSlow, begin == nil { begin = index - 1 }
      guard let from = begin, !isSlow || index == seconds.count - 1 else { continue }
      begin = nil
      let last = isSlow ? index : index - 1
      let (first, end) = (seconds[from], seconds[last])
      let sum = facts.sum(
        of: stream, from: first.second *| 1_000_000_000, to: end.second *| 1_000_000_000)
      // The delay must not decrease again.
      let later = seconds[last...].dropFirst().prefix { $0.part == end.part }.map(\.least).min()
      guard last - from >= 3, sum.lost <= 1, sum.reordered <= 1,
        later ?? end.median >= end.median &- (end.median &- first.median) / 3
      else { continue }
      runs.append(
        (
          first.second *| 1_000_000_000, (end.second +| 1) *| 1_000_000_000,
          Double(end.median &- first.median) / 1e6 / Double(end.second &- first.second)
        ))
    }
    return runs
  }

  private static func gapRuns(_ seconds: [CapturedSecond], _ limits: Limits)
    -> [(from: Int64, to: Int64, share: Double, gaps: Int64)]
  {
    let isHit = seconds.indices.map { place in
      // Averages two seconds, because blocks do not align with seconds.
      let pair = seconds[max(0, place - 1)...place]
      guard pair.count == 2, pair[place].second == pair[place - 1].second + 1 else { return false }
      let share = 1 - Double(pair.reduce(0) { $0 +| $1.samples }) / 96_000
      return share >= limits["least_share"] && share < 0.9
        && Double(pair.reduce(0) { $0 +| $1.gaps }) >= 2 * limits["least_gaps"]
    }
    var runs: [(from: Int64, to: Int64, share: Double, gaps: Int64)] = []
    var place = 0
    while place < seconds.count {
      guard isHit[place] else {
        place += 1
        continue
      }
      var last = place
      while last + 1 < seconds.count, isHit[last + 1] { last += 1 }
      defer { place = last + 1 }
      let part = seconds[place...last]
      guard Double(part.count) >= limits["least_time"] else { continue }
      // The last second may be incomplete.
      let whole = part.count > 2 ? part.dropLast() : part
      let sum = whole.reduce(0) { $0 +| $1.samples }
      runs.append(
        (
          part[place].second *| 1_000_000_000, (part[last].second +| 1) *| 1_000_000_000,
          max(0, 1 - Double(sum) / (48_000 * Double(whole.count))),
          part.reduce(0) { $0 +| $1.gaps }
        ))
    }
    return runs
  }

  /// Returns the number of frames per second that the application delivered between two instants;
  /// nil if it did not deliver throughout.
  private static func captured(
    _ facts: CallFacts, _ peer: Int64, _ from: Int64, _ to: Int64
  ) -> Double? {
    facts.perception.captured.first {
      $0.peer == peer && $0.isVideo && $0.from <= from && $0.to &+ 100_000_000 >= to
        && $0.to > $0.from
    }.map { Double($0.count) * 1e9 / Double($0.to &- $0.from) }
  }

  /// Finds an encoder that hangs: frames enter and none leaves, although nothing stopped it on
  /// purpose.
  static let stoppedEncoder = FindingRule(
    id: "encoder-stopped", severity: .high, title: "Encoder stopped", scope: .stream,
    thresholds: [
      Threshold("least_time", 2, "s", "two samples; as `camera-stopped`"),
      Threshold("least_rate", 5, "frames/s", "of the source; ORC"),
    ],
    causes: ["process-starved"], silentUnder: ["camera-stopped"],
    sql: """
      SELECT peer, at_ns, type, members ->> '$.framesPerSecond' AS rate,
        members ->> '$.framesEncoded' AS frames
      FROM stat WHERE type IN ('media-source', 'outbound-rtp') AND members ->> '$.kind' = 'video'
      """,
    detector: findStoppedEncoders)

  private static func findStoppedEncoders(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let cameras = CameraRates(facts)
    return facts.perception.series("outbound-rtp", "video").flatMap { series -> [Detection] in
      let peer = series[0].peer
      // With several cameras, it is unknown which one's frames are encoded, and an encoder may stop
      // a simulcast layer on purpose.
      guard cameras.hasOne(peer), series[0].rid.isEmpty else { return [] }
      let points = series.points { before, after in
        guard
          let source = cameras.rate(peer, after.call)
            ?? captured(facts, peer, before.at, after.at),
          let frames = after[.framesEncoded],
          let former = before[.framesEncoded], frames > 0, after[.active] != 0
        else { return nil }
        return source >= limits["least_rate"] && frames == former ? source : 0
      }
      return StatRun.runs(
        points, on: limits["least_rate"], off: limits["least_rate"],
        least: Int64(saturating: limits["least_time"] * 1e9)
      ).filter { !facts.perception.isMeant(peer, at: $0.from, within: 2_500_000_000) }.map { run in
        Detection(
          "encoder-stopped", peer: peer, from: run.from, to: run.to,
          "it was given \(whole(run.mean)) frames a second for \(tenths(run.to - run.from)) s and "
            + "produced none",
          ssrc: series[0].ssrc, direction: .outbound, kind: "video",
          impact: FindingImpact(withoutMedia: Double(run.to &- run.from) / 1e9))
      }
    }
  }
}

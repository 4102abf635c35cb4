import Tape
import Wire

// Rules about microphones, and about negotiated audio.

extension FindingRule {
  /// Finds a microphone that delivers almost nothing although it is not muted.
  ///
  /// Only the sender knows whether it is muted, so the severity is low for received audio.
  static let silentMicrophone = FindingRule(
    id: "microphone-without-signal", severity: .medium, title: "Microphone without a signal",
    scope: .stream,
    thresholds: [
      Threshold(
        "most_level", 0.001, "", "of full scale; ORC and TX: at most 0.001 is no microphone"),
      Threshold("least_silence", 30, "s", "as long as ORC waits where something was heard before"),
      Threshold("least_silence_from_start", 10, "s", "where it never gave a sound"),
    ],
    sql: """
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        'at most ' || max(level) || ' of full scale' AS evidence, track, direction
      FROM audio_level GROUP BY peer, track, direction HAVING max(level) <= :most_level
      """, detector: findSilentMicrophones)

  @Sendable private static func findSilentMicrophones(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let most = Float(limits["most_level"] * 32_768)
    var found: [Detection] = []
    for track in facts.tracks where track.kind == "audio" {
      let isSilent = track.levels.map { $0.rms <= most && $0.senderDecibels ?? -127 <= -60 }
      var place = 0
      while let first = isSilent[place...].firstIndex(of: true) {
        let next = isSilent[first...].firstIndex(of: false) ?? isSilent.endIndex
        place = next
        let (from, to) = (track.levels[first].at -| 100_000_000, track.levels[next -| 1].at)
        let isAll = first == 0 && next == isSilent.endIndex
        let least = isAll ? limits["least_silence_from_start"] : limits["least_silence"]
        // A sender that pauses (DTX) still sends a block now and then.
        let isFlowing = Double(next - first) >= 0.5 * Double(to - from) / 1e8
        guard Double(to -| from) / 1e9 >= least, isFlowing,
          !facts.perception.isOff(
            track.peer, track.track, track.direction, from: from, to: to),
          !facts.isOffAtSource(track, from: from, to: to)
        else { continue }
        // Only the sender knows whether it is muted.
        let isUnseen =
          track.direction == .inbound
          && facts.peer(track.peer)?.other.map { facts.peer($0)?.isObserved ?? true } ?? true
        found.append(
          Detection(
            "microphone-without-signal", peer: track.peer, from: from, to: to,
            "\(isAll ? "no sound at all in" : "silence for") \(tenths(to - from)) s, "
              + (isUnseen
                ? "either muted by its application or without a signal; its sender is not in the "
                  + "take" : "and the track was not muted"),
            track: track.track, direction: track.direction, kind: "audio",
            severity: track.direction == .inbound ? .low : nil))
      }
    }
    return found
  }

  /// Finds samples that keep reaching full scale during speech; undistorted speech peaks at four
  /// times its RMS (a crest factor of 12 dB).
  static let clippedMicrophone = FindingRule(
    id: "clipped-microphone", severity: .medium, title: "Clipped audio", scope: .stream,
    thresholds: [
      Threshold("least_peak", 32_700, "", "samples from here on are at full scale, of 32,768"),
      Threshold(
        "most_crest", 3.2, "", "peak over mean; speech has 4 and more, clipped speech 1 to 3"),
      Threshold("least_share", 0.3, "", "of the time in which somebody speaks; VoIPmonitor's idea"),
      Threshold("least_clipped", 1, "s", "less is a bump against the microphone"),
    ],
    sql: """
      SELECT peer, track, direction, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        count(*) / 10.0 AS seconds
      FROM level WHERE peak >= :least_peak
      GROUP BY peer, track, direction HAVING seconds >= :least_clipped
      """, detector: findClippedMicrophones)

  @Sendable private static func findClippedMicrophones(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let crest = Float(limits["most_crest"])
    var found: [Detection] = []
    for track in facts.tracks where track.kind == "audio" {
      // A level of -40 dB or less is not speech.
      let loud = track.levels.filter { $0.rms > 327 }
      var run: [CallFacts.Level] = []
      var others = 0
      func close() {
        defer { (run, others) = ([], 0) }
        guard let first = run.first, let last = run.last,
          Double(run.count) / 10 >= limits["least_clipped"],
          Double(run.count) >= limits["least_share"] * Double(run.count + others)
        else { return }
        let (from, to) = (first.at -| 100_000_000, last.at)
        let share = Double(run.count) / Double(run.count +| others)
        found.append(
          Detection(
            "clipped-microphone", peer: track.peer, from: from, to: to,
            "at full scale in \(shareText(share)) of \(tenths(to - from)) s of speech",
            track: track.track, direction: track.direction, kind: "audio",
            impact: FindingImpact(share: share)))
      }
      var waiting = 0
      for level in loud {
        let isClipped =
          Double(level.peak) >= limits["least_peak"] && Float(level.peak) <= crest * level.rms
        if isClipped {
          (others, waiting) = (others +| waiting, 0)
          run.append(level)
        } else if !run.isEmpty {
          waiting +|= 1
          // Two seconds that are loud enough for speech but not clipped end the run.
          if waiting >= 20 {
            waiting = 0
            close()
          }
        }
      }
      close()
    }
    return found
  }

  /// Finds a hum or a tone: a constant level is not a voice.
  static let constantMicrophone = FindingRule(
    id: "microphone-constant", severity: .info, title: "Constant audio level",
    scope: .stream,
    thresholds: [
      Threshold("least_constant", 60, "s", "TW looks at 10 s, which a tone reaches"),
      Threshold("most_deviation", 0.01, "", "of full scale; TW: 327.67 of 32,767"),
    ],
    silentUnder: ["microphone-without-signal", "silent-audio"],
    sql: """
      SELECT peer, track, direction, min(level) AS least, max(level) AS most
      FROM audio_level GROUP BY peer, track, direction
      HAVING max(at_ns) - min(at_ns) >= :least_constant * 1000000000
        AND most - least < :most_deviation
      """, detector: findConstantMicrophones)

  @Sendable private static func findConstantMicrophones(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let most = Float(limits["most_deviation"] * 32_768)
    let least = Int64(saturating: limits["least_constant"] * 1e9)
    var found: [Detection] = []
    // Only the sender's audio is examined, because the sender has the microphone. The level of
    // speech varies with pauses and breathing.
    for track in facts.tracks where track.kind == "audio" && track.direction == .outbound {
      let levels = track.levels
      guard let first = levels.first, let last = levels.last, last.at -| first.at >= least,
        Double(levels.count) >= 0.5 * Double(last.at - first.at) / 1e8
      else { continue }
      let mean = levels.reduce(Float(0)) { $0 + $1.rms } / Float(levels.count)
      let variance =
        levels.reduce(Float(0)) { $0 + ($1.rms - mean) * ($1.rms - mean) } / Float(levels.count)
      guard mean > most, variance < most * most / 100 else { continue }
      found.append(
        Detection(
          "microphone-constant", peer: track.peer, from: first.at, to: last.at,
          "the level stayed at \(shareText(Double(mean) / 32_768)) of full scale for "
            + "\(tenths(last.at - first.at)) s",
          track: track.track, direction: track.direction, kind: "audio"))
    }
    return found
  }

  static let codecChanged = FindingRule(
    id: "codec-changed", severity: .info, title: "Codec changed", scope: .stream,
    sql: """
      SELECT DISTINCT peer, track, direction, codec FROM format WHERE ssrc <> 0
      """, detector: findCodecChanges)

  @Sendable private static func findCodecChanges(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.perception.codecChanges.map {
      Detection(
        "codec-changed", peer: $0.peer, from: $0.at, to: $0.at,
        "from \($0.from) to \($0.to)", track: $0.track, direction: $0.direction, kind: $0.kind)
    }
  }

  /// Finds telephone keypad tones (RFC 4733): harmless, but they explain why speech pauses.
  static let dialTones = FindingRule(
    id: "dtmf", severity: .info, title: "Keypad tones", scope: .stream,
    sql: """
      WITH described AS (
        SELECT peer, CAST(message AS TEXT) AS text FROM signaling
        WHERE type IN ('answer', 'offer')
        UNION ALL
        SELECT peer, arguments ->> '$._0.sdp' FROM call_request
        WHERE name IN ('setLocalDescription', 'setRemoteDescription')
      ),
      known AS (
        SELECT DISTINCT peer,
          CAST(substr(rest, 1, instr(rest, ' ') - 1) AS INTEGER) AS payload_type
        FROM (
          SELECT peer, substr(text, instr(text, ' telephone-event/') - 3) AS near,
            ltrim(replace(substr(text, instr(text, ' telephone-event/') - 3, 4), ':', ' '))
              || ' ' AS rest
          FROM described WHERE instr(text, ' telephone-event/') > 3
        )
      )
      SELECT stream.peer AS peer, first_ns AS from_ns, last_ns AS to_ns,
        packets || ' packets of telephone-event' AS evidence, ssrc, direction, 'audio' AS kind,
        packets AS count
      FROM stream JOIN known USING (peer, payload_type)
      """)

  /// Formats a duration in seconds with one decimal.
  static func tenths(_ nanoseconds: Int64) -> String {
    let value = (max(0, nanoseconds) +| 50_000_000) / 100_000_000
    return "\(value / 10).\(value % 10)"
  }

  /// Formats a ratio as a percentage, as in `12.3 %`.
  static func shareText(_ share: Double) -> String {
    let value = Int64((min(max(share, 0), 1e6) * 1000).rounded())
    return "\(value / 10).\(value % 10) %"
  }

  /// Formats a number rounded to an integer; infinite values are limited, and NaN is 0.
  static func whole(_ value: Double) -> String {
    "\(Int64(min(max(value.isNaN ? 0 : value, -9e15), 9e15).rounded()))"
  }
}

// MARK: - Perception

// Rules about perceived audio and video.

extension FindingRule {
  static let perceptionRules: [FindingRule] = [
    // Sources.
    stoppedCamera, stuckCamera, blackCamera, slowCamera, silentMicrophone, clippedMicrophone,
    quietMicrophone, microphoneGaps, constantMicrophone,
    // Encoders.
    cappedEncoder, processorLimit, slowEncoder, stoppedEncoder, encoderBehind, layerEnded,
    poorPicture, huntingResolution, codecChanged, dialTones,
    // Receivers.
    unansweredRequests, requestStorm, stuckDecoder, slowDecoder, droppedFrames, nullDecoder,
    corruptPicture, unsteadyRate, lateRepairDelay, largeKeyFrame, stretchedAudio, lateAudio,
    flushedBuffer, notPlayed, synthesizedPlayout, audioOutage, audioVideoApart,
  ]

  /// Additional causes for some rules, by the rule's id; they follow the causes in `networkCauses`
  /// and precede the causes that the rule itself names.
  static let perceptionCauses: [String: [String]] = [
    "freeze": [
      "key-frame-requests-unanswered", "camera-stopped", "camera-repeats", "simulcast-layer-ended",
      "decoder-stuck", "decoder-slow", "late-repair-delay", "key-frame-too-large",
      "encoder-limited-by-processor",
    ],
    "video-stopped": [
      "key-frame-requests-unanswered", "camera-stopped", "decoder-missing", "decoder-stuck",
      "simulcast-layer-ended",
    ],
    "video-paused": ["camera-stopped"],
    "stream-gap": ["camera-stopped"],
    "one-way-media": ["camera-stopped"],
    "no-key-frame": [
      "key-frame-requests-unanswered", "simulcast-layer-ended", "key-frame-too-large",
    ],
    "late-first-frame": [
      "key-frame-requests-unanswered", "decoder-missing", "decoder-stuck", "key-frame-too-large",
    ],
    "encoder-limited": ["encoder-capped", "encoder-limited-by-processor"],
    "silent-audio": ["microphone-without-signal"],
    "concealed-audio": ["audio-interrupted"],
    // An end that lacks candidates leaves the other end without remote candidates.
    "no-remote-candidates": ["turn-refused", "turn-refused-seen", "turn-unreachable"],
    // A change to a longer path delays packets once.
    "path-stalled": ["path-became-longer"],
    "nack-storm": ["reordering", "loss", "loss-burst", "no-repair", "repairs-missing"],
  ]
}

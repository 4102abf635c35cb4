import Wire

/// Selects the loudest voices for one listener, up to a limit.
///
/// A voice that speaks takes a free place, or that of the quietest holder if it is louder by
/// `margin`. A voice's loudness rises only with two consecutive blocks, so that a knock takes no
/// place, and falls by `fall`, so that pauses between words keep it. A silent voice keeps its place
/// until another one needs it.
struct VoiceSelection {
  private struct Voice {
    var media: UInt32
    /// The level of the last block in dBov, and its instant.
    var level: Double
    var loudness: Double
    var at: Instant
  }

  /// The minimum level of speech in dBov.
  static let gate = -50.0
  /// How much louder a voice has to be to replace another one, in decibels.
  static let margin = 6.0
  /// How fast the loudness of a voice falls, in decibels per second.
  static let fall = 80.0
  /// Blocks farther apart are not consecutive.
  private static let row = Interval.milliseconds(100)
  private static let silence = -127.0

  let count: Int
  private var voices: [Voice] = []
  /// The selected voices, in the order in which they were selected.
  private(set) var holders: [UInt32] = []

  init(count: Int) { self.count = max(0, count) }

  /// Records the level of a voice's next block in dBov; returns whether the holders changed.
  mutating func observe(_ level: Int, of media: UInt32, at now: Instant) -> Bool {
    let level = max(VoiceSelection.silence, min(0, Double(level)))
    let index: Int
    if let known = voices.firstIndex(where: { $0.media == media }) {
      index = known
      let sunk = loudness(of: voices[known], at: now)
      let isNext = now - voices[known].at <= VoiceSelection.row
      let both = isNext ? min(level, voices[known].level) : VoiceSelection.silence
      (voices[known].loudness, voices[known].level) = (max(sunk, both), level)
      voices[known].at = now
    } else {
      index = voices.count
      voices.append(
        Voice(media: media, level: level, loudness: VoiceSelection.silence, at: now))
    }
    guard count > 0, voices[index].loudness >= VoiceSelection.gate, !holders.contains(media)
    else { return false }
    return enter(media, voices[index].loudness, at: now)
  }

  private mutating func enter(_ media: UInt32, _ loudness: Double, at now: Instant) -> Bool {
    guard holders.count >= count else {
      holders.append(media)
      return true
    }
    // Of equally quiet ones the earlier is replaced.
    let quietest = holders.indices.min {
      level(of: holders[$0], at: now) < level(of: holders[$1], at: now)
    }
    guard let quietest,
      loudness >= level(of: holders[quietest], at: now) + VoiceSelection.margin
    else { return false }
    holders.remove(at: quietest)
    holders.append(media)
    return true
  }

  private func level(of media: UInt32, at now: Instant) -> Double {
    voices.first { $0.media == media }.map { loudness(of: $0, at: now) } ?? VoiceSelection.silence
  }

  private func loudness(of voice: Voice, at now: Instant) -> Double {
    let seconds = Double(max(0, (now - voice.at).nanoseconds)) / 1e9
    return max(VoiceSelection.silence, voice.loudness - VoiceSelection.fall * seconds)
  }

  /// Removes all voices but these; returns whether the holders changed.
  mutating func retain(_ media: [UInt32]) -> Bool {
    let former = holders.count
    voices.removeAll { !media.contains($0.media) }
    holders.removeAll { !media.contains($0) }
    return holders.count != former
  }
}

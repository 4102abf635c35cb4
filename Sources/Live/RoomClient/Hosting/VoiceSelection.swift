import Wire

/// Which of the voices of a room one listener is sent: the loudest, so many at most.
///
/// A voice that speaks takes a free place, or that of the quietest voice that holds one when it is
/// louder by `margin`. A voice's loudness follows two blocks in a row upwards, so that a knock
/// takes no place, and sinks by `fall` afterwards, so that the pauses between words cost none.
/// Who falls silent keeps its place until somebody else needs it.
struct VoiceSelection {
  private struct Voice {
    var media: UInt32
    /// The level of the last block in dBov, and when it came.
    var level: Double
    var loudness: Double
    var at: Instant
  }

  /// From this level on, in dBov, a block may be speech.
  static let gate = -50.0
  /// By how many decibels a voice is louder that takes the place of another one.
  static let margin = 6.0
  /// By how many decibels per second the loudness of a voice sinks that was louder before.
  static let fall = 80.0
  /// Blocks further apart than this are not in a row.
  private static let row = Interval.milliseconds(100)
  private static let silence = -127.0

  let count: Int
  private var voices: [Voice] = []
  /// The voices that are sent, in the order in which they took their places.
  private(set) var holders: [UInt32] = []

  init(count: Int) { self.count = max(0, count) }

  /// Handles the level of a voice's next block in dBov; returns whether the holders changed.
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
    // Of equally quiet ones that goes which was there first.
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

  /// Forgets all voices but these; returns whether the holders changed.
  mutating func retain(_ media: [UInt32]) -> Bool {
    let former = holders.count
    voices.removeAll { !media.contains($0.media) }
    holders.removeAll { !media.contains($0) }
    return holders.count != former
  }
}

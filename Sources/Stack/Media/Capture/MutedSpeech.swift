import Wire

/// Notices that somebody speaks into a microphone whose track is disabled: what the others do not
/// hear, and the speaker should be told.
struct MutedSpeech {
  /// How much voice makes speech; a cough is none.
  private static let onset = Interval.milliseconds(300)
  /// A pause of this length ends speech, or the beginning of it.
  private static let pause = Interval.milliseconds(1_000)

  private var voiced = Interval.zero
  private var lastVoice: Instant?
  private(set) var isSpeaking = false

  /// Handles a block of what the microphone gave.
  /// - Returns: whether speech began with it or ended before it; nil when neither did.
  mutating func hear(_ block: AudioBlock, at now: Instant) -> Bool? {
    let loudness = Loudness(samples: block.samples, channels: block.channels)
    let level = AudioMeter.level(energy: loudness.energy, frameCount: block.frameCount)
    let hasPaused = lastVoice.map { now - $0 >= Self.pause } ?? true
    if hasPaused { voiced = .zero }
    if !block.samples.isEmpty, AudioMeter.isVoice(level) {
      lastVoice = now
      voiced =
        voiced
        + Interval(
          nanoseconds: Int64(block.frameCount) * 1_000_000_000 / Int64(AudioBlock.sampleRate))
    }
    switch (isSpeaking, voiced >= Self.onset) {
    case (false, true): isSpeaking = true
    case (true, false): isSpeaking = false
    default: return nil
    }
    return isSpeaking
  }

  /// Forgets what was heard: the track is enabled again, or captures nothing more.
  ///
  /// - Returns: false when speech ends with it, else nil.
  mutating func end() -> Bool? {
    defer { self = MutedSpeech() }
    return isSpeaking ? false : nil
  }
}

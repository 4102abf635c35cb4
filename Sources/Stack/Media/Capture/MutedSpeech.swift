import Wire

/// Detects that somebody speaks into a disabled track, so that an application can say "you are
/// muted".
struct MutedSpeech {
  /// How much voice counts as speech; a cough is shorter.
  private static let onset = Interval.milliseconds(300)
  /// A pause of this length ends speech, or its beginning.
  private static let pause = Interval.milliseconds(1_000)

  private var voiced = Interval.zero
  private var lastVoice: Instant?
  private(set) var isSpeaking = false

  /// Handles a block from the microphone.
  /// - Returns: whether speech began or ended with it; nil if neither did.
  mutating func observe(_ block: AudioBlock, at now: Instant) -> Bool? {
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

  /// Resets the detector because the track was enabled or stopped.
  /// - Returns: false if speech ends with it, otherwise nil.
  mutating func end() -> Bool? {
    defer { self = MutedSpeech() }
    return isSpeaking ? false : nil
  }
}

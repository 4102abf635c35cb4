/// Counters of an audio source for W3C media-source and outbound-rtp statistics.
///
/// They derive from the energies that the encoder reports, so that a replay without samples counts
/// the same.
package struct AudioCaptureCounters: Hashable, Sendable {
  /// Blocks skipped because the clock was late.
  package var blocksSkipped: UInt64 = 0
  /// Blocks encoded and sent; with DTX fewer than were captured.
  package var framesEncoded: UInt64 = 0
  /// Samples per channel that were captured.
  package var samplesCaptured: UInt64 = 0

  package init() {}

  private var loudness = LoudnessWindow()

  /// The root mean square of the last 100 ms, 0 to 1 (W3C audioLevel); nil before the first.
  package var audioLevel: Double? { loudness.level }
  /// The level as Chromium takes it, from the loudest samples; nil before the first 100 ms.
  package var peakAudioLevel: Double? { loudness.peakLevel }
  /// The sum of squared loudness times duration, in seconds (W3C totalAudioEnergy).
  package var totalAudioEnergy: Double { loudness.totalEnergy }
  /// Duration of captured audio in seconds (W3C totalSamplesDuration).
  package var totalSamplesDuration: Double {
    Double(samplesCaptured) / Double(AudioBlock.sampleRate)
  }

  mutating func count(energy: UInt64, peak: UInt16, frameCount: Int) {
    samplesCaptured &+= UInt64(frameCount)
    loudness.add(energy: energy, peak: peak, frameCount: frameCount)
  }
}

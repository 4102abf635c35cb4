/// What an audio source gave, for W3C media-source and outbound-rtp statistics.
///
/// Everything follows from the levels that the encoder reports, so that a replay which has no
/// samples counts the same.
package struct AudioCaptureCounters: Hashable, Sendable {
  /// Blocks that were skipped because the clock came too late.
  package var blocksSkipped: UInt64 = 0
  /// Blocks that were encoded and sent; with DTX fewer than were captured.
  package var framesEncoded: UInt64 = 0
  /// Samples per channel that were captured.
  package var samplesCaptured: UInt64 = 0
  /// The level of the last block, 0 to 1 (W3C audioLevel).
  package var audioLevel = 0.0
  /// The sum of squared level times duration, in seconds (W3C totalAudioEnergy).
  package var totalAudioEnergy = 0.0
  /// How much sound was captured, in seconds (W3C totalSamplesDuration).
  package var totalSamplesDuration: Double {
    Double(samplesCaptured) / Double(AudioBlock.sampleRate)
  }

  mutating func count(level: UInt8, frameCount: Int) {
    samplesCaptured &+= UInt64(frameCount)
    audioLevel = AudioLevel.linear(level)
    let seconds = Double(frameCount) / Double(AudioBlock.sampleRate)
    totalAudioEnergy += audioLevel * audioLevel * seconds
  }
}

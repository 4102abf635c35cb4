import Testing

@testable import Media

struct PlayoutGainTests {
  private func samples(_ volume: Double, _ samples: [Int16]) -> [Int16] {
    let block = AudioBlock(samples: samples, channels: 1)
    let decoded = DecodedAudio(block: block, peak: 1, energy: 2)
    return PlayoutGain(volume: volume).applied(to: decoded).block.samples
  }

  @Test(arguments: [
    (0.0, [Int16(0), 0, 0, 0]), (0.5, [500, -500, 16_384, -16_384]),
    (2.0, [2_000, -2_000, 32_767, -32_768]), (10.0, [10_000, -10_000, 32_767, -32_768]),
    (11.0, [10_000, -10_000, 32_767, -32_768]), (-1.0, [0, 0, 0, 0]),
  ])
  func samplesAreScaledAndSaturate(volume: Double, expected: [Int16]) {
    #expect(samples(volume, [1_000, -1_000, 32_767, -32_768]) == expected)
  }

  @Test(arguments: [(0.99, true), (1.0, true), (1.01, true), (0.989, false), (1.011, false)])
  func unityGainsAreSkipped(volume: Double, isUnity: Bool) {
    #expect(PlayoutGain(volume: volume).isUnity == isUnity)
    #expect((samples(volume, [30_000]) == [30_000]) == isUnity)
  }

  /// Without codecs, a replay reports the recorded loudness, which already includes the gain.
  @Test func aBlockWithoutContentKeepsItsLoudness() {
    let decoded = DecodedAudio(
      block: AudioBlock(blank: 960, channels: 1), peak: 7, energy: 49)
    #expect(PlayoutGain.silence.applied(to: decoded) == decoded)
    let loud = DecodedAudio(
      block: AudioBlock(samples: [3, -4], channels: 1), peak: 4, energy: 25)
    let doubled = PlayoutGain(volume: 2).applied(to: loud)
    #expect(doubled.peak == 8 && doubled.energy == 100)
  }
}

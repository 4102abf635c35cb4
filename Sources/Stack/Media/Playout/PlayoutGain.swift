/// The volume of a received track, as an integer factor.
package struct PlayoutGain: Hashable, Sendable {
  /// Unchanged audio.
  package static let unity = PlayoutGain(volume: 1)
  /// No audio.
  package static let silence = PlayoutGain(volume: 0)
  /// The range of volumes; others are clamped.
  package static let volumes = 0.0...10.0
  /// Volumes too close to 1 to be heard; multiplication is skipped.
  private static let unheard = 0.99...1.01
  /// The factor 1.
  private static let one = 65_536.0

  private let factor: Int64

  /// Whether samples stay as they are.
  package let isUnity: Bool

  /// Creates the gain for a finite volume.
  package init(volume: Double) {
    let volume = min(max(volume, PlayoutGain.volumes.lowerBound), PlayoutGain.volumes.upperBound)
    isUnity = PlayoutGain.unheard.contains(volume)
    factor = Int64((volume * PlayoutGain.one).rounded())
  }

  /// Applies the gain to a block, clipping samples.
  ///
  /// A block without content comes from a recording, whose loudness already includes the gain.
  package func applied(to decoded: DecodedAudio) -> DecodedAudio {
    guard !isUnity, !decoded.block.samples.isEmpty else { return decoded }
    var block = decoded.block
    block.samples = block.samples.map { sample in
      Int16(clamping: (Int64(sample) * factor + 32_768) >> 16)
    }
    return PlayoutGain.measured(block)
  }

  /// Applies a ramp from the previous gain to this one.
  package func applied(to decoded: DecodedAudio, from former: PlayoutGain) -> DecodedAudio {
    var block = decoded.block
    guard !block.samples.isEmpty, block.frameCount > 0 else { return decoded }
    for frame in 0..<block.frameCount {
      let step = (factor - former.factor) * Int64(frame + 1) / Int64(block.frameCount)
      for index in (frame * block.channels)..<((frame + 1) * block.channels) {
        let scaled = (Int64(block.samples[index]) * (former.factor + step) + 32_768) >> 16
        block.samples[index] = Int16(clamping: scaled)
      }
    }
    return PlayoutGain.measured(block)
  }

  private static func measured(_ block: AudioBlock) -> DecodedAudio {
    let loudness = Loudness(samples: block.samples, channels: block.channels)
    return DecodedAudio(block: block, peak: loudness.peak, energy: loudness.energy)
  }
}

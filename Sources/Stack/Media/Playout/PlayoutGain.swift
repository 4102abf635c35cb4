/// The volume of a received track, as a factor of its samples in whole numbers.
package struct PlayoutGain: Hashable, Sendable {
  /// Audio as received.
  package static let unity = PlayoutGain(volume: 1)
  /// No audio.
  package static let silence = PlayoutGain(volume: 0)
  /// What a volume may be; others are taken for the nearest of these.
  package static let volumes = 0.0...10.0
  /// Volumes that change nothing: a multiplication that nobody hears is left out.
  private static let unheard = 0.99...1.01
  /// The factor 1.
  private static let one = 65_536.0

  private let factor: Int64

  /// Whether samples stay as they are.
  package let isUnity: Bool

  /// Creates the gain of a volume, which is a finite number.
  package init(volume: Double) {
    let volume = min(max(volume, PlayoutGain.volumes.lowerBound), PlayoutGain.volumes.upperBound)
    isUnity = PlayoutGain.unheard.contains(volume)
    factor = Int64((volume * PlayoutGain.one).rounded())
  }

  /// A block at this volume; what is too loud for a sample is the loudest one.
  ///
  /// A block without content is the answer of a recording, which told the loudness after the gain.
  package func applied(to decoded: DecodedAudio) -> DecodedAudio {
    guard !isUnity, !decoded.block.samples.isEmpty else { return decoded }
    var block = decoded.block
    block.samples = block.samples.map { sample in
      Int16(clamping: (Int64(sample) * factor + 32_768) >> 16)
    }
    return PlayoutGain.measured(block)
  }

  /// A block that begins at another volume and reaches this one with its last sample.
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

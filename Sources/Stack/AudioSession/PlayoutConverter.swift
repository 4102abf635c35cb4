package import Media

/// Turns units of 10 ms into what a device wants: any rate, any number of frames at a time.
package struct PlayoutConverter {
  package let format: AudioFormat
  private var resampler: Resampler?
  private var waiting: [Int16] = []

  /// Creates an empty converter; the format must be without fault.
  package init(_ format: AudioFormat) { self.format = format }

  /// How many frames are ready.
  package var frames: Int { waiting.count / format.channels }

  /// Takes audio at 48 kHz.
  package mutating func append(_ block: AudioBlock) {
    let mapped = ChannelMap.map(block.samples[...], from: block.channels, to: format.channels)
    if format.sampleRate == AudioBlock.sampleRate {
      waiting.append(contentsOf: mapped)
      return
    }
    if resampler == nil {
      resampler = Resampler(
        rate: AudioBlock.sampleRate, channels: format.channels, to: format.sampleRate)
    }
    resampler?.append(mapped, into: &waiting)
  }

  /// The next frames, interleaved; nil while there are too few.
  package mutating func read(_ count: Int) -> [Int16]? {
    let samples = count * format.channels
    guard waiting.count >= samples else { return nil }
    defer { waiting.removeFirst(samples) }
    return Array(waiting[..<samples])
  }
}

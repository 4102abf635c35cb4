package import Media

/// Converts units of 10 ms to the device's rate and number of frames.
package struct PlayoutConverter {
  package let format: AudioFormat
  private var resampler: Resampler?
  private var waiting: [Int16] = []

  /// Creates an empty converter for a valid format.
  package init(_ format: AudioFormat) { self.format = format }

  /// The number of frames available.
  package var frames: Int { waiting.count / format.channels }

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

  /// Returns the next frames, interleaved; nil if there are too few.
  package mutating func read(_ count: Int) -> [Int16]? {
    let samples = count * format.channels
    guard waiting.count >= samples else { return nil }
    defer { waiting.removeFirst(samples) }
    return Array(waiting[..<samples])
  }
}

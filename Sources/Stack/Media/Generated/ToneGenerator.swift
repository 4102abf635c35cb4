/// A sine tone with pauses as a pure function of the position.
package struct ToneGenerator {
  /// The peak of the tone, 12 dB below full scale.
  static let amplitude = 8_231

  /// The fade time in samples, without which pauses would start with a click.
  private static let fadeLength: Int64 = 480

  /// A quarter wave: entry `k` is the sine at `k` of 48000 parts of a turn.
  private static let quarterWave: [Int16] = (0...12_000).map { part in
    Int16((Sine.ofTurns(Double(part) / 48_000) * Double(amplitude)).rounded())
  }

  private let hertz: Int64
  /// The period of the pauses in samples; 0 for none.
  private let period: Int64

  /// Creates a tone; the frequency is taken modulo the sampling rate.
  package init(hertz: Int, pauseSeconds: Int) {
    let rate = Int64(AudioBlock.sampleRate)
    self.hertz = Int64(hertz.magnitude % UInt(rate))
    period = Int64(min(max(pauseSeconds, 0), 86_400)) * rate
  }

  /// Returns the block at a position in samples since the start of the tone.
  package func block(at position: Int64, frameCount: Int, channels: Int) -> AudioBlock {
    let count = frameCount * channels
    let samples = unsafe [Int16](unsafeUninitializedCapacity: count) { buffer, initialized in
      unsafe ToneGenerator.quarterWave.withUnsafeBufferPointer { wave in
        for frame in 0..<frameCount {
          let value = unsafe sample(at: position + Int64(frame), wave)
          for channel in 0..<channels {
            unsafe buffer[frame * channels + channel] = value
          }
        }
      }
      initialized = count
    }
    return AudioBlock(samples: samples, channels: channels)
  }

  @inline(__always)
  private func sample(at position: Int64, _ wave: UnsafeBufferPointer<Int16>) -> Int16 {
    let loudness = gain(at: position)
    guard loudness > 0 else { return 0 }
    let part = Int((position % 48_000) * hertz % 48_000)
    let value: Int64
    switch part {
    case ...12_000: value = unsafe Int64(wave[part])
    case ...24_000: value = unsafe Int64(wave[24_000 - part])
    case ...36_000: value = unsafe -Int64(wave[part - 24_000])
    default: value = unsafe -Int64(wave[48_000 - part])
    }
    return Int16(value * loudness / ToneGenerator.fadeLength)
  }

  /// The gain at a position, from 0 to `fadeLength`.
  @inline(__always)
  private func gain(at position: Int64) -> Int64 {
    let fade = ToneGenerator.fadeLength
    guard period > 0 else { return min(position, fade) }
    let place = position % period
    let audioLength = period - Int64(AudioBlock.sampleRate)
    guard place < audioLength else { return 0 }
    return min(place, audioLength - place, fade)
  }
}

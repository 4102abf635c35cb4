/// A low-pass filter between 48 kHz and the 8 kHz of G.711, in integer arithmetic.
///
/// A sinc with a Hann window of 3 ms: flat to 3.2 kHz, nothing above 4.6 kHz, and a delay of 1.5 ms
/// in each direction. Each sample at 8 kHz corresponds to exactly six.
enum NarrowbandFilter {
  /// 48 kHz over 8 kHz.
  static let ratio = 6
  /// The window in samples at 8 kHz.
  private static let span = 24
  /// The coefficients of an output add up to 2 to this power.
  private static let upShift = 13
  private static let downShift = 14

  /// Upsamples by six from 8 kHz.
  struct Up {
    private var history = [Int32](repeating: 0, count: span - 1)

    mutating func append(_ input: [Int16], into output: inout [Int16]) {
      let samples = history + input.map { Int32($0) }
      output.reserveCapacity(output.count + input.count * ratio)
      unsafe samples.withUnsafeBufferPointer { samples in
        unsafe phases.withUnsafeBufferPointer { phases in
          for first in 0..<input.count {
            for phase in 0..<ratio {
              var sum: Int32 = 1 << Int32(upShift - 1)
              for tap in 0..<span {
                sum &+= unsafe samples[first &+ tap] &* phases[phase &* span &+ tap]
              }
              output.append(Int16(clamping: sum >> Int32(upShift)))
            }
          }
        }
      }
      history = Array(samples.suffix(span - 1))
    }
  }

  /// Downsamples by six to 8 kHz.
  struct Down {
    private var history = [Int32](repeating: 0, count: (span - 1) * ratio)

    /// Filters whole groups of six samples; a remainder is dropped.
    mutating func append(_ input: [Int16], into output: inout [Int16]) {
      let count = input.count / ratio
      let samples = history + input.prefix(count * ratio).map { Int32($0) }
      unsafe samples.withUnsafeBufferPointer { samples in
        unsafe lowPass.withUnsafeBufferPointer { taps in
          for place in 0..<count {
            var sum: Int32 = 1 << Int32(downShift - 1)
            for tap in 0..<taps.count {
              sum &+= unsafe samples[place &* ratio &+ tap] &* taps[tap]
            }
            output.append(Int16(clamping: sum >> Int32(downShift)))
          }
        }
      }
      history = Array(samples.suffix((span - 1) * ratio))
    }
  }

  // MARK: Coefficients

  /// The frequency at which half of the amplitude is left, relative to 48 kHz.
  private static let cutoff = 3_800.0 / 48_000

  private static let window: [Double] = {
    let length = span * ratio
    return (0..<length).map { place in
      // The centre is on a sample, so that the delay is a whole number of samples.
      let distance = Double(place - length / 2)
      // cos(x) is sin(x + a quarter turn).
      let hann = 0.5 + 0.5 * Sine.ofTurns(distance / Double(length) + 0.25)
      guard distance != 0 else { return hann * 2 * cutoff }
      return hann * Sine.ofTurns(distance * cutoff) / (.pi * distance)
    }
  }()

  /// The window for one output at 8 kHz, oldest sample first.
  private static let lowPass = scaled(window, to: 1 << downShift)

  /// For each of six outputs at 48 kHz the taps on the samples at 8 kHz, oldest first; every row
  /// has the same sum, so that a constant stays constant.
  private static let phases: [Int32] = (0..<ratio).flatMap { phase in
    scaled(
      (0..<span).map { window[phase + ratio * (span - 1 - $0)] }, to: 1 << upShift)
  }

  /// Rounds weights to integers with an exact sum; the largest one absorbs the rounding error.
  private static func scaled(_ weights: [Double], to sum: Int32) -> [Int32] {
    let whole = weights.reduce(0, +)
    var taps = weights.map { Int32(($0 * Double(sum) / whole).rounded()) }
    if let largest = taps.indices.max(by: { taps[$0] < taps[$1] }) {
      taps[largest] += sum - taps.reduce(0, +)
    }
    return taps
  }
}

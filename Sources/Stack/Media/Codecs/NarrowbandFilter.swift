/// A low pass between 48 kHz and the 8 kHz of G.711, in whole numbers.
///
/// It is a sinc under a Hann window of 3 ms: level to 3.2 kHz, nothing above 4.6 kHz, and a delay
/// of 1.5 ms either way. For each sample at 8 kHz exactly six go out or come in.
enum NarrowbandFilter {
  /// 48 kHz over 8 kHz.
  static let ratio = 6
  /// How many samples at 8 kHz the window spans.
  private static let span = 24
  /// What the coefficients of an output add up to: 2 to this power.
  private static let upShift = 13
  private static let downShift = 14

  /// Turns samples at 8 kHz into six times as many.
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

  /// Turns six samples at 48 kHz into one.
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

  /// The frequency at which half of the amplitude is left, in shares of 48 kHz.
  private static let cutoff = 3_800.0 / 48_000

  private static let window: [Double] = {
    let length = span * ratio
    return (0..<length).map { place in
      // The middle lies on a sample, so that the delay is a whole number of them.
      let distance = Double(place - length / 2)
      // cos(x) is sin(x + a quarter turn).
      let hann = 0.5 + 0.5 * Sine.ofTurns(distance / Double(length) + 0.25)
      guard distance != 0 else { return hann * 2 * cutoff }
      return hann * Sine.ofTurns(distance * cutoff) / (.pi * distance)
    }
  }()

  /// The window for one output at 8 kHz, the oldest sample first.
  private static let lowPass = scaled(window, to: 1 << downShift)

  /// For each of six outputs at 48 kHz the taps on the samples at 8 kHz, the oldest first; each row
  /// adds up to the same, so that a constant stays one.
  private static let phases: [Int32] = (0..<ratio).flatMap { phase in
    scaled(
      (0..<span).map { window[phase + ratio * (span - 1 - $0)] }, to: 1 << upShift)
  }

  /// The weights in whole numbers whose sum is exact: what rounding leaves goes to the largest.
  private static func scaled(_ weights: [Double], to sum: Int32) -> [Int32] {
    let whole = weights.reduce(0, +)
    var taps = weights.map { Int32(($0 * Double(sum) / whole).rounded()) }
    if let largest = taps.indices.max(by: { taps[$0] < taps[$1] }) {
      taps[largest] += sum - taps.reduce(0, +)
    }
    return taps
  }
}

/// Converts 16-bit audio between sampling rates, in integer arithmetic.
///
/// It uses a windowed-sinc filter with 128 phases, and interpolates between neighbouring phases.
/// Positions are exact fractions, so nothing drifts however long the audio is, and the output does
/// not depend on how the input is split.
package struct Resampler {
  /// The supported rates in Hz.
  package static let rates = 8_000...192_000

  private static let phaseCount = 128
  /// The number of the filter's zero crossings on each side of its centre.
  private static let crossings = 12
  private static let unity = 1 << 14

  private let rate: Int
  private let target: Int
  private let channels: Int
  /// The filter's span in input frames, half of them before the output position.
  private let tapCount: Int
  /// `phaseCount + 1` rows of `tapCount` coefficients, each row adding up to `unity`.
  private let coefficients: [Int32]
  /// Input frames still needed, interleaved.
  private var history: [Int16]
  /// The position of the next output: complete input frames in `history`, and a fraction in units
  /// of the output rate.
  private var place = 0
  private var fraction = 0

  /// Creates a converter; both rates must be in `rates`.
  package init(rate: Int, channels: Int, to target: Int = AudioBlock.sampleRate) {
    self.rate = rate
    self.target = target
    self.channels = channels
    let stretch = max(rate, target)
    let half = (Resampler.crossings * stretch + target - 1) / target
    tapCount = 2 * half
    // Audio at the target rate passes unchanged.
    coefficients =
      rate == target ? [] : Resampler.filter(half: half, rate: rate, target: target)
    // Silence before the start centres the first output on the first input.
    history = Array(repeating: 0, count: (half - 1) * channels)
  }

  /// Consumes interleaved input, and appends the output that it completes.
  package mutating func append(_ input: some Collection<Int16>, into output: inout [Int16]) {
    if rate == target {
      output.append(contentsOf: input)
      return
    }
    history.append(contentsOf: input)
    let available = history.count / channels
    while place + tapCount <= available {
      let scaled = fraction * Resampler.phaseCount
      let phase = scaled / target
      let weight = (scaled % target) * 256 / target
      for channel in 0..<channels {
        output.append(sample(channel: channel, phase: phase, weight: weight))
      }
      fraction += rate
      place += fraction / target
      fraction %= target
    }
    let passed = min(place, available)
    history.removeFirst(passed * channels)
    place -= passed
  }

  /// Appends the last output, as if silence followed the input.
  package mutating func finish(into output: inout [Int16]) {
    guard rate != target else { return }
    append(repeatElement(0, count: tapCount / 2 * channels), into: &output)
  }

  private func sample(channel: Int, phase: Int, weight: Int) -> Int16 {
    let row = phase * tapCount
    var near: Int64 = 0
    var far: Int64 = 0
    for tap in 0..<tapCount {
      let value = Int64(history[(place + tap) * channels + channel])
      near += value * Int64(coefficients[row + tap])
      far += value * Int64(coefficients[row + tapCount + tap])
    }
    let mixed = near * Int64(256 - weight) + far * Int64(weight)
    let scale = Int64(256 * Resampler.unity)
    return Int16(clamping: (mixed + scale / 2) >> 22)
  }

  /// Computes the coefficients: a sinc that cuts off at 95 % of the lower of the two Nyquist
  /// frequencies, with a Hann window.
  private static func filter(half: Int, rate: Int, target: Int) -> [Int32] {
    let cutoff = min(1, Double(target) / Double(rate)) * 0.95
    let reach = Double(half)
    var rows: [Int32] = []
    for phase in 0...phaseCount {
      let offset = Double(phase) / Double(phaseCount)
      var weights = (0..<2 * half).map { tap -> Double in
        let distance = Double(tap - half + 1) - offset
        guard distance > -reach, distance < reach else { return 0 }
        // cos(x) is sin(x + a quarter turn).
        let window = 0.5 + 0.5 * Sine.ofTurns(distance / (2 * reach) + 0.25)
        let angle = distance * cutoff
        return window * (angle == 0 ? 1 : Sine.ofTurns(angle / 2) / (.pi * angle))
      }
      let sum = weights.reduce(0, +)
      for index in weights.indices { weights[index] *= Double(unity) / sum }
      rows.append(contentsOf: weights.map { Int32($0.rounded()) })
    }
    return rows
  }
}

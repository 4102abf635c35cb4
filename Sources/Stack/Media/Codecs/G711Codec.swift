package import RTP

/// A G.711 encoder (ITU-T G.711, RFC 3551 section 4.5.14): 160 bytes per 20 ms block.
final class G711Encoder: AudioEncoding {
  private let law: G711Law
  private let channels: Int
  private var filter = NarrowbandFilter.Down()

  init(_ law: G711Law, channels: Int) {
    self.law = law
    self.channels = max(1, channels)
  }

  var wantsSamples: Bool { true }

  /// Does nothing: G.711 has no FEC and only one bit rate.
  func setPacketLoss(percent: Int32) {}

  func encode(_ block: AudioBlock) throws(CodecError) -> EncodedAudio {
    let length = BlockCutter.blockLength
    guard block.frameCount == length, block.channels == channels else {
      throw CodecError(
        reason: "a block for G.711 has \(length) samples in \(channels) channels, "
          + "not \(block.frameCount) in \(block.channels)")
    }
    // A block without samples is silence.
    let samples =
      block.samples.count == length * channels
      ? block.samples : [Int16](repeating: 0, count: length * channels)
    var narrow: [Int16] = []
    filter.append(mono(samples), into: &narrow)
    let loudness = Loudness(samples: samples, channels: channels)
    let level = AudioMeter.level(energy: loudness.energy, frameCount: length)
    return EncodedAudio(
      bytes: narrow.map { law.encode($0) }, isVoice: AudioMeter.isVoice(level), level: level,
      peak: loudness.peak, energy: loudness.energy)
  }

  /// Returns a single channel with the mean of all channels.
  private func mono(_ samples: [Int16]) -> [Int16] {
    guard channels > 1 else { return samples }
    return stride(from: 0, to: samples.count - channels + 1, by: channels).map { first in
      var sum = 0
      for channel in 0..<channels { sum += Int(samples[first + channel]) }
      return Int16(clamping: sum / channels)
    }
  }
}

/// A G.711 decoder with output at 48 kHz in one or two identical channels.
package final class G711Decoder: AudioDecoding {
  private let law: G711Law
  private let channels: Int
  private var filter = NarrowbandFilter.Up()
  private var concealment = NarrowbandConcealment()

  package init(_ law: G711Law, channels: Int) {
    self.law = law
    self.channels = min(max(channels, 1), 2)
  }

  package func decode(_ request: AudioDecodeRequest) throws(CodecError) -> DecodedAudio {
    switch request {
    case .payload(let bytes):
      let samples = law.samples
      return output(concealment.follow(bytes.map { samples[Int($0)] }), lasting: nil)
    case .recoverPrevious(_, let count), .conceal(let count):
      guard count > 0, count <= G711Decoder.mostConcealed else {
        throw CodecError(reason: "G.711 cannot make up \(count) samples")
      }
      let ratio = NarrowbandFilter.ratio
      return output(concealment.conceal((count + ratio - 1) / ratio), lasting: count)
    }
  }

  /// The maximum number of samples concealed at once: 200 ms at 48 kHz, longer than any block.
  private static let mostConcealed = 9_600

  private func output(_ narrow: [Int16], lasting count: Int?) -> DecodedAudio {
    var samples: [Int16] = []
    filter.append(narrow, into: &samples)
    if let count, samples.count > count { samples.removeLast(samples.count - count) }
    if channels == 2 { samples = samples.flatMap { [$0, $0] } }
    let loudness = Loudness(samples: samples, channels: channels)
    return DecodedAudio(
      block: AudioBlock(samples: samples, channels: channels), peak: loudness.peak,
      energy: loudness.energy)
  }
}

/// Conceals lost audio at 8 kHz as in G.711 appendix I: repeats the last pitch period, fading out
/// between 10 and 60 ms.
///
/// Periods are cross-faded, as is the audio after them, to avoid clicks.
struct NarrowbandConcealment {
  /// The length of the history in samples: the longest period and its search window.
  private static let historyLength = 280
  /// Pitch periods of 5 to 15 ms.
  private static let periods = 40...120
  private static let correlated = 160
  private static let loud = 80
  private static let longest = 480
  /// Audio after concealment fades in over 4 ms.
  private static let fadeLength = 32

  private var history: [Int16] = []
  /// The period being repeated; empty when nothing is concealed.
  private var period: [Int16] = []
  private var made = 0

  mutating func conceal(_ count: Int) -> [Int16] {
    if period.isEmpty { begin() }
    let samples = (0..<count).map { _ in next() }
    remember(samples)
    return samples
  }

  /// Continues with received samples after concealment; returns them faded in.
  mutating func follow(_ samples: [Int16]) -> [Int16] {
    var samples = samples
    if !period.isEmpty {
      let length = min(Self.fadeLength, samples.count)
      for place in 0..<length {
        let share = place + 1
        let former = Int(next()) * (length + 1 - share)
        samples[place] = Int16(clamping: (former + Int(samples[place]) * share) / (length + 1))
      }
    }
    period = []
    made = 0
    remember(samples)
    return samples
  }

  private mutating func next() -> Int16 {
    guard !period.isEmpty else { return 0 }
    let sample = Int(period[made % period.count])
    let left = Self.longest - made
    made += 1
    if left <= 0 { return 0 }
    let most = Self.longest - Self.loud
    return Int16(clamping: sample * min(left, most) / most)
  }

  private mutating func remember(_ samples: [Int16]) {
    history.append(contentsOf: samples)
    if history.count > Self.historyLength {
      history.removeFirst(history.count - Self.historyLength)
    }
  }

  private mutating func begin() {
    made = 0
    guard history.count == Self.historyLength else {
      // There is too little history to repeat any of it.
      period = [0]
      return
    }
    let length = bestPeriod
    let start = history.count - length
    period = Array(history[start...])
    // The end of each period fades into the start of the next.
    let joint = length / 4
    for place in 0..<joint {
      let share = place + 1
      let index = length - joint + place
      let before = Int(history[start - joint + place]) * share
      period[index] = Int16(
        clamping: (Int(period[index]) * (joint + 1 - share) + before) / (joint + 1))
    }
  }

  /// The period with the best correlation to the last samples.
  private var bestPeriod: Int {
    let first = history.count - Self.correlated
    var best = (length: Self.periods.upperBound, score: 0.0)
    for length in Self.periods {
      var product = 0
      var energy = 0
      for place in first..<history.count {
        let former = Int(history[place - length])
        product += Int(history[place]) * former
        energy += former * former
      }
      guard product > 0, energy > 0 else { continue }
      let score = Double(product) * Double(product) / Double(energy)
      if score > best.score { best = (length, score) }
    }
    return best.length
  }
}

// MARK: - G711Law

/// G.711's two companding laws between 16-bit and 8-bit samples (ITU-T G.711 tables 1 and 2).
package enum G711Law: Hashable, Sendable {
  /// The mu law: PCMU.
  case mu
  /// The A law: PCMA.
  case a

  /// Creates the law of a codec; nil if the codec is not G.711.
  package init?(_ codec: CodecName) {
    switch codec {
    case .pcmu: self = .mu
    case .pcma: self = .a
    default: return nil
    }
  }

  package var silence: UInt8 { encode(0) }

  var samples: [Int16] { self == .mu ? G711Law.muSamples : G711Law.aSamples }

  private static let muSamples = (UInt8.min...UInt8.max).map { decodeMu($0) }
  private static let aSamples = (UInt8.min...UInt8.max).map { decodeA($0) }

  package func encode(_ sample: Int16) -> UInt8 {
    self == .mu ? G711Law.encodeMu(sample) : G711Law.encodeA(sample)
  }

  package func decode(_ code: UInt8) -> Int16 { samples[Int(code)] }

  // MARK: The mu law

  /// The number added to a magnitude, so that each segment starts at a power of two.
  private static let bias = 0x84
  /// The largest magnitude that has a code.
  private static let largest = 32_635

  private static func encodeMu(_ sample: Int16) -> UInt8 {
    let magnitude = min(abs(Int(sample)), largest) + bias
    // The segment follows from the highest set bit, which is bit 7 or above.
    let segment = magnitude.bitWidth - 1 - magnitude.leadingZeroBitCount - 7
    let mantissa = magnitude >> (segment + 3) & 0x0f
    // All bits are inverted, so that quiet lines have many ones.
    return ~UInt8(truncatingIfNeeded: (sample < 0 ? 0x80 : 0) | segment << 4 | mantissa)
  }

  private static func decodeMu(_ code: UInt8) -> Int16 {
    let bits = Int(~code)
    let magnitude = ((bits & 0x0f) << 3 + bias) << (bits >> 4 & 7) - bias
    return Int16(clamping: bits & 0x80 == 0 ? magnitude : -magnitude)
  }

  // MARK: The A law

  private static func encodeA(_ sample: Int16) -> UInt8 {
    // Negative values count down from -1, so that both halves have the same number of codes.
    let magnitude = (sample >= 0 ? Int(sample) : -1 - Int(sample)) >> 4
    let sign = sample >= 0 ? 0x80 : 0
    // The two lowest segments have steps of the same size.
    guard magnitude >= 32 else { return UInt8(truncatingIfNeeded: sign | magnitude) ^ 0x55 }
    let segment = magnitude.bitWidth - 1 - magnitude.leadingZeroBitCount - 3
    let mantissa = magnitude >> (segment - 1) & 0x0f
    return UInt8(truncatingIfNeeded: sign | segment << 4 | mantissa) ^ 0x55
  }

  private static func decodeA(_ code: UInt8) -> Int16 {
    let bits = Int(code ^ 0x55)
    let segment = bits >> 4 & 7
    let mantissa = (bits & 0x0f) << 4 + 8
    let magnitude = segment == 0 ? mantissa : (mantissa + 0x100) << (segment - 1)
    return Int16(clamping: bits & 0x80 == 0 ? -magnitude : magnitude)
  }
}

// MARK: - NarrowbandFilter

/// A low-pass filter between 48 kHz and G.711's 8 kHz, in integer arithmetic.
///
/// It is a sinc with a 3 ms Hann window: flat up to 3.2 kHz, silent above 4.6 kHz, and with a delay
/// of 1.5 ms in each direction. Each sample at 8 kHz corresponds to exactly six at 48 kHz.
enum NarrowbandFilter {
  /// The number of samples at 48 kHz for each one at 8 kHz.
  static let ratio = 6
  /// The window length in samples at 8 kHz.
  private static let span = 24
  /// The coefficients for one output sample add up to 2 to the power of this number.
  private static let upShift = 13
  private static let downShift = 14

  /// Upsamples from 8 kHz by six.
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

  /// Downsamples to 8 kHz by six.
  struct Down {
    private var history = [Int32](repeating: 0, count: (span - 1) * ratio)

    /// Filters complete groups of six samples; a remainder is dropped.
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

  /// The frequency of half amplitude, relative to 48 kHz.
  private static let cutoff = 3_800.0 / 48_000

  private static let window: [Double] = {
    let length = span * ratio
    return (0..<length).map { place in
      // The centre is on a sample, so the delay is a whole number of samples.
      let distance = Double(place - length / 2)
      // cos(x) is sin(x + a quarter turn).
      let hann = 0.5 + 0.5 * Sine.ofTurns(distance / Double(length) + 0.25)
      guard distance != 0 else { return hann * 2 * cutoff }
      return hann * Sine.ofTurns(distance * cutoff) / (.pi * distance)
    }
  }()

  /// The taps for one output at 8 kHz, oldest sample first.
  private static let lowPass = scaled(window, to: 1 << downShift)

  /// The taps for each of the six outputs at 48 kHz per sample at 8 kHz, oldest sample first.
  ///
  /// All six rows have the same sum, so a constant input stays constant.
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

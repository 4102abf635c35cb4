/// Measures loudness in integer arithmetic: peak, energy and RFC 6464 level.
///
/// The level is looked up in a table of thresholds instead of computed with a logarithm, so that it
/// is the same on every machine.
package enum AudioMeter {
  package static let silence: UInt8 = 127

  /// The quietest level that counts as voice.
  package static let voiceThreshold: UInt8 = 50

  /// Returns a block's level in -dBov, 0 loudest to 127 silent (RFC 6464 section 3).
  /// - Parameters:
  ///   - energy: the sum of squares of one channel's samples.
  ///   - frameCount: the number of samples.
  package static func level(energy: UInt64, frameCount: Int) -> UInt8 {
    guard energy > 0, frameCount > 0 else { return silence }
    let meanSquare = (UInt128(energy) << 20) / UInt128(frameCount)
    var low = 0
    var high = thresholds.count
    while low < high {
      let middle = (low + high) / 2
      if meanSquare <= UInt128(thresholds[middle]) { low = middle + 1 } else { high = middle }
    }
    return UInt8(low)
  }

  package static func isVoice(_ level: UInt8) -> Bool { level <= voiceThreshold }

  /// Returns a level as a fraction of full scale, 0 to 1 (W3C audioLevel of RTP sources).
  package static func linear(_ level: UInt8) -> Double {
    level >= silence ? 0 : linears[Int(level)]
  }

  /// Returns the root mean square as a fraction of full scale, 0 to 1.
  package static func rootMeanSquare(energy: Double, frameCount: Int) -> Double {
    guard frameCount > 0 else { return 0 }
    return min(1, (energy / Double(frameCount)).squareRoot() / fullScale)
  }

  static let fullScale = 32_767.0

  /// The linear factors for 0 to -126 dB in steps of 1 dB.
  private static let linears: [Double] = {
    var factors: [Double] = []
    var factor = 1.0
    for _ in 0..<127 {
      factors.append(factor)
      factor *= 0.891_250_938_133_745_6
    }
    return factors
  }()

  /// The mean squares, times 2^20, at or below which the level is at least 1, 2, and so on to 126.
  private static let thresholds: [UInt64] = [
    1_003_459_348_218_185, 797_076_092_687_729, 633_140_045_645_571, 502_921_014_790_898,
    399_484_361_884_598, 317_321_707_975_749, 252_057_592_136_070, 200_216_462_210_297,
    159_037_588_990_246, 126_328_047_317_428, 100_345_934_821_818, 79_707_609_268_772,
    63_314_004_564_557, 50_292_101_479_089, 39_948_436_188_459, 31_732_170_797_574,
    25_205_759_213_607, 20_021_646_221_029, 15_903_758_899_024, 12_632_804_731_742,
    10_034_593_482_181, 7_970_760_926_877, 6_331_400_456_455, 5_029_210_147_908,
    3_994_843_618_845, 3_173_217_079_757, 2_520_575_921_360, 2_002_164_622_102,
    1_590_375_889_902, 1_263_280_473_174, 1_003_459_348_218, 797_076_092_687,
    633_140_045_645, 502_921_014_790, 399_484_361_884, 317_321_707_975,
    252_057_592_136, 200_216_462_210, 159_037_588_990, 126_328_047_317,
    100_345_934_821, 79_707_609_268, 63_314_004_564, 50_292_101_479,
    39_948_436_188, 31_732_170_797, 25_205_759_213, 20_021_646_221,
    15_903_758_899, 12_632_804_731, 10_034_593_482, 7_970_760_926,
    6_331_400_456, 5_029_210_147, 3_994_843_618, 3_173_217_079,
    2_520_575_921, 2_002_164_622, 1_590_375_889, 1_263_280_473,
    1_003_459_348, 797_076_092, 633_140_045, 502_921_014,
    399_484_361, 317_321_707, 252_057_592, 200_216_462,
    159_037_588, 126_328_047, 100_345_934, 79_707_609,
    63_314_004, 50_292_101, 39_948_436, 31_732_170,
    25_205_759, 20_021_646, 15_903_758, 12_632_804,
    10_034_593, 7_970_760, 6_331_400, 5_029_210,
    3_994_843, 3_173_217, 2_520_575, 2_002_164,
    1_590_375, 1_263_280, 1_003_459, 797_076,
    633_140, 502_921, 399_484, 317_321,
    252_057, 200_216, 159_037, 126_328,
    100_345, 79_707, 63_314, 50_292,
    39_948, 31_732, 25_205, 20_021,
    15_903, 12_632, 10_034, 7_970,
    6_331, 5_029, 3_994, 3_173,
    2_520, 2_002, 1_590, 1_263,
    1_003, 797, 633, 502,
    399, 317,
  ]
}

/// A block's largest absolute sample and its energy.
package struct Loudness: Hashable, Sendable {
  /// The largest absolute sample in the first two channels.
  package var peak: UInt16 = 0
  /// The loudest channel's sum of squares.
  package var energy: UInt64 = 0

  /// Measures interleaved samples; ignores all channels but the first two.
  package init(samples: [Int16], channels: Int) {
    unsafe samples.withUnsafeBufferPointer { buffer in
      let count = buffer.count
      let step = max(1, channels)
      for channel in 0..<min(step, 2) {
        var sum: UInt64 = 0
        var largest: Int32 = 0
        var index = channel
        while index < count {
          let value = Int32(unsafe buffer[index])
          largest = max(largest, abs(value))
          sum &+= UInt64(UInt32(bitPattern: value &* value))
          index &+= step
        }
        peak = max(peak, UInt16(largest))
        energy = max(energy, sum)
      }
    }
  }
}

/// The loudness of a sequence of blocks: total energy and recent level.
///
/// As in W3C, the energy is the sum of squared samples, as fractions of full scale, times their
/// duration; the level is the root mean square over 100 ms. Both use the loudest channel.
struct LoudnessWindow: Hashable, Sendable {
  /// The total energy in seconds (W3C totalAudioEnergy).
  private(set) var totalEnergy = 0.0
  /// Root mean square of the last full window, 0 to 1 (W3C audioLevel); nil before the first.
  private(set) var level: Double?
  /// The loudest sample in the last full window, 0 to 1; nil before the first.
  ///
  /// It falls at most to a quarter of its value per window, like Chromium's audioLevel.
  private(set) var peakLevel: Double?

  private var peak: UInt16 = 0
  private var fallingPeak: UInt16 = 0
  private var energy = 0.0
  private var length = 0

  private static let windowLength = AudioBlock.sampleRate / 10

  /// Adds a block: its sum of squared samples, its largest sample, and the number of samples.
  mutating func add(energy blockEnergy: UInt64, peak blockPeak: UInt16, frameCount: Int) {
    let value = Double(blockEnergy)
    let scale = AudioMeter.fullScale
    totalEnergy += value / (scale * scale) / Double(AudioBlock.sampleRate)
    energy += value
    length += frameCount
    peak = max(peak, blockPeak)
    guard length >= LoudnessWindow.windowLength else { return }
    level = AudioMeter.rootMeanSquare(energy: energy, frameCount: length)
    fallingPeak = max(peak, fallingPeak >> 2)
    peakLevel = min(1, Double(fallingPeak) / scale)
    energy = 0
    length = 0
    peak = 0
  }
}

// MARK: - AudioLevel

/// The loudness of audio at one moment, in whole decibels below full scale (dBov).
///
/// It converts to the three usual scales: dBov as in RFC 6464, a fraction of full scale as in W3C's
/// `audioLevel`, and 0 to 100 as on meters.
package struct AudioLevel: Hashable, Comparable, Sendable {
  /// Decibels relative to full scale: 0 is the loudest, -127 is silence.
  package let dbov: Int

  package static let silence = AudioLevel(dbov: -127)

  /// Creates a level, clamped to -127 to 0.
  package init(dbov: Int) { self.dbov = min(0, max(-127, dbov)) }

  /// Creates a level from the header extension's value in -dBov (RFC 6464 section 3).
  package init(headerExtension magnitude: UInt8) { self.init(dbov: -Int(magnitude & 0x7f)) }

  /// Creates the level nearest to a fraction of full scale; anything but a positive number is
  /// silence.
  package init(linear share: Double) {
    guard share > 0 else {
      self = .silence
      return
    }
    var low = 0
    var high = AudioLevel.shares.count - 1
    while low < high {
      let middle = (low + high) / 2
      // In decibels, the geometric mean is halfway between two levels.
      let border = (AudioLevel.shares[middle] * AudioLevel.shares[middle + 1]).squareRoot()
      if share >= border { high = middle } else { low = middle + 1 }
    }
    self.init(dbov: -low)
  }

  /// The fraction of full scale, 0 to 1; silence is 0 (W3C audioLevel of RTP sources).
  package var linear: Double { dbov == -127 ? 0 : AudioLevel.shares[-dbov] }

  /// The level from 0 to 100: -60 dBov and below is 0, 0 dBov is 100, comfortable speech is 50 to
  /// 70.
  package var percent: Int {
    let scaled = 100 * (dbov + 60)
    // Rounded half up; the scale covers 60 decibels.
    return min(100, max(0, (scaled + 30) / 60))
  }

  /// The level as used by the speaker algorithm: 0 is silence, 127 the loudest.
  var loudness: UInt8 { UInt8(127 + dbov) }

  package static func < (left: AudioLevel, right: AudioLevel) -> Bool { left.dbov < right.dbov }

  /// Fractions for 0 to -127 dBov: 10^(dBov / 20), by squaring so that no error accumulates.
  private static let shares: [Double] = (0...127).map { decibels in
    var share = 1.0
    var power = 0.891_250_938_133_745_6
    var rest = decibels
    while rest > 0 {
      if rest & 1 == 1 { share *= power }
      power *= power
      rest >>= 1
    }
    return share
  }
}

package import RTP

/// The two companding laws of G.711 between 16-bit and 8-bit samples (ITU-T G.711 tables 1 and 2).
package enum G711Law: Hashable, Sendable {
  /// The mu law: PCMU.
  case mu
  /// The A law: PCMA.
  case a

  /// The law of a codec; nil if it is not G.711.
  package init?(_ codec: CodecName) {
    switch codec {
    case .pcmu: self = .mu
    case .pcma: self = .a
    default: return nil
    }
  }

  /// The code of silence.
  package var silence: UInt8 { encode(0) }

  /// The sample of each code.
  var samples: [Int16] { self == .mu ? G711Law.muSamples : G711Law.aSamples }

  private static let muSamples = (UInt8.min...UInt8.max).map { decodeMu($0) }
  private static let aSamples = (UInt8.min...UInt8.max).map { decodeA($0) }

  package func encode(_ sample: Int16) -> UInt8 {
    self == .mu ? G711Law.encodeMu(sample) : G711Law.encodeA(sample)
  }

  package func decode(_ code: UInt8) -> Int16 { samples[Int(code)] }

  // MARK: The mu law

  /// Added to a magnitude, so that each segment starts at a power of two.
  private static let bias = 0x84
  /// The largest magnitude that has a code.
  private static let largest = 32_635

  private static func encodeMu(_ sample: Int16) -> UInt8 {
    let magnitude = min(abs(Int(sample)), largest) + bias
    // The segment is the position of the highest set bit, at least 7.
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

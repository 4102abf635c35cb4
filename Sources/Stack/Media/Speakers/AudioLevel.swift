/// The loudness of a moment of audio, in whole decibels below full scale (dBov).
///
/// Converts to the three usual scales: dBov as in RFC 6464, the share of full scale as in W3C's
/// `audioLevel`, and 0 to 100 as on meters.
package struct AudioLevel: Hashable, Comparable, Sendable {
  /// Decibels relative to full scale: 0 is the loudest, -127 is silence.
  package let dbov: Int

  /// Silence.
  package static let silence = AudioLevel(dbov: -127)

  /// Creates a level, clamped to the range.
  package init(dbov: Int) { self.dbov = min(0, max(-127, dbov)) }

  /// Creates a level from the header extension's magnitude in -dBov (RFC 6464 section 3).
  package init(headerExtension magnitude: UInt8) { self.init(dbov: -Int(magnitude & 0x7f)) }

  /// The level nearest to a share of full scale; anything but a positive number is silence.
  package init(linear share: Double) {
    guard share > 0 else {
      self = .silence
      return
    }
    var low = 0
    var high = AudioLevel.shares.count - 1
    while low < high {
      let middle = (low + high) / 2
      // Halfway between two levels in decibels is their geometric mean.
      let border = (AudioLevel.shares[middle] * AudioLevel.shares[middle + 1]).squareRoot()
      if share >= border { high = middle } else { low = middle + 1 }
    }
    self.init(dbov: -low)
  }

  /// The share of full scale, 0 to 1; silence is 0 (W3C audioLevel of RTP sources).
  package var linear: Double { dbov == -127 ? 0 : AudioLevel.shares[-dbov] }

  /// 0 to 100: -60 dBov and less is 0, 0 dBov is 100, comfortable speech is 50 to 70.
  package var percent: Int {
    let scaled = 100 * (dbov + 60)
    // Rounded half up; the scale covers 60 decibels.
    return min(100, max(0, (scaled + 30) / 60))
  }

  /// The level as the speaker algorithm uses it: 0 is silence, 127 the loudest.
  var loudness: UInt8 { UInt8(127 + dbov) }

  package static func < (left: AudioLevel, right: AudioLevel) -> Bool { left.dbov < right.dbov }

  /// The shares of 0 to -127 dBov: 10^(dBov / 20), by squaring so that no error accumulates.
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

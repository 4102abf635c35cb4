import Seeded

/// Damages samples.
///
/// The same seed always makes the same inputs.
struct Damage {
  private var random: SeededGenerator

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  mutating func next() -> UInt64 { random.next() }

  /// Returns a random number below `bound`, which must be above 0.
  mutating func below(_ bound: Int) -> Int { Int(truncatingIfNeeded: next() >> 33) % bound }

  /// Returns one of the samples, damaged in one to three places.
  mutating func damaged(_ samples: [[UInt8]]) -> [UInt8] {
    var bytes = samples[below(samples.count)]
    for _ in 0...below(3) { wound(&bytes) }
    return bytes
  }

  /// Byte values at the limits of length fields, sign bits and datagram classes.
  private static let edges: [UInt8] = [
    0, 1, 2, 0x0f, 0x10, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xfe, 0xff,
  ]

  private mutating func wound(_ bytes: inout [UInt8]) {
    // The first bytes determine how a packet is parsed, so half of the damage hits them.
    let reach = below(2) == 0 ? bytes.count : min(bytes.count, 40)
    guard reach > 0 else {
      bytes.append(UInt8(truncatingIfNeeded: next()))
      return
    }
    let place = below(reach)
    switch below(8) {
    case 0, 1: bytes[place] ^= 1 << UInt8(below(8))
    case 2, 3: bytes[place] = Damage.edges[below(Damage.edges.count)]
    case 4: bytes[place] = UInt8(truncatingIfNeeded: next())
    case 5: bytes.removeLast(min(bytes.count, 1 + below(24)))
    case 6: bytes.insert(contentsOf: bytes[place...].prefix(1 + below(16)), at: place)
    default: bytes.removeSubrange(place..<min(bytes.count, place + 1 + below(6)))
    }
  }
}

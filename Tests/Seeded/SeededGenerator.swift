/// A random number generator for tests, which returns the same numbers for the same seed on every
/// machine (SplitMix64; Steele, Lea, Flood 2014).
package struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
    return mixed ^ mixed >> 31
  }
}

extension SeededGenerator {
  /// Returns a description's bytes with one to `most` of them altered, removed or repeated, or with
  /// tokens inserted.
  package mutating func mutated(_ text: [UInt8], tokens: [String], most: Int) -> [UInt8] {
    var bytes = text
    for _ in 0..<Int.random(in: 1...most, using: &self) {
      let place = Int.random(in: bytes.indices, using: &self)
      switch Int.random(in: 0..<4, using: &self) {
      case 0: bytes[place] = UInt8.random(in: 0...255, using: &self)
      case 1: bytes.remove(at: place)
      case 2:
        let token = tokens[Int.random(in: tokens.indices, using: &self)]
        bytes.insert(contentsOf: Array(token.utf8), at: place)
      default:
        let end = min(bytes.count, place + Int.random(in: 1...80, using: &self))
        bytes.insert(contentsOf: bytes[place..<end], at: place)
      }
    }
    return bytes
  }
}

/// Numbers that only look random: the same ones for the same seed (SplitMix64).
struct Chance {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed &* 0x9e37_79b9_7f4a_7c15 &+ 1 }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// A number from 0 up to a limit that is not reached.
  mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(max(1, limit))) }

  mutating func isOne(in count: Int) -> Bool { below(count) == 0 }

  mutating func pick<Element>(_ list: [Element]) -> Element { list[below(list.count)] }
}

import Wire

/// Random choices that are the same for the same seed.
struct Chance {
  private let stream: EntropyStream

  init(_ seed: UInt64) {
    stream = Entropy(seed: withUnsafeBytes(of: seed.littleEndian) { Array($0) }).stream("altered")
  }

  mutating func next() -> UInt64 { stream.integer(UInt64.self) }

  /// Returns a number from 0 up to, but not including, `limit`.
  mutating func below(_ limit: Int) -> Int { Int(stream.integer(below: UInt64(max(1, limit)))) }

  mutating func isOne(in count: Int) -> Bool { below(count) == 0 }

  mutating func pick<Element>(_ list: [Element]) -> Element { list[below(list.count)] }
}

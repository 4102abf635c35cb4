import Wire

/// Random choices that are the same for the same seed.
package struct Chance {
  private let stream: EntropyStream

  package init(_ seed: UInt64, _ purpose: String) {
    let bytes = withUnsafeBytes(of: seed.littleEndian) { Array($0) } + Array(purpose.utf8)
    stream = Entropy(seed: bytes).stream("faults")
  }

  package func next() -> UInt64 { stream.integer(UInt64.self) }

  /// Returns a number from 0 up to, but not including, `limit`.
  package func below(_ limit: Int) -> Int { Int(stream.integer(below: UInt64(max(1, limit)))) }

  /// Returns a number within `bounds`, both included.
  package func within(_ bounds: ClosedRange<Int>) -> Int {
    bounds.lowerBound + below(bounds.upperBound - bounds.lowerBound + 1)
  }

  package func isOne(in count: Int) -> Bool { below(count) == 0 }

  /// Returns true with a probability of `perMille` in a thousand.
  package func happens(perMille: Int) -> Bool { below(1_000) < perMille }

  package func shuffled<Element>(_ list: [Element]) -> [Element] {
    var list = list
    for index in list.indices.dropLast() {
      list.swapAt(index, index + below(list.count - index))
    }
    return list
  }
}

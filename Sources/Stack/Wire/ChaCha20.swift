/// The key stream of ChaCha20, block by block (RFC 8439 sections 2.3 and 2.4).
struct ChaCha20: Sendable {
  /// Constants, key, block counter and nonce.
  private var state: [16 of UInt32]

  /// Creates a stream that starts at a block counter; words are little-endian.
  init(key: [8 of UInt32], counter: UInt32 = 0, nonce: [3 of UInt32]) {
    var state: [16 of UInt32] = .init(repeating: 0)
    state[0] = 0x6170_7865
    state[1] = 0x3320_646e
    state[2] = 0x7962_2d32
    state[3] = 0x6b20_6574
    for index in 0..<8 { state[4 + index] = key[index] }
    state[12] = counter
    for index in 0..<3 { state[13 + index] = nonce[index] }
    self.state = state
  }

  /// The next 64 bytes of the stream as little-endian words.
  mutating func next() -> [16 of UInt32] {
    var block = state
    for _ in 0..<10 {
      Self.quarter(&block, 0, 4, 8, 12)
      Self.quarter(&block, 1, 5, 9, 13)
      Self.quarter(&block, 2, 6, 10, 14)
      Self.quarter(&block, 3, 7, 11, 15)
      Self.quarter(&block, 0, 5, 10, 15)
      Self.quarter(&block, 1, 6, 11, 12)
      Self.quarter(&block, 2, 7, 8, 13)
      Self.quarter(&block, 3, 4, 9, 14)
    }
    for index in 0..<16 { block[index] &+= state[index] }
    state[12] &+= 1
    return block
  }

  @inline(__always)
  private static func quarter(_ s: inout [16 of UInt32], _ a: Int, _ b: Int, _ c: Int, _ d: Int) {
    s[a] &+= s[b]
    s[d] = rotated(s[d] ^ s[a], 16)
    s[c] &+= s[d]
    s[b] = rotated(s[b] ^ s[c], 12)
    s[a] &+= s[b]
    s[d] = rotated(s[d] ^ s[a], 8)
    s[c] &+= s[d]
    s[b] = rotated(s[b] ^ s[c], 7)
  }

  @inline(__always)
  private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 {
    word << count | word >> (32 - count)
  }
}

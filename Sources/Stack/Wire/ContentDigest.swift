/// A digest that distinguishes packets unless somebody forges a collision.
package struct ContentDigest: Sendable {
  package var value: UInt64

  @inlinable
  package init(seed: UInt64) { value = seed ^ 0x9e37_79b9_7f4a_7c15 }

  @inlinable @inline(__always)
  package mutating func mix(_ word: UInt64) {
    let product = (value ^ word).multipliedFullWidth(by: 0xd6e8_feb8_6659_fd93)
    value = product.low ^ product.high ^ word &* 0x9e37_79b9_7f4a_7c15
  }

  package mutating func mix(_ address: IPAddress) {
    let (high, low) = address.words
    mix(high)
    mix(low)
  }

  @inlinable
  package mutating func mix(_ bytes: RawSpan) {
    let count = bytes.byteCount
    var offset = 0
    while offset + 8 <= count {
      mix(
        unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
      offset += 8
    }
    var rest = UInt64(truncatingIfNeeded: count)
    while offset < count {
      rest = rest << 8 | UInt64(bytes.byte(at: offset))
      offset += 1
    }
    mix(rest)
  }
}

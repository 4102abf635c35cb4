import Wire

// A byte in many places at once: what looks for datagrams in others spends its time here.
extension RawSpan {
  /// The highest bit of each of eight bytes from a place on, the first the lowest, that is a
  /// certain one; above the first such byte a bit more may be set.
  @inline(__always)
  func eight(from place: Int, holding byte: UInt8) -> UInt64 {
    let word =
      unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: place, as: UInt64.self)
      ^ (UInt64(byte) &* 0x0101_0101_0101_0101)
    return (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
  }

  /// The first place from one on, and before another one, that holds a byte.
  @inline(__always)
  func place(of byte: UInt8, from begin: Int, to end: Int) -> Int? {
    var place = begin
    while place + 8 <= end {
      let found = eight(from: place, holding: byte)
      if found != 0 { return place + found.trailingZeroBitCount / 8 }
      place += 8
    }
    while place < end {
      if self.byte(at: place) == byte { return place }
      place += 1
    }
    return nil
  }
}

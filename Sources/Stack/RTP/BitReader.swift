package import Wire

/// Reads bits from borrowed bytes, the highest bit of each byte first, never past their end.
package struct BitReader: ~Escapable {
  private let bytes: RawSpan
  private var position = 0

  @_lifetime(copy bytes)
  package init(_ bytes: RawSpan) { self.bytes = bytes }

  package mutating func flag() throws(ReadError) -> Bool {
    guard position >> 3 < bytes.byteCount else { throw .truncated }
    let byte = bytes.byte(at: position >> 3)
    defer { position += 1 }
    return byte & (0x80 >> UInt8(position & 7)) != 0
  }

  /// Reads a number of at most 32 bits.
  package mutating func bits(_ count: Int) throws(ReadError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<count { value = value << 1 | (try flag() ? 1 : 0) }
    return value
  }

  package mutating func skip(_ count: Int) throws(ReadError) {
    guard count >= 0, count <= bytes.byteCount * 8 - position else { throw .truncated }
    position += count
  }
}

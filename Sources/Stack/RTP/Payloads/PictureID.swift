import Wire

/// A picture ID, which has the same form in VP8 and VP9 (RFC 7741 section 4.2, RFC 9628 section
/// 4.2).
package struct PictureID: Hashable, Sendable {
  package var number: UInt16
  /// Whether the number has 15 bits instead of 7.
  package var isLong: Bool

  package init(_ number: UInt16, isLong: Bool = true) {
    self.number = number
    self.isLong = isLong
  }

  /// The length in bytes.
  package var length: Int { isLong ? 2 : 1 }

  /// Whether the frame comes directly after another one, across wrap-arounds.
  package func follows(_ other: PictureID) -> Bool {
    let mask: UInt16 = isLong ? 0x7fff : 0x7f
    return number & mask == (other.number &+ 1) & mask
  }

  init(parsing reader: inout ByteReader) throws(ReadError) {
    let high = try reader.uint8()
    isLong = high & 0x80 != 0
    number = UInt16(high & 0x7f)
    if isLong { number = number << 8 | UInt16(try reader.uint8()) }
  }

  func write(into writer: inout ByteWriter) {
    if isLong {
      writer.uint16(number | 0x8000)
    } else {
      writer.uint8(UInt8(truncatingIfNeeded: number) & 0x7f)
    }
  }
}

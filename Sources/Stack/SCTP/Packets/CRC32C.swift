/// The checksum of SCTP packets: CRC32c, eight bytes at a time (RFC 9260 appendix A).
enum CRC32C {
  /// Where the checksum stands in the common header.
  private static let field = 8..<12

  /// Eight tables of 256 words: table `k` advances a byte over `k` more bytes.
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var word = UInt32(byte)
      for _ in 0..<8 { word = word & 1 == 1 ? word >> 1 ^ 0x82f6_3b78 : word >> 1 }
      tables[byte] = word
    }
    for index in 256..<tables.count {
      let before = tables[index - 256]
      tables[index] = before >> 8 ^ tables[Int(before & 0xff)]
    }
    return tables
  }()

  /// The checksum of a packet whose checksum field counts as zero; it stands there little-endian.
  static func checksum(of packet: RawSpan) -> UInt32 {
    guard packet.byteCount >= field.upperBound else { return 0 }
    var remainder: UInt32 = .max
    remainder = advance(remainder, over: packet.extracting(0..<field.lowerBound))
    for _ in field { remainder = remainder >> 8 ^ tables[Int(remainder & 0xff)] }
    remainder = advance(remainder, over: packet.extracting(field.upperBound..<packet.byteCount))
    return ~remainder
  }

  /// The CRC32c of any bytes.
  static func value(of bytes: RawSpan) -> UInt32 { ~advance(.max, over: bytes) }

  private static func advance(_ start: UInt32, over bytes: RawSpan) -> UInt32 {
    let table = tables.span
    var remainder = start
    var offset = 0
    // The indices into the tables are bytes plus a multiple of 256 below 2048.
    while offset + 8 <= bytes.byteCount {
      let eight = UInt64(
        littleEndian: unsafe bytes.unsafeLoadUnaligned(
          fromUncheckedByteOffset: offset, as: UInt64.self))
      let word = eight ^ UInt64(remainder)
      var next: UInt32 = 0
      next = unsafe table[unchecked: 1792 + Int(word & 0xff)]
      next ^= unsafe table[unchecked: 1536 + Int(word >> 8 & 0xff)]
      next ^= unsafe table[unchecked: 1280 + Int(word >> 16 & 0xff)]
      next ^= unsafe table[unchecked: 1024 + Int(word >> 24 & 0xff)]
      next ^= unsafe table[unchecked: 768 + Int(word >> 32 & 0xff)]
      next ^= unsafe table[unchecked: 512 + Int(word >> 40 & 0xff)]
      next ^= unsafe table[unchecked: 256 + Int(word >> 48 & 0xff)]
      next ^= unsafe table[unchecked: Int(word >> 56)]
      remainder = next
      offset += 8
    }
    while offset < bytes.byteCount {
      let byte = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
      let entry = unsafe table[unchecked: Int((remainder ^ UInt32(byte)) & 0xff)]
      remainder = remainder >> 8 ^ entry
      offset += 1
    }
    return remainder
  }
}

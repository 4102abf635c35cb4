import Wire

/// The CRC-32 of ITU V.42 over bytes, as STUN's FINGERPRINT uses it (RFC 8489 section 14.7).
package func crc32(_ bytes: RawSpan) -> UInt32 {
  var crc: UInt32 = 0xffff_ffff
  for offset in 0..<bytes.byteCount {
    crc = table[Int(UInt8(truncatingIfNeeded: crc) ^ bytes.byte(at: offset))] ^ crc >> 8
  }
  return ~crc
}

private let table: [UInt32] = (0..<256).map { index in
  (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xedb8_8320 ^ value >> 1 : value >> 1
  }
}

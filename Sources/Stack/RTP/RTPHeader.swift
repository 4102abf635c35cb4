package import Wire

/// The header of an RTP packet and the ranges of its parts (RFC 3550 section 5.1).
///
/// Nothing is copied: ranges are offsets into the bytes that were parsed.
package struct RTPHeader: Hashable, Sendable {
  /// The length without CSRCs and extensions.
  package static let fixedLength = 12

  package var marker: Bool
  package var payloadType: UInt8
  package var sequence: UInt16
  package var timestamp: UInt32
  package var ssrc: UInt32
  package var contributorCount: Int
  /// The "defined by profile" field of the header extension; 0 if there is none.
  package var extensionProfile: UInt16
  /// The range of the header extension's elements.
  package var extensionElements: Range<Int>
  /// The range of the payload, without padding.
  package var payload: Range<Int>
  /// The number of padding bytes after the payload.
  package var paddingLength: Int

  package var headerLength: Int { payload.lowerBound }

  /// Parses the header and checks that all its parts are within the packet.
  ///
  /// Padding of a protected packet is encrypted and counts as payload.
  package init(parsing bytes: RawSpan, isProtected: Bool = false) throws(ReadError) {
    var reader = ByteReader(bytes)
    let first = try reader.uint8()
    guard first >> 6 == 2 else { throw .malformed }
    let second = try reader.uint8()
    marker = second & 0x80 != 0
    payloadType = second & 0x7f
    sequence = try reader.uint16()
    timestamp = try reader.uint32()
    ssrc = try reader.uint32()
    contributorCount = Int(first & 0x0f)
    try reader.skip(4 * contributorCount)
    if first & 0x10 != 0 {
      extensionProfile = try reader.uint16()
      let length = 4 * Int(try reader.uint16())
      extensionElements = reader.offset..<reader.offset + length
      try reader.skip(length)
    } else {
      extensionProfile = 0
      extensionElements = reader.offset..<reader.offset
    }
    paddingLength = 0
    if first & 0x20 != 0, !isProtected {
      guard !reader.isAtEnd else { throw .malformed }
      paddingLength = Int(bytes.byte(at: bytes.byteCount - 1))
      guard paddingLength > 0, paddingLength <= reader.remaining else { throw .malformed }
    }
    payload = reader.offset..<bytes.byteCount - paddingLength
  }
}

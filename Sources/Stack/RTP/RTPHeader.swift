package import Wire

/// The header of an RTP packet and where its parts lie in the packet (RFC 3550 section 5.1).
///
/// Nothing is copied: the ranges are offsets into the bytes that were parsed.
package struct RTPHeader: Hashable, Sendable {
  /// The length of a header without contributors and extensions.
  package static let fixedLength = 12

  package var marker: Bool
  package var payloadType: UInt8
  package var sequence: UInt16
  package var timestamp: UInt32
  package var ssrc: UInt32
  /// How many contributing sources stand in the header.
  package var contributorCount: Int
  /// The "defined by profile" field of the header extension; 0 without one.
  package var extensionProfile: UInt16
  /// Where the elements of the header extension lie.
  package var extensionElements: Range<Int>
  /// Where the payload lies, without padding.
  package var payload: Range<Int>
  /// How many bytes of padding follow the payload.
  package var paddingLength: Int

  /// How many bytes stand before the payload.
  package var headerLength: Int { payload.lowerBound }

  /// Reads the header of a packet and checks that all of its parts lie inside.
  ///
  /// The padding of a protected packet is encrypted: it then counts as payload.
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

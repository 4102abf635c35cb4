import Wire

/// Why bytes are not a STUN message.
package enum STUNError: Error, Hashable, Sendable {
  /// Fewer bytes than a header, or another count than the header says.
  case wrongLength
  /// The first two bits or the magic cookie belong to something else.
  case notSTUN
  /// An attribute reaches over the end.
  case attributeOverrun
}

/// A received STUN message (RFC 8489 section 5): a checked view over the bytes it came in.
///
/// Parsing walks the attributes once and copies nothing; values are read when they are asked for.
/// Where an attribute stands more than once its first appearance counts (section 14).
package struct STUNMessage: Sendable {
  /// How many bytes a header has.
  package static let headerLength = 20
  /// The value that tells STUN from other protocols on the same port.
  package static let magicCookie: UInt32 = 0x2112_a442

  /// The message as it was on the wire.
  package let bytes: [UInt8]
  package let messageClass: STUNClass
  package let method: STUNMethod
  package let transactionID: STUNTransactionID
  /// Where the header of MESSAGE-INTEGRITY begins.
  let integrityOffset: Int?
  /// Where the header of FINGERPRINT begins.
  let fingerprintOffset: Int?

  /// Whether bytes look like STUN rather than DTLS, RTP or RTCP (RFC 7983 section 7).
  package static func matches(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= headerLength && bytes.byte(at: 0) < 4
      && bytes.byte(at: 4) == 0x21 && bytes.byte(at: 5) == 0x12
      && bytes.byte(at: 6) == 0xa4 && bytes.byte(at: 7) == 0x42
  }

  /// Whether the type of bytes that look like STUN has the Binding method.
  package static func isBinding(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= 2 && bytes.uint16(at: 0) & 0xfeef == STUNMethod.binding.rawValue
  }

  /// Checks a datagram's frame and its attributes' lengths.
  package init(_ bytes: [UInt8]) throws(STUNError) {
    let span = bytes.span.bytes
    guard span.byteCount >= STUNMessage.headerLength else { throw .wrongLength }
    guard STUNMessage.matches(span) else { throw .notSTUN }
    let type = STUNType(rawValue: span.uint16(at: 0))
    guard Int(span.uint16(at: 2)) == span.byteCount - STUNMessage.headerLength,
      span.byteCount % 4 == 0
    else { throw .wrongLength }
    var integrity: Int?
    var fingerprint: Int?
    var offset = STUNMessage.headerLength
    while offset < span.byteCount {
      // The count is a multiple of four, so that a header always fits here.
      let attribute = STUNAttributeType(rawValue: span.uint16(at: offset))
      let next = offset + 4 + STUNMessage.padded(Int(span.uint16(at: offset + 2)))
      guard next <= span.byteCount else { throw .attributeOverrun }
      if attribute == .messageIntegrity, integrity == nil { integrity = offset }
      if attribute == .fingerprint, fingerprint == nil { fingerprint = offset }
      offset = next
    }
    self.bytes = bytes
    messageClass = type.messageClass
    method = type.method
    transactionID = STUNTransactionID(high: span.uint32(at: 8), low: span.uint64(at: 12))
    integrityOffset = integrity
    fingerprintOffset = fingerprint
  }

  package static func padded(_ length: Int) -> Int { (length + 3) & ~3 }
}

import Crypto
package import Wire

/// The reason that bytes are not a STUN message.
package enum STUNError: Error, Hashable, Sendable {
  /// Shorter than a header, not a multiple of four, or not as long as the header states.
  case wrongLength
  /// The first two bits or the magic cookie are wrong.
  case notSTUN
  /// An attribute extends beyond the end.
  case attributeOverrun
}

/// A received STUN message (RFC 8489 section 5): a validated view of its bytes.
///
/// Parsing walks over the attributes once and copies nothing; values are read on access. If an
/// attribute occurs more than once, only its first occurrence is used (section 14).
package struct STUNMessage: Sendable {
  /// The length of the header in bytes: type, length, magic cookie and transaction id.
  package static let headerLength = 20
  /// The value that distinguishes STUN from other protocols on the same port.
  package static let magicCookie: UInt32 = 0x2112_a442

  /// The message as received.
  package let bytes: [UInt8]
  package let messageClass: STUNClass
  package let method: STUNMethod
  package let transactionID: STUNTransactionID
  let integrityOffset: Int?
  let fingerprintOffset: Int?

  /// Returns whether bytes look like STUN rather than DTLS, RTP or RTCP (RFC 7983 section 7).
  package static func matches(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= headerLength && bytes.byte(at: 0) < 4
      && bytes.byte(at: 4) == 0x21 && bytes.byte(at: 5) == 0x12
      && bytes.byte(at: 6) == 0xa4 && bytes.byte(at: 7) == 0x42
  }

  /// Returns whether bytes that look like STUN have the Binding method.
  package static func isBinding(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= 2 && bytes.uint16(at: 0) & 0xfeef == STUNMethod.binding.rawValue
  }

  /// Validates a datagram's header and its attributes' lengths.
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
      // The length is a multiple of four, so a header always fits here.
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

/// The 96 bits that match a response to its request (RFC 8489 section 5).
package struct STUNTransactionID: Hashable, Sendable {
  package var high: UInt32
  package var low: UInt64

  package init(high: UInt32, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Draws a random transaction id.
  package init(from entropy: EntropyStream) {
    high = entropy.integer(UInt32.self)
    low = entropy.integer(UInt64.self)
  }
}

// MARK: - Attributes

/// An attribute's location in its message.
package struct STUNAttribute: Hashable, Sendable {
  package var type: STUNAttributeType
  /// The value's range in the message's bytes, without padding.
  package var range: Range<Int>
}

/// A message's attributes, in order.
package struct STUNAttributes: Sequence, IteratorProtocol, Sendable {
  private let bytes: [UInt8]
  private var offset = STUNMessage.headerLength
  private let end: Int

  init(_ bytes: [UInt8], end: Int) {
    self.bytes = bytes
    self.end = end
  }

  /// Iterates over the attributes in what may be an incomplete message, as long as their headers
  /// are complete; the last value may be truncated.
  package init(found bytes: [UInt8]) { self.init(bytes, end: bytes.count) }

  package mutating func next() -> STUNAttribute? {
    guard offset + 4 <= end else { return nil }
    let start = offset + 4
    let (type, length) = header(at: offset)
    offset = start + STUNMessage.padded(length)
    return STUNAttribute(type: type, range: start..<Swift.min(start + length, end))
  }

  private func header(at offset: Int) -> (type: STUNAttributeType, length: Int) {
    let span = bytes.span.bytes
    let type = STUNAttributeType(rawValue: span.uint16(at: offset))
    return (type, Int(span.uint16(at: offset + 2)))
  }
}

extension STUNMessage {
  /// All attributes, known or not, in order.
  package var attributes: STUNAttributes { STUNAttributes(bytes, end: bytes.count) }

  /// The attributes that MESSAGE-INTEGRITY covers, or all attributes if it is absent; attributes
  /// after it are ignored (section 14.5).
  private var coveredAttributes: STUNAttributes {
    STUNAttributes(bytes, end: integrityOffset ?? bytes.count)
  }

  /// Returns the bytes of an attribute's value.
  @_lifetime(borrow self)
  package func value(_ attribute: STUNAttribute) -> RawSpan {
    bytes.span.bytes.extracting(attribute.range)
  }

  /// Returns the first attribute of a type, ignoring attributes after MESSAGE-INTEGRITY; nil if
  /// none is found.
  package func attribute(_ type: STUNAttributeType) -> STUNAttribute? {
    for attribute in coveredAttributes where attribute.type == type { return attribute }
    return nil
  }

  /// USERNAME: in checks, the receiver's and the sender's fragments, separated by a colon (section
  /// 14.3).
  package var username: String? { text(.username) }

  /// SOFTWARE: the sender's product and version, for diagnostics only (section 14.14).
  package var software: String? { text(.software) }

  /// PRIORITY: the priority a peer-reflexive candidate would have (RFC 8445 section 7.1.1).
  package var priority: UInt32? {
    guard let attribute = attribute(.priority), attribute.range.count == 4 else { return nil }
    return value(attribute).uint32(at: 0)
  }

  /// Whether the message contains USE-CANDIDATE (RFC 8445 section 7.1.2).
  package var usesCandidate: Bool { attribute(.useCandidate) != nil }

  /// The tie-breaker of ICE-CONTROLLING (RFC 8445 section 7.1.3).
  package var iceControlling: UInt64? { number(.iceControlling) }

  /// The tie-breaker of ICE-CONTROLLED (RFC 8445 section 7.1.3).
  package var iceControlled: UInt64? { number(.iceControlled) }

  /// XOR-MAPPED-ADDRESS, or MAPPED-ADDRESS from old servers (sections 14.1 and 14.2).
  package var mappedAddress: SocketAddress? {
    if let attribute = attribute(.xorMappedAddress) { return address(attribute, isMasked: true) }
    if let attribute = attribute(.mappedAddress) { return address(attribute, isMasked: false) }
    return nil
  }

  /// REALM: the realm that the server states for long-term credentials (section 14.9).
  package var realm: String? { text(.realm) }

  /// NONCE as bytes; clients only echo it.
  package var nonce: [UInt8]? { attribute(.nonce).map { Array(bytes[$0.range]) } }

  /// XOR-RELAYED-ADDRESS: the address allocated on the server (RFC 8656 section 18.5).
  package var relayedAddress: SocketAddress? {
    attribute(.xorRelayedAddress).flatMap { address($0, isMasked: true) }
  }

  /// The first XOR-PEER-ADDRESS (RFC 8656 section 18.3).
  package var peerAddress: SocketAddress? {
    attribute(.xorPeerAddress).flatMap { address($0, isMasked: true) }
  }

  /// The addresses in all XOR-PEER-ADDRESS attributes, in order.
  package var peerAddresses: [SocketAddress] {
    coveredAttributes.compactMap {
      $0.type == .xorPeerAddress ? address($0, isMasked: true) : nil
    }
  }

  /// ALTERNATE-SERVER: the server to use instead (RFC 8489 section 14.15).
  package var alternateServer: SocketAddress? {
    attribute(.alternateServer).flatMap { address($0, isMasked: false) }
  }

  /// LIFETIME in seconds (RFC 8656 section 18.2).
  package var lifetime: UInt32? {
    guard let attribute = attribute(.lifetime), attribute.range.count == 4 else { return nil }
    return value(attribute).uint32(at: 0)
  }

  /// CHANNEL-NUMBER: the channel to bind or refresh (RFC 8656 section 18.1).
  package var channelNumber: UInt16? {
    guard let attribute = attribute(.channelNumber), attribute.range.count == 4 else { return nil }
    return value(attribute).uint16(at: 0)
  }

  /// The protocol number of REQUESTED-TRANSPORT, 17 for UDP (RFC 8656 section 18.8).
  package var requestedTransport: UInt8? { firstByte(.requestedTransport) }

  /// The family in REQUESTED-ADDRESS-FAMILY, 1 for IPv4 and 2 for IPv6 (RFC 8656 section 18.6).
  package var requestedFamily: UInt8? { firstByte(.requestedAddressFamily) }

  /// DATA: the application data in an indication (RFC 8656 section 18.4).
  package var data: [UInt8]? { attribute(.data).map { Array(bytes[$0.range]) } }

  /// ERROR-CODE; nil if it is absent or its code is not 300 to 699 (section 14.8).
  package var errorCode: STUNErrorCode? {
    guard let attribute = attribute(.errorCode), attribute.range.count >= 4 else { return nil }
    let value = value(attribute)
    let hundreds = UInt16(value.byte(at: 2) & 7)
    let rest = UInt16(value.byte(at: 3))
    guard (3...6).contains(hundreds), rest < 100 else { return nil }
    let reason = String(decoding: bytes[attribute.range.dropFirst(4)], as: UTF8.self)
    return STUNErrorCode(code: hundreds * 100 + rest, reason: reason)
  }

  /// UNKNOWN-ATTRIBUTES: the types that the server does not understand (section 14.13); empty if
  /// absent.
  package var unknownAttributes: [STUNAttributeType] {
    guard let attribute = attribute(.unknownAttributes) else { return [] }
    let value = value(attribute)
    return (0..<value.byteCount / 2).map { STUNAttributeType(rawValue: value.uint16(at: 2 * $0)) }
  }

  /// Unknown comprehension-required types, at most eight; the reason for a 420 error.
  package var notUnderstood: [STUNAttributeType] {
    var types: [STUNAttributeType] = []
    for attribute in coveredAttributes
    where attribute.type.isComprehensionRequired && !attribute.type.isKnown {
      if !types.contains(attribute.type) { types.append(attribute.type) }
      if types.count == 8 { break }
    }
    return types
  }

  private func text(_ type: STUNAttributeType) -> String? {
    guard let attribute = attribute(type) else { return nil }
    return String(decoding: bytes[attribute.range], as: UTF8.self)
  }

  private func firstByte(_ type: STUNAttributeType) -> UInt8? {
    guard let attribute = attribute(type), attribute.range.count == 4 else { return nil }
    return value(attribute).byte(at: 0)
  }

  private func number(_ type: STUNAttributeType) -> UInt64? {
    guard let attribute = attribute(type), attribute.range.count == 8 else { return nil }
    return value(attribute).uint64(at: 0)
  }

  private func address(_ attribute: STUNAttribute, isMasked: Bool) -> SocketAddress? {
    SocketAddress(stun: value(attribute), maskedBy: isMasked ? transactionID : nil)
  }
}

extension SocketAddress {
  /// Parses the value of MAPPED-ADDRESS, or of an attribute masked like XOR-MAPPED-ADDRESS (RFC
  /// 8489 sections 14.1 and 14.2); nil if it is malformed.
  package init?(stun value: RawSpan, maskedBy transaction: STUNTransactionID?) {
    guard value.byteCount >= 8 else { return nil }
    let mask = transaction.map { AddressMask($0) } ?? AddressMask.none
    let port = value.uint16(at: 2) ^ mask.port
    switch (value.byte(at: 1), value.byteCount) {
    case (1, 8): self.init(IPAddress(ipv4: value.uint32(at: 4) ^ mask.ipv4), port: port)
    case (2, 20):
      let high = value.uint64(at: 4) ^ mask.high
      let low = value.uint64(at: 12) ^ mask.low
      self.init(IPAddress(ipv6High: high, low: low), port: port)
    default: return nil
    }
  }
}

/// The mask of XOR-MAPPED-ADDRESS: the magic cookie, then the transaction id (section 14.2).
struct AddressMask {
  let port: UInt16
  let ipv4: UInt32
  let high: UInt64
  let low: UInt64

  static let none = AddressMask(port: 0, ipv4: 0, high: 0, low: 0)

  private init(port: UInt16, ipv4: UInt32, high: UInt64, low: UInt64) {
    self.port = port
    self.ipv4 = ipv4
    self.high = high
    self.low = low
  }

  init(_ transaction: STUNTransactionID) {
    port = UInt16(STUNMessage.magicCookie >> 16)
    ipv4 = STUNMessage.magicCookie
    high = UInt64(STUNMessage.magicCookie) << 32 | UInt64(transaction.high)
    low = transaction.low
  }
}

// MARK: - Integrity

extension STUNMessage {
  /// HMAC-SHA1 length in bytes.
  static let integrityLength = 20
  /// The value XORed with FINGERPRINT's CRC-32 (section 14.7).
  static let fingerprintMask: UInt32 = 0x5354_554e

  package var hasIntegrity: Bool { integrityOffset != nil }

  /// Returns whether MESSAGE-INTEGRITY is present and correct for a key, over the bytes as
  /// received.
  ///
  /// The HMAC covers everything before the attribute, with a header length that ends after the
  /// attribute (section 14.5). For short-term credentials the key is the password (section 9.1.1).
  package func verifiesIntegrity(key: [UInt8]) -> Bool {
    guard let offset = integrityOffset else { return false }
    let start = offset + 4
    guard Int(bytes.span.bytes.uint16(at: offset + 2)) == STUNMessage.integrityLength else {
      return false
    }
    let end = start + STUNMessage.integrityLength
    let received = Array(bytes[start..<end])
    if end == bytes.count {
      let expected = hmacSHA1(key: key, bytes.span.bytes.extracting(0..<offset))
      return equalInConstantTime(expected, received)
    }
    var covered = Array(bytes[..<offset])
    let length = UInt16(truncatingIfNeeded: end - STUNMessage.headerLength)
    covered[2] = UInt8(length >> 8)
    covered[3] = UInt8(truncatingIfNeeded: length)
    return equalInConstantTime(hmacSHA1(key: key, covered.span.bytes), received)
  }

  /// Whether FINGERPRINT is correct; nil if there is none (section 14.7).
  package var hasValidFingerprint: Bool? {
    guard let offset = fingerprintOffset else { return nil }
    let span = bytes.span.bytes
    guard span.uint16(at: offset + 2) == 4, offset + 8 == bytes.count else { return false }
    let expected = crc32(span.extracting(0..<offset)) ^ STUNMessage.fingerprintMask
    return span.uint32(at: offset + 4) == expected
  }
}

/// Returns the key for long-term credentials: a hash of name, realm and password (RFC 8489
/// section 9.2.2).
///
/// Name, realm and password are used unchanged; OpaqueString preparation (RFC 8265), which matters
/// beyond ASCII, is left to the caller.
package func stunLongTermKey(username: String, realm: String, password: String) -> [UInt8] {
  md5(Array("\(username):\(realm):\(password)".utf8))
}

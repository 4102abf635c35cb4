import Crypto
package import Wire

/// Builds a STUN message, attribute by attribute (RFC 8489 section 5).
package struct STUNWriter {
  /// The maximum length of a message's attributes and header, in bytes; more would not fit into a
  /// datagram.
  static let lengthMaximum = 1500

  private var writer: ByteWriter
  private let transactionID: STUNTransactionID

  package init(
    _ messageClass: STUNClass, method: STUNMethod = .binding, transactionID: STUNTransactionID
  ) {
    self.transactionID = transactionID
    writer = ByteWriter(capacity: 160)
    let method = method.rawValue
    let bits = UInt16(messageClass.rawValue)
    writer.uint16(
      method & 0xf | (method & 0x70) << 1 | (method & 0xf80) << 2 | (bits & 1) << 4 | (bits & 2)
        << 7)
    writer.uint16(0)
    writer.uint32(STUNMessage.magicCookie)
    writer.uint32(transactionID.high)
    writer.uint64(transactionID.low)
  }

  /// Adds an attribute, unless the message would become too large.
  package mutating func attribute(_ type: STUNAttributeType, _ value: [UInt8]) {
    guard value.count + writer.count + 4 <= STUNWriter.lengthMaximum else { return }
    writer.uint16(type.rawValue)
    writer.uint16(UInt16(value.count))
    writer.append(value)
    writer.zeros(STUNMessage.padded(value.count) - value.count)
  }

  /// Adds USERNAME (section 14.3).
  package mutating func username(_ name: String) { attribute(.username, Array(name.utf8)) }

  /// Adds SOFTWARE (section 14.14).
  package mutating func software(_ name: String) { attribute(.software, Array(name.utf8)) }

  /// Adds PRIORITY (RFC 8445 section 7.1.1).
  package mutating func priority(_ priority: UInt32) {
    writer.uint16(STUNAttributeType.priority.rawValue)
    writer.uint16(4)
    writer.uint32(priority)
  }

  /// Adds USE-CANDIDATE (RFC 8445 section 7.1.2).
  package mutating func useCandidate() { attribute(.useCandidate, []) }

  /// Adds ICE-CONTROLLING with a tie-breaker (RFC 8445 section 7.1.3).
  package mutating func iceControlling(_ tieBreaker: UInt64) {
    number(.iceControlling, tieBreaker)
  }

  /// Adds ICE-CONTROLLED with a tie-breaker (RFC 8445 section 7.1.3).
  package mutating func iceControlled(_ tieBreaker: UInt64) { number(.iceControlled, tieBreaker) }

  /// Adds XOR-MAPPED-ADDRESS (section 14.2).
  package mutating func xorMappedAddress(_ address: SocketAddress) {
    write(address, as: .xorMappedAddress, mask: AddressMask(transactionID))
  }

  /// Adds MAPPED-ADDRESS (section 14.1).
  package mutating func mappedAddress(_ address: SocketAddress) {
    write(address, as: .mappedAddress, mask: .none)
  }

  /// Adds ERROR-CODE (section 14.8).
  package mutating func errorCode(_ error: STUNErrorCode) {
    let code = min(max(error.code, 300), 699)
    attribute(
      .errorCode,
      [0, 0, UInt8(code / 100), UInt8(code % 100)] + Array(error.reason.utf8.prefix(128)))
  }

  /// Adds XOR-PEER-ADDRESS (RFC 8656 section 18.3).
  package mutating func xorPeerAddress(_ address: SocketAddress) {
    write(address, as: .xorPeerAddress, mask: AddressMask(transactionID))
  }

  /// Adds XOR-RELAYED-ADDRESS (RFC 8656 section 18.5).
  package mutating func xorRelayedAddress(_ address: SocketAddress) {
    write(address, as: .xorRelayedAddress, mask: AddressMask(transactionID))
  }

  /// Adds ALTERNATE-SERVER (RFC 8489 section 14.15).
  package mutating func alternateServer(_ address: SocketAddress) {
    write(address, as: .alternateServer, mask: .none)
  }

  /// Adds LIFETIME in seconds (RFC 8656 section 18.2).
  package mutating func lifetime(_ seconds: UInt32) {
    writer.uint16(STUNAttributeType.lifetime.rawValue)
    writer.uint16(4)
    writer.uint32(seconds)
  }

  /// Adds CHANNEL-NUMBER (RFC 8656 section 18.1).
  package mutating func channelNumber(_ number: UInt16) {
    attribute(.channelNumber, [UInt8(number >> 8), UInt8(truncatingIfNeeded: number), 0, 0])
  }

  /// Adds REQUESTED-TRANSPORT for UDP (RFC 8656 section 18.8).
  package mutating func requestedTransportUDP() { attribute(.requestedTransport, [17, 0, 0, 0]) }

  /// Adds REQUESTED-ADDRESS-FAMILY (RFC 8656 section 18.6).
  package mutating func requestedFamily(isIPv4: Bool) {
    attribute(.requestedAddressFamily, [isIPv4 ? 1 : 2, 0, 0, 0])
  }

  /// Adds UNKNOWN-ATTRIBUTES (section 14.13).
  package mutating func unknownAttributes(_ types: [STUNAttributeType]) {
    attribute(
      .unknownAttributes,
      types.flatMap { [UInt8($0.rawValue >> 8), UInt8(truncatingIfNeeded: $0.rawValue)] })
  }

  /// Ends the message with MESSAGE-INTEGRITY if there is a key, and with FINGERPRINT.
  package consuming func finish(key: [UInt8]? = nil, fingerprint: Bool = true) -> [UInt8] {
    if let key {
      setLength(adding: 4 + STUNMessage.integrityLength)
      let digest = hmacSHA1(key: key, writer.bytes.span.bytes)
      writer.uint16(STUNAttributeType.messageIntegrity.rawValue)
      writer.uint16(UInt16(STUNMessage.integrityLength))
      writer.append(digest)
    }
    if fingerprint {
      setLength(adding: 8)
      let crc = crc32(writer.bytes.span.bytes) ^ STUNMessage.fingerprintMask
      writer.uint16(STUNAttributeType.fingerprint.rawValue)
      writer.uint16(4)
      writer.uint32(crc)
    }
    setLength(adding: 0)
    return writer.bytes
  }

  private mutating func setLength(adding more: Int) {
    let length = writer.count - STUNMessage.headerLength + more
    writer.patch(uint16: UInt16(truncatingIfNeeded: length), at: 2)
  }

  private mutating func number(_ type: STUNAttributeType, _ value: UInt64) {
    writer.uint16(type.rawValue)
    writer.uint16(8)
    writer.uint64(value)
  }

  private mutating func write(
    _ address: SocketAddress, as type: STUNAttributeType, mask: AddressMask
  ) {
    let bytes = address.ip.bytes
    writer.uint16(type.rawValue)
    writer.uint16(UInt16(4 + bytes.count))
    writer.uint8(0)
    writer.uint8(address.ip.isIPv4 ? 1 : 2)
    writer.uint16(address.port ^ mask.port)
    if address.ip.isIPv4 {
      writer.uint32(bytes.span.bytes.uint32(at: 0) ^ mask.ipv4)
    } else {
      writer.uint64(bytes.span.bytes.uint64(at: 0) ^ mask.high)
      writer.uint64(bytes.span.bytes.uint64(at: 8) ^ mask.low)
    }
  }
}

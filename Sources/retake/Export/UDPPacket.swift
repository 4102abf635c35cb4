import Wire

/// A datagram with the IP and UDP headers that it had on the wire, as far as a take knows them.
enum UDPPacket {
  /// The largest payload that a UDP datagram over IPv4 can have.
  static let payloadMaximum = 65_507

  /// The bytes of the packet: IPv4 (RFC 791) or IPv6 (RFC 8200), UDP (RFC 768), payload.
  ///
  /// The addresses must be of one family and the payload no longer than `payloadMaximum`.
  static func bytes(
    from source: SocketAddress, to destination: SocketAddress, payload: [UInt8],
    identification: UInt16
  ) -> [UInt8] {
    let length = UInt16(clamping: 8 + payload.count)
    var writer = ByteWriter(capacity: 48 + payload.count)
    if source.ip.isIPv4 {
      writer.append(header4(source.ip, destination.ip, length, identification))
    } else {
      writer.uint32(6 << 28)
      writer.uint16(length)
      writer.uint8(protocolNumber)
      writer.uint8(hopLimit)
      writer.append(source.ip.bytes)
      writer.append(destination.ip.bytes)
    }
    let begin = writer.count
    writer.uint16(source.port)
    writer.uint16(destination.port)
    writer.uint16(length)
    writer.uint16(0)
    writer.append(payload)
    var sum = UInt64(protocolNumber) + UInt64(length)
    add(source.ip.bytes[...], to: &sum)
    add(destination.ip.bytes[...], to: &sum)
    add(writer.bytes[begin...], to: &sum)
    // Zero means that there is no checksum, so a sum of zero is sent as its complement.
    let checksum = folded(sum)
    writer.patch(uint16: checksum == 0 ? 0xffff : checksum, at: begin + 6)
    return writer.bytes
  }

  private static let protocolNumber: UInt8 = 17
  private static let hopLimit: UInt8 = 64

  private static func header4(
    _ source: IPAddress, _ destination: IPAddress, _ length: UInt16, _ identification: UInt16
  ) -> [UInt8] {
    var writer = ByteWriter(capacity: 20)
    writer.uint16(0x4500)
    writer.uint16(20 + length)
    writer.uint16(identification)
    writer.uint16(0x4000)  // not to be fragmented
    writer.uint8(hopLimit)
    writer.uint8(protocolNumber)
    writer.uint16(0)
    writer.append(source.bytes)
    writer.append(destination.bytes)
    var sum: UInt64 = 0
    add(writer.bytes[...], to: &sum)
    writer.patch(uint16: folded(sum), at: 10)
    return writer.bytes
  }

  // MARK: Checksum (RFC 1071)

  private static func add(_ bytes: ArraySlice<UInt8>, to sum: inout UInt64) {
    var index = bytes.startIndex
    while index + 1 < bytes.endIndex {
      sum += UInt64(bytes[index]) << 8 | UInt64(bytes[index + 1])
      index += 2
    }
    if index < bytes.endIndex { sum += UInt64(bytes[index]) << 8 }
  }

  private static func folded(_ sum: UInt64) -> UInt16 {
    var sum = sum
    while sum > 0xffff { sum = sum >> 16 + sum & 0xffff }
    return ~UInt16(sum)
  }
}

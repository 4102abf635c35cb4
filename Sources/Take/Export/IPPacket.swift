package import Wire

/// A packet with the headers that it had on the wire, as far as a take knows them.
package enum IPPacket {
  /// The largest payload that a UDP datagram over IPv4 can have.
  package static let payloadMaximum = 65_507

  /// The largest part of a TCP stream that is written as one segment.
  package static let segmentMaximum = 65_000

  private static let udp: UInt8 = 17
  private static let tcp: UInt8 = 6
  private static let sctp: UInt8 = 132
  private static let hopLimit: UInt8 = 64

  /// The bytes of a datagram: IPv4 (RFC 791) or IPv6 (RFC 8200), UDP (RFC 768), payload.
  ///
  /// The addresses must be of one family and the payload no longer than `payloadMaximum`.
  package static func datagram(
    from source: SocketAddress, to destination: SocketAddress, payload: [UInt8],
    identification: UInt16, ecn: ECNMark = .notCapable
  ) -> [UInt8] {
    let length = UInt16(clamping: 8 + payload.count)
    var writer = ByteWriter(capacity: 48 + payload.count)
    writer.append(header(udp, source.ip, destination.ip, length, identification, ecn))
    let begin = writer.count
    writer.uint16(source.port)
    writer.uint16(destination.port)
    writer.uint16(length)
    writer.uint16(0)
    writer.append(payload)
    // Zero means that there is no checksum, so a sum of zero is sent as its complement.
    let checksum = checksum(udp, source.ip, destination.ip, writer.bytes[begin...])
    writer.patch(uint16: checksum == 0 ? 0xffff : checksum, at: begin + 6)
    return writer.bytes
  }

  /// The bytes of a TCP segment (RFC 9293 section 3.1) that acknowledges nothing.
  ///
  /// The addresses must be of one family and the payload no longer than `segmentMaximum`.
  package static func segment(
    from source: SocketAddress, to destination: SocketAddress, payload: ArraySlice<UInt8>,
    sequence: UInt32, isEnd: Bool, identification: UInt16
  ) -> [UInt8] {
    let length = UInt16(clamping: 20 + payload.count)
    var writer = ByteWriter(capacity: 60 + payload.count)
    writer.append(header(tcp, source.ip, destination.ip, length, identification))
    let begin = writer.count
    writer.uint16(source.port)
    writer.uint16(destination.port)
    writer.uint32(sequence)
    writer.uint32(0)
    // Five words of header; PSH, and FIN at the end.
    writer.uint16(5 << 12 | 0x08 | (isEnd ? 0x01 : 0))
    writer.uint16(.max)
    writer.uint16(0)
    writer.uint16(0)
    writer.append(Array(payload))
    let checksum = checksum(tcp, source.ip, destination.ip, writer.bytes[begin...])
    writer.patch(uint16: checksum, at: begin + 16)
    return writer.bytes
  }

  /// The checksum over a payload and the pseudo header of its addresses (RFC 8200 section 8.1).
  private static func checksum(
    _ number: UInt8, _ source: IPAddress, _ destination: IPAddress, _ payload: ArraySlice<UInt8>
  ) -> UInt16 {
    var sum = UInt64(number) + UInt64(payload.count)
    add(source.bytes[...], to: &sum)
    add(destination.bytes[...], to: &sum)
    add(payload, to: &sum)
    return folded(sum)
  }

  /// The bytes of an SCTP packet that travels without DTLS and UDP (RFC 9260).
  static func association(
    from source: IPAddress, to destination: IPAddress, packet: [UInt8], identification: UInt16
  ) -> [UInt8] {
    header(sctp, source, destination, UInt16(clamping: packet.count), identification) + packet
  }

  private static func header(
    _ number: UInt8, _ source: IPAddress, _ destination: IPAddress, _ length: UInt16,
    _ identification: UInt16, _ ecn: ECNMark = .notCapable
  ) -> [UInt8] {
    var writer = ByteWriter(capacity: 40)
    let mark = ecn.rawValue & 3
    guard source.isIPv4 else {
      writer.uint32(6 << 28 | UInt32(mark) << 20)
      writer.uint16(length)
      writer.uint8(number)
      writer.uint8(hopLimit)
      writer.append(source.bytes)
      writer.append(destination.bytes)
      return writer.bytes
    }
    writer.uint16(0x4500 | UInt16(mark))
    writer.uint16(20 + length)
    writer.uint16(identification)
    writer.uint16(0x4000)  // not to be fragmented
    writer.uint8(hopLimit)
    writer.uint8(number)
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

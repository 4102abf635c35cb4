import Wire

/// A FEC packet (RFC 5109): the XOR of the packets it protects, from which one lost packet can be
/// recovered.
///
/// Only level 0 is supported, the only one that browsers send; it protects whole packets.
package struct ULPFEC: Hashable, Sendable {
  /// The length before the payload: 10 bytes, and 4 or 8 for level 0.
  private static let headerLength = 10
  /// The largest number of packets that one FEC packet can protect.
  package static let reach = 48

  /// The sequence number that the mask starts at.
  package var base: UInt16
  /// The protection mask, 48 bits; the highest stands for `base`.
  package var mask: UInt64
  /// The XOR of the protected headers: padding, extension and CSRC count; marker and payload type;
  /// timestamp; length beyond the fixed header.
  private var first: UInt8
  private var second: UInt8
  private var timestamp: UInt32
  private var length: UInt16
  private var payload: [UInt8]

  /// Parses a payload; nil if it is truncated or protects nothing.
  package init?(_ bytes: RawSpan) {
    guard bytes.byteCount >= ULPFEC.headerLength + 4 else { return nil }
    let flags = bytes.byte(at: 0)
    let isLong = flags & 0x40 != 0
    first = flags & 0x3f
    second = bytes.byte(at: 1)
    base = bytes.uint16(at: 2)
    timestamp = bytes.uint32(at: 4)
    length = bytes.uint16(at: 8)
    let protected = Int(bytes.uint16(at: 10))
    let start = ULPFEC.headerLength + (isLong ? 8 : 4)
    guard bytes.byteCount >= start, protected <= bytes.byteCount - start else { return nil }
    mask = UInt64(bytes.uint16(at: 12)) << 32
    if isLong { mask |= UInt64(bytes.uint32(at: 14)) }
    guard mask != 0 else { return nil }
    payload = (start..<start + protected).map { bytes.byte(at: $0) }
  }

  /// The sequence numbers of the protected packets.
  package var sequences: [UInt16] {
    (0..<ULPFEC.reach).filter { mask >> UInt64(ULPFEC.reach - 1 - $0) & 1 != 0 }
      .map { base &+ UInt16($0) }
  }

  /// Recovers the one missing packet among those protected.
  ///
  /// Its header extensions are meaningless: senders fill them in when packets leave, after the FEC
  /// was computed.
  /// - Parameter others: all the other protected packets.
  /// - Returns: nil if the result is not a valid packet.
  package func packet(_ sequence: UInt16, ssrc: UInt32, from others: [[UInt8]]) -> [UInt8]? {
    var (first, second, timestamp, length) = (first, second, timestamp, length)
    var rest = payload
    for other in others {
      guard other.count >= RTPHeader.fixedLength else { return nil }
      first ^= other[0] & 0x3f
      second ^= other[1]
      timestamp ^= other.span.bytes.uint32(at: 4)
      length ^= UInt16(truncatingIfNeeded: other.count - RTPHeader.fixedLength)
      let shared = min(rest.count, other.count - RTPHeader.fixedLength)
      for index in 0..<shared { rest[index] ^= other[RTPHeader.fixedLength + index] }
    }
    guard Int(length) <= rest.count else { return nil }
    var writer = ByteWriter()
    writer.uint8(0x80 | first)
    writer.uint8(second)
    writer.uint16(sequence)
    writer.uint32(timestamp)
    writer.uint32(ssrc)
    writer.append(Array(rest[..<Int(length)]))
    return writer.bytes
  }
}

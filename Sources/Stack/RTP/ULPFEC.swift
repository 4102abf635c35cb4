import Wire

/// A packet that repairs others of its stream (RFC 5109): the exclusive or of those that it
/// protects, of which one that is lost is made again.
///
/// One level is read, the only one that browsers send: it protects whole packets.
package struct ULPFEC: Hashable, Sendable {
  /// What stands before the payload: 10 bytes for all levels, 4 or 8 for the first one.
  private static let headerLength = 10
  /// How many packets one protects at most.
  package static let reach = 48

  /// The first sequence number that may be protected.
  package var base: UInt16
  /// Which are: the highest of 48 bits is that of the first number.
  package var mask: UInt64
  /// Whatever of the protected packets is the same in all headers: padding, extension,
  /// contributors; marker and payload type; timestamp; length beyond the fixed header.
  private var first: UInt8
  private var second: UInt8
  private var timestamp: UInt32
  private var length: UInt16
  private var payload: [UInt8]

  /// Reads a payload; nil when it is cut off, or protects nothing.
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

  /// The sequence numbers that are protected.
  package var sequences: [UInt16] {
    (0..<ULPFEC.reach).filter { mask >> UInt64(ULPFEC.reach - 1 - $0) & 1 != 0 }
      .map { base &+ UInt16($0) }
  }

  /// The packet that is missing among those that are protected.
  ///
  /// The values of its header extensions mean nothing: senders fill them in when packets leave,
  /// after what repairs these was made.
  ///
  /// - Parameter others: all the others.
  /// - Returns: nil when what comes out is longer than what was protected, or no packet.
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

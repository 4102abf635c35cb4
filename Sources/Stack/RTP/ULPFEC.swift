import Wire

/// Redundant payloads (RFC 2198 section 3).
///
/// Older payloads precede the primary one. Video with ULPFEC uses RED with one block per packet.
package enum RED {
  /// A packet's primary block and the number of redundant blocks before it.
  package struct Primary: Hashable, Sendable {
    package var payloadType: UInt8
    /// The block's payload range in the packet.
    package var payload: Range<Int>
    package var redundantBlocks: Int
  }

  /// Returns the primary block; nil if the lengths exceed the payload.
  package static func primary(_ bytes: RawSpan, in payload: Range<Int>) -> Primary? {
    guard payload.upperBound <= bytes.byteCount else { return nil }
    var offset = payload.lowerBound
    var redundantLength = 0
    var blocks = 0
    while offset < payload.upperBound, bytes.byte(at: offset) & 0x80 != 0 {
      guard payload.upperBound - offset > 4 else { return nil }
      // A redundant block's header ends with a 10-bit length.
      redundantLength += Int(bytes.uint16(at: offset + 2) & 0x3ff)
      offset += 4
      blocks += 1
    }
    guard offset < payload.upperBound, payload.upperBound - offset > redundantLength else {
      return nil
    }
    return Primary(
      payloadType: bytes.byte(at: offset) & 0x7f,
      payload: offset + 1 + redundantLength..<payload.upperBound, redundantBlocks: blocks)
  }
}

/// The retransmission payload format: the original sequence number, then the payload (RFC 4588
/// section 4).
package enum RTX {
  /// The length of the original sequence number.
  package static let overhead = 2

  /// Returns the original sequence number and the range of the payload.
  ///
  /// Nil if there is no payload, as in packets that only probe the path.
  package static func unwrap(
    _ bytes: RawSpan, header: RTPHeader
  ) -> (sequence: UInt16, payload: Range<Int>)? {
    let payload = header.payload
    guard payload.count >= overhead, payload.upperBound <= bytes.byteCount else { return nil }
    let high = UInt16(bytes.byte(at: payload.lowerBound))
    let low = UInt16(bytes.byte(at: payload.lowerBound + 1))
    return (high << 8 | low, payload.lowerBound + overhead..<payload.upperBound)
  }
}

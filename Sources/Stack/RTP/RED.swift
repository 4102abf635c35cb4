import Wire

/// Redundant payloads (RFC 2198 section 3).
///
/// Older payloads stand before the one that a packet is about. Video with ULPFEC comes in it too,
/// each packet as one block.
package enum RED {
  /// The last block of a packet, and how many stand before it.
  package struct Primary: Hashable, Sendable {
    package var payloadType: UInt8
    /// Where its payload lies in the packet.
    package var payload: Range<Int>
    package var redundantBlocks: Int
  }

  /// The block that a payload is about; nil when its parts do not fit into it.
  package static func primary(_ bytes: RawSpan, in payload: Range<Int>) -> Primary? {
    guard payload.upperBound <= bytes.byteCount else { return nil }
    var offset = payload.lowerBound
    var redundantLength = 0
    var blocks = 0
    while offset < payload.upperBound, bytes.byte(at: offset) & 0x80 != 0 {
      guard payload.upperBound - offset > 4 else { return nil }
      // Ten bits of length end the header of a block that is not the last one.
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

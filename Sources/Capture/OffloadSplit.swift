import Wire

/// Finds the datagrams in one that the system joined before it was captured.
///
/// With segmentation offload (UDP_SEGMENT) and receive offload (UDP_GRO) a capture shows one large
/// datagram for many of one size, the last of which may be shorter. IP tells nothing of it; the
/// contents do.
enum OffloadSplit {
  /// The size of the datagrams that make up a payload; nil when it is one datagram.
  static func size(of payload: RawSpan) -> Int? {
    let count = payload.byteCount
    guard count >= 40 else { return nil }
    switch DatagramClass(payload) {
    case .rtp: return packetSize(payload)
    case .stun: return messageSize(payload)
    default: return nil
    }
  }

  /// RTP packets of one stream with consecutive numbers: 48 bits that have to fit at every border.
  private static func packetSize(_ payload: RawSpan) -> Int? {
    let count = payload.byteCount
    let first = payload.byte(at: 0) & 0xc0
    let number = payload.uint16(at: 2)
    let source = unsafe payload.unsafeLoadUnaligned(fromUncheckedByteOffset: 8, as: UInt32.self)
    // Where the first byte of the source stands in none of eight places, all are passed over.
    let pattern = UInt64(payload.byte(at: 8)) &* 0x0101_0101_0101_0101
    var size = 13
    while size + 12 <= count {
      if size + 16 <= count {
        let word =
          unsafe payload.unsafeLoadUnaligned(fromUncheckedByteOffset: size + 8, as: UInt64.self)
          ^ pattern
        if (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080 == 0 {
          size += 8
          continue
        }
      }
      if unsafe payload.unsafeLoadUnaligned(fromUncheckedByteOffset: size + 8, as: UInt32.self)
        == source, payload.byte(at: size) & 0xc0 == first,
        payload.uint16(at: size + 2) == number &+ 1,
        isChain(payload, size, number, source, first)
      {
        return size
      }
      size += 1
    }
    return nil
  }

  private static func isChain(
    _ payload: RawSpan, _ size: Int, _ number: UInt16, _ source: UInt32, _ first: UInt8
  ) -> Bool {
    var offset = 2 * size
    var next = number &+ 2
    while offset < payload.byteCount {
      guard offset + 12 <= payload.byteCount, payload.byte(at: offset) & 0xc0 == first,
        payload.uint16(at: offset + 2) == next,
        unsafe payload.unsafeLoadUnaligned(fromUncheckedByteOffset: offset + 8, as: UInt32.self)
          == source
      else { return false }
      offset += size
      next &+= 1
    }
    return true
  }

  /// STUN messages tell their length; whatever follows one must begin one again.
  private static func messageSize(_ payload: RawSpan) -> Int? {
    let size = 20 + Int(payload.uint16(at: 2))
    guard size < payload.byteCount else { return nil }
    var offset = size
    while offset < payload.byteCount {
      let rest = payload.byteCount - offset
      guard rest >= 20, payload.uint32(at: offset + 4) == 0x2112_a442,
        20 + Int(payload.uint16(at: offset + 2)) == min(size, rest)
      else { return nil }
      offset += size
    }
    return size
  }
}

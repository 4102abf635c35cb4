import Wire

/// Finds the datagrams in one that the system joined before it was captured.
///
/// With segmentation offload (UDP_SEGMENT) and receive offload (UDP_GRO) a capture shows one large
/// datagram for many of one size, the last of which may be shorter. IP tells nothing of it; the
/// contents do. A sender that has just one message of another kind to add joins that too, as the
/// last one.
enum OffloadSplit {
  /// The size of the datagrams that make up a payload; nil when it is one datagram.
  static func size(of payload: RawSpan) -> Int? {
    let count = payload.byteCount
    guard count >= 40 else { return nil }
    switch DatagramClass(payload) {
    case .rtp: return packetSize(payload) ?? packetSizeBeforeOther(payload)
    case .stun: return messageSize(payload)
    case .dtls: return recordsSize(payload)
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
      else { return offset + size >= payload.byteCount && isOther(payload, offset) }
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

  // MARK: A last message of another kind

  /// The size of an RTP packet that is followed by one shorter message of another kind.
  private static func packetSizeBeforeOther(_ payload: RawSpan) -> Int? {
    let count = payload.byteCount
    let hasTrailer = mayEndControl(payload)
    var place = max(13, (count + 1) / 2)
    while place + 14 <= count {
      let end = min(place + 8, count - 13)
      defer { place = end }
      guard hasTrailer || place + 16 > count || mayBegin(payload, place) else { continue }
      for offset in place..<end where isOther(payload, offset) { return offset }
    }
    return nil
  }

  /// Whether DTLS 1.2 or STUN may begin at one of eight places: by the version in the second and
  /// third byte, or by two bytes of the cookie from the fifth on.
  private static func mayBegin(_ payload: RawSpan, _ place: Int) -> Bool {
    let version = matches(payload, place + 1, 0xfe) & matches(payload, place + 2, 0xfd)
    let cookie = matches(payload, place + 4, 0x21) & matches(payload, place + 5, 0x12)
    return version | cookie != 0
  }

  /// The highest bits of those of eight bytes that are a certain one, and of some others.
  private static func matches(_ payload: RawSpan, _ place: Int, _ byte: UInt64) -> UInt64 {
    let word =
      unsafe payload.unsafeLoadUnaligned(fromUncheckedByteOffset: place, as: UInt64.self)
      ^ (byte &* 0x0101_0101_0101_0101)
    return (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
  }

  /// Whether the rest of a payload is one whole message that is no RTP.
  private static func isOther(_ payload: RawSpan, _ offset: Int) -> Bool {
    let rest = payload.byteCount - offset
    guard rest >= 14 else { return false }
    switch DatagramClass(first: payload.byte(at: offset), second: payload.byte(at: offset + 1)) {
    case .stun:
      return rest >= 20 && payload.uint32(at: offset + 4) == 0x2112_a442
        && 20 + Int(payload.uint16(at: offset + 2)) == rest
    case .dtls: return endOfRecords(payload, offset) == payload.byteCount
    case .rtcp:
      // The first packet of the compound is a report or feedback, and behind all of them stands the
      // index (RFC 3711 section 3.4). Encrypted bytes look so once in ten million packets.
      return payload.byte(at: offset) & 0xe0 == 0x80
        && [200, 201, 205, 206].contains(payload.byte(at: offset + 1))
        && 4 * Int(payload.uint16(at: offset + 2)) + 8 <= rest && mayEndControl(payload)
    default: return false
    }
  }

  /// Whether a payload ends as SRTCP does: with the mark of encryption and a small index, behind
  /// which is nothing (AES-GCM) or a tag of 80 bits.
  private static func mayEndControl(_ payload: RawSpan) -> Bool {
    hasIndex(payload, payload.byteCount - 4) || hasIndex(payload, payload.byteCount - 14)
  }

  private static func hasIndex(_ payload: RawSpan, _ place: Int) -> Bool {
    place >= 24 && payload.uint32(at: place) & 0xfffe_0000 == 0x8000_0000
  }

  /// The size of DTLS datagrams that one of RTP, RTCP or STUN follows.
  private static func recordsSize(_ payload: RawSpan) -> Int? {
    let end = endOfRecords(payload, 0)
    let rest = payload.byteCount - end
    guard end > 0, rest >= 12 else { return nil }
    switch DatagramClass(first: payload.byte(at: end), second: payload.byte(at: end + 1)) {
    case .rtp: break
    default: guard isOther(payload, end) else { return nil }
    }
    // A record in each of them, as a rule.
    let size = 13 + Int(payload.uint16(at: 11))
    let isEven = stride(from: 0, to: end, by: size).allSatisfy {
      $0 + 13 <= end && 13 + Int(payload.uint16(at: $0 + 11)) == size
    }
    if isEven, rest <= size { return size }
    return rest <= end ? end : nil
  }

  /// Where whole DTLS records end that begin at a place (RFC 6347 section 4.1).
  private static func endOfRecords(_ payload: RawSpan, _ place: Int) -> Int {
    var offset = place
    while offset + 13 <= payload.byteCount, (20...26).contains(payload.byte(at: offset)),
      payload.byte(at: offset + 1) == 0xfe, payload.byte(at: offset + 2) >= 0xfd
    {
      let next = offset + 13 + Int(payload.uint16(at: offset + 11))
      guard next <= payload.byteCount else { break }
      offset = next
    }
    return offset
  }
}

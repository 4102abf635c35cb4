import Wire

/// 802.11 (IEEE 802.11-2020 section 9.2), and what stands in front of its frames.
enum WirelessFrame {
  /// Finds what a frame of 802.11 carries.
  static func content(_ frame: RawSpan, _ range: Range<Int>, _ type: LinkType, _ depth: Int)
    -> LinkLayer.Content
  {
    switch type {
    case .wirelessRadiotap: return radiotap(frame, range, depth)
    case .perPacketInformation: return perPacketInformation(frame, range, depth)
    case .wirelessPrism, .wirelessAVS:
      guard range.count >= 8 else { return .malformed }
      // AVS says so in front, in network order; Prism's length is in the order of the machine.
      let isAVS = frame.uint32(at: range.lowerBound) >> 8 == 0x802110
      let stated = frame.uint32(at: range.lowerBound + 4)
      let length = isAVS || stated < 0x10000 ? stated : stated.byteSwapped
      guard length >= 8, length <= range.count else { return .malformed }
      return data(frame, range.dropFirst(Int(length)), depth)
    default: return data(frame, range, depth)
    }
  }

  private static func little16(_ frame: RawSpan, _ place: Int) -> UInt16 {
    frame.uint16(at: place).byteSwapped
  }

  /// The header of radiotap.org: version, length, and fields that words of bits announce.
  private static func radiotap(_ frame: RawSpan, _ range: Range<Int>, _ depth: Int)
    -> LinkLayer.Content
  {
    guard range.count >= 8, frame.byte(at: range.lowerBound) == 0 else { return .malformed }
    let length = Int(little16(frame, range.lowerBound + 2))
    guard length >= 8, length <= range.count else { return .malformed }
    let header = range.prefix(length)
    var words = 1
    while header.count >= 4 + 4 * words,
      frame.byte(at: header.lowerBound + 4 * words + 3) & 0x80 != 0
    {
      words += 1
    }
    let present = frame.byte(at: header.lowerBound + 4)
    var flags: UInt8 = 0
    if present & 2 != 0 {
      // A time of eight bytes, at a multiple of eight, stands before the flags.
      var offset = 4 + 4 * words
      if present & 1 != 0 { offset = (offset + 7) & ~7 + 8 }
      if offset < header.count { flags = frame.byte(at: header.lowerBound + offset) }
    }
    // A frame that came damaged comes again.
    guard flags & 0x40 == 0 else { return .malformed }
    var body = range.dropFirst(length)
    if flags & 0x10 != 0 { body = body.dropLast(4) }
    return data(frame, body, depth, isPadded: flags & 0x20 != 0)
  }

  /// PPI: version, flags, length and the link type of what follows, lowest byte first.
  private static func perPacketInformation(
    _ frame: RawSpan, _ range: Range<Int>, _ depth: Int
  ) -> LinkLayer.Content {
    guard range.count >= 8, depth < 4 else { return .malformed }
    let length = Int(little16(frame, range.lowerBound + 2))
    guard length >= 8, length <= range.count else { return .malformed }
    let type = LinkType(rawValue: little16(frame, range.lowerBound + 4))
    return LinkLayer.content(of: frame, in: range.dropFirst(length), type, depth + 1)
  }

  /// A frame from its control field on.
  ///
  /// - Parameter isPadded: whether its header is filled up to a multiple of four, as some cards do.
  private static func data(
    _ frame: RawSpan, _ range: Range<Int>, _ depth: Int, isPadded: Bool = false
  ) -> LinkLayer.Content {
    guard range.count >= 2 else { return .malformed }
    let (kind, flags) = (frame.byte(at: range.lowerBound), frame.byte(at: range.lowerBound + 1))
    guard kind & 3 == 0 else { return .malformed }
    // Data, and not one of the subtypes that have none.
    guard kind & 0x0c == 0x08, kind & 0x40 == 0 else { return .unread(.wirelessControl) }
    let hasQuality = kind & 0x80 != 0
    var length = 24
    if flags & 3 == 3 { length += 6 }
    let quality = range.lowerBound + length
    if hasQuality { length += flags & 0x80 != 0 ? 6 : 2 }
    if isPadded { length = (length + 3) & ~3 }
    guard range.count > length else { return .malformed }
    guard frame.byte(at: range.lowerBound + 22) & 0x0f == 0 else {
      return .unread(.wirelessFragment)
    }
    var body = range.dropFirst(length)
    let isAggregate = hasQuality && frame.byte(at: quality) & 0x80 != 0
    if flags & 0x40 != 0 {
      // Cards that decrypt leave the mark, and some the initialisation vector (CCMP, TKIP: 8).
      if !beginsData(body, frame, isAggregate) { body = body.dropFirst(8) }
      guard beginsData(body, frame, isAggregate) else { return .unread(.wirelessEncryption) }
    }
    return isAggregate
      ? aggregate(frame, body, depth) : LinkLayer.logicalLink(frame, body, depth + 1)
  }

  private static func beginsData(_ body: Range<Int>, _ frame: RawSpan, _ isAggregate: Bool) -> Bool
  {
    let head = body.dropFirst(isAggregate ? 14 : 0)
    return head.count >= 8 && frame.uint32(at: head.lowerBound) == 0xaaaa_0300
  }

  /// Several packets in one frame (A-MSDU, section 9.3.2.2), each at a multiple of four.
  private static func aggregate(_ frame: RawSpan, _ range: Range<Int>, _ depth: Int)
    -> LinkLayer.Content
  {
    var packets: [LinkLayer.Content] = []
    var rest = range
    // 802.11 has at most 11,454 bytes in one.
    while rest.count > 14, packets.count < 512 {
      let length = Int(frame.uint16(at: rest.lowerBound + 12))
      guard length > 0 else { break }
      packets.append(
        LinkLayer.logicalLink(frame, rest.dropFirst(14).prefix(length), depth + 1))
      rest = rest.dropFirst((14 + length + 3) & ~3)
    }
    return packets.isEmpty ? .malformed : .several(packets)
  }
}

/// What capturing systems put in front of frames.
enum CaptureHeaders {
  /// PKTAP of macOS: its length, whether a packet follows, and the packet's link type, in the order
  /// of the machine.
  static func packetTap(
    _ frame: RawSpan, _ range: Range<Int>, _ type: LinkType, _ depth: Int
  ) -> LinkLayer.Content {
    // Anybody may use the number of older files for something else.
    let other = type == .packetTap ? .malformed : LinkLayer.Content.unread(.linkType(type.rawValue))
    guard range.count >= 12, depth < 4 else { return other }
    let length = frame.uint32(at: range.lowerBound).byteSwapped
    let next = frame.uint32(at: range.lowerBound + 4).byteSwapped
    let inner = frame.uint32(at: range.lowerBound + 8).byteSwapped
    guard length >= 12, length <= range.count, next == 1, let inner = UInt16(exactly: inner) else {
      return other
    }
    return LinkLayer.content(
      of: frame, in: range.dropFirst(Int(length)), LinkType(rawValue: inner), depth + 1)
  }

  /// NFLOG: family, version and resource, then fields of which one is the packet, in the order of
  /// the machine.
  static func netfilterLog(_ frame: RawSpan, _ range: Range<Int>) -> LinkLayer.Content {
    guard range.count >= 4, frame.byte(at: range.lowerBound + 1) == 0 else { return .malformed }
    let body = range.dropFirst(4)
    let packet =
      payload(frame, body, FieldOrder(isSwapped: true)) ?? payload(frame, body, FieldOrder())
    return packet.map { .ip($0) } ?? .malformed
  }

  private static func payload(
    _ frame: RawSpan, _ range: Range<Int>, _ order: FieldOrder
  ) -> Range<Int>? {
    var rest = range
    while rest.count >= 4 {
      let length = Int(order.uint16(frame, at: rest.lowerBound))
      guard length >= 4, length <= (rest.count + 3) & ~3 else { return nil }
      // NFULA_PAYLOAD; the highest bits are marks.
      if order.uint16(frame, at: rest.lowerBound + 2) & 0x3fff == 9 {
        return rest.dropFirst(4).prefix(length - 4)
      }
      rest = rest.dropFirst((length + 3) & ~3)
    }
    return nil
  }
}

import Wire

/// The layers before IP in a frame: VLAN tags, PPPoE, MPLS and so on.
///
/// Each function parses a range of the frame and reads nothing outside of it.
enum LinkLayer {
  enum Content {
    case ip(Range<Int>)
    /// Several packets in one frame (A-MSDU).
    case several([Content])
    case unread(UnreadLayer)
    case malformed
  }

  /// The maximum number of layers before IP; no legitimate frame has more.
  private static let layersMaximum = 16

  enum EtherType {
    static let ipv4: UInt16 = 0x0800
    static let ipv6: UInt16 = 0x86dd
    static let bridged: UInt16 = 0x6558
    static let ppp: UInt16 = 0x880b
    static let pppoeSession: UInt16 = 0x8864
    static let mpls: UInt16 = 0x8847
    static let mplsMulticast: UInt16 = 0x8848
    static let jumboLLC: UInt16 = 0x8870
    static let providerBackbone: UInt16 = 0x88e7
    static let macSecurity: UInt16 = 0x88e5
  }

  /// Finds the IP packet in a frame; `frame` excludes its checksum.
  static func content(of frame: RawSpan, _ type: LinkType) -> Content {
    content(of: frame, in: 0..<frame.byteCount, type, 0)
  }

  /// Finds the IP packet in a range of a frame that begins with a header of this link type.
  ///
  /// - Parameter depth: the number of enclosing layers.
  static func content(of frame: RawSpan, in range: Range<Int>, _ type: LinkType, _ depth: Int)
    -> Content
  {
    switch type {
    case .ethernet: ethernet(frame, range, depth)
    case .linuxCooked: typed(frame, range, typeAt: 14, bodyAt: 16, depth)
    case .linuxCooked2: typed(frame, range, typeAt: 0, bodyAt: 20, depth)
    case .raw, .rawBSD, .rawOpenBSD, .ipv4, .ipv6: .ip(range)
    case .null, .loop: family(frame, range, bodyAt: 4)
    // The family is followed by a security association and flags (OpenBSD enc(4)).
    case .enc: family(frame, range, bodyAt: 12)
    case .packetFilterLog: packetFilterLog(frame, range)
    case .ppp, .pppInHDLC: serial(frame, range, depth)
    case .pppWithDirection: serial(frame, range.dropFirst(1), depth)
    // A direction byte replaces the address.
    case .pppOfDaemon: PointToPoint.content(frame, range.dropFirst(2), depth + 1)
    case .pppoe: PointToPoint.session(frame, range, depth + 1)
    case .ciscoHDLC: typed(frame, range, typeAt: 2, bodyAt: 4, depth)
    case .mpls: LabelStack.content(frame, range, depth + 1)
    case .llcATM: logicalLink(frame, range, depth)
    case .wireless, .wirelessRadiotap, .wirelessPrism, .wirelessAVS, .perPacketInformation:
      WirelessFrame.content(frame, range, type, depth)
    case .packetTap, .packetTapOfUser:
      CaptureHeaders.packetTap(frame, range, type, depth)
    case .netfilterLog: CaptureHeaders.netfilterLog(frame, range)
    default: .unread(.linkType(type.rawValue))
    }
  }

  static func ethernet(_ frame: RawSpan, _ range: Range<Int>, _ depth: Int) -> Content {
    typed(frame, range, typeAt: 12, bodyAt: 14, depth)
  }

  private static func typed(
    _ frame: RawSpan, _ range: Range<Int>, typeAt: Int, bodyAt: Int, _ depth: Int
  ) -> Content {
    guard range.count >= bodyAt else { return .malformed }
    return content(
      of: frame, in: range.dropFirst(bodyAt), type: frame.uint16(at: range.lowerBound + typeAt),
      depth)
  }

  /// Parses the bytes after an EtherType, or after the length in its place (802.3).
  static func content(of frame: RawSpan, in range: Range<Int>, type: UInt16, _ depth: Int)
    -> Content
  {
    guard depth < layersMaximum else { return .unread(.tooDeep) }
    if let length = tagLength(type) {
      guard range.count >= length else { return .malformed }
      let next = frame.uint16(at: range.lowerBound + length - 2)
      return content(of: frame, in: range.dropFirst(length), type: next, depth + 1)
    }
    switch type {
    case EtherType.ipv4, EtherType.ipv6: return .ip(range)
    case EtherType.pppoeSession: return PointToPoint.session(frame, range, depth + 1)
    case EtherType.ppp: return PointToPoint.content(frame, range, depth + 1)
    case EtherType.mpls, EtherType.mplsMulticast:
      return LabelStack.content(frame, range, depth + 1)
    case EtherType.bridged: return ethernet(frame, range, depth + 1)
    // A complete frame follows the service instance (802.1ah).
    case EtherType.providerBackbone: return ethernet(frame, range.dropFirst(4), depth + 1)
    case EtherType.macSecurity: return macSecurity(frame, range, depth + 1)
    // In Linux's cooked captures, values up to 4 are not lengths: 4 means 802.2, and 1 to 3 mean
    // protocols that are not read, such as AX.25.
    case 4, EtherType.jumboLLC: return logicalLink(frame, range, depth + 1)
    case 5...1500:
      return logicalLink(frame, range.prefix(Int(type)), depth + 1)
    default: return .unread(.etherType(type))
    }
  }

  /// Returns how many bytes follow a tag's EtherType, including the next EtherType; nil if `type`
  /// is not a tag's.
  private static func tagLength(_ type: UInt16) -> Int? {
    switch type {
    // 802.1Q, 802.1ad ("QinQ") and its predecessors.
    case 0x8100, 0x88a8, 0x9100, 0x9200, 0x9300: 4
    // Port extender tags: VN-Tag and E-Tag (802.1BR).
    case 0x8926: 6
    case 0x893f: 8
    default: nil
    }
  }

  /// Parses 802.2, with an EtherType after the SNAP header.
  static func logicalLink(_ frame: RawSpan, _ range: Range<Int>, _ depth: Int) -> Content {
    guard range.count >= 3 else { return .malformed }
    guard depth < layersMaximum else { return .unread(.tooDeep) }
    let head = UInt32(frame.uint16(at: range.lowerBound)) << 8
    switch head | UInt32(frame.byte(at: range.lowerBound + 2)) {
    case 0xaaaa03:
      guard range.count >= 8 else { return .malformed }
      let organization = frame.uint32(at: range.lowerBound + 2) & 0xff_ffff
      // An EtherType follows the organization codes of RFC 1042 and of bridges (802.1H).
      guard organization == 0 || organization == 0xf8 else { return .unread(.logicalLink) }
      let type = frame.uint16(at: range.lowerBound + 6)
      guard type > 1500 else { return .unread(.etherType(type)) }
      return content(of: frame, in: range.dropFirst(8), type: type, depth + 1)
    case 0x060603: return .ip(range.dropFirst(3))
    default: return .unread(.logicalLink)
    }
  }

  /// Parses MACsec (802.1AE), whose contents are readable unless encrypted.
  private static func macSecurity(_ frame: RawSpan, _ range: Range<Int>, _ depth: Int) -> Content {
    guard range.count >= 6 else { return .malformed }
    let control = frame.byte(at: range.lowerBound)
    guard control & 0x0c == 0 else { return .unread(.macSecurity) }
    // Point-to-point links omit the channel identifier.
    return typed(frame, range.dropFirst(control & 0x20 != 0 ? 14 : 6), typeAt: 0, bodyAt: 2, depth)
  }

  /// Parses a header with a protocol family.
  ///
  /// The family's number and byte order differ between systems, but all numbers are small, and the
  /// packet itself states its IP version.
  private static func family(_ frame: RawSpan, _ range: Range<Int>, bodyAt: Int) -> Content {
    guard range.count >= bodyAt else { return .malformed }
    let value = frame.uint32(at: range.lowerBound)
    let family = value > 0xffff ? value.byteSwapped : value
    // AF_INET is 2 everywhere; AF_INET6 is 10, 23, 24, 26, 28 or 30.
    return [2, 10, 23, 24, 26, 28, 30].contains(family)
      ? .ip(range.dropFirst(bodyAt)) : .unread(.family(family))
  }

  /// Parses pf(4)'s log header, which begins with its length and is padded to a multiple of four.
  private static func packetFilterLog(_ frame: RawSpan, _ range: Range<Int>) -> Content {
    guard let length = range.first.map({ (Int(frame.byte(at: $0)) + 3) & ~3 }), length >= 8,
      range.count >= length
    else { return .malformed }
    return .ip(range.dropFirst(length))
  }

  /// Parses PPP on a serial line or Cisco HDLC; the address byte distinguishes them.
  private static func serial(_ frame: RawSpan, _ range: Range<Int>, _ depth: Int) -> Content {
    guard let first = range.first else { return .malformed }
    if range.count >= 4, [0x0f, 0x8f].contains(frame.byte(at: first)),
      frame.byte(at: first + 1) == 0
    {
      return typed(frame, range, typeAt: 2, bodyAt: 4, depth)
    }
    return PointToPoint.content(frame, range, depth + 1)
  }
}

/// PPP (RFC 1661), and PPP over Ethernet (RFC 2516).
enum PointToPoint {
  /// Parses a PPPoE session header, which starts with its version, and the PPP frame after it.
  static func session(_ frame: RawSpan, _ range: Range<Int>, _ depth: Int) -> LinkLayer.Content {
    guard range.count >= 6 else { return .malformed }
    guard frame.uint16(at: range.lowerBound) == 0x1100 else {
      return .unread(.etherType(0x8863))
    }
    let length = Int(frame.uint16(at: range.lowerBound + 4))
    return content(frame, range.dropFirst(6).prefix(length), depth)
  }

  /// Parses a frame, whose address may be omitted and whose protocol may be shortened to one byte.
  static func content(_ frame: RawSpan, _ range: Range<Int>, _ depth: Int) -> LinkLayer.Content {
    var rest = range
    if rest.count >= 2, frame.uint16(at: rest.lowerBound) == 0xff03 { rest = rest.dropFirst(2) }
    guard let first = rest.first else { return .malformed }
    var number = UInt16(frame.byte(at: first))
    if number & 1 == 0 {
      guard rest.count >= 2 else { return .malformed }
      number = frame.uint16(at: first)
      rest = rest.dropFirst(1)
    }
    rest = rest.dropFirst(1)
    switch number {
    case 0x21, 0x57: return .ip(rest)
    case 0x281, 0x283: return LabelStack.content(frame, rest, depth + 1)
    // Bridging has flags and a type, 1 for Ethernet, before the frame (RFC 3518 section 4.2).
    case 0x31 where rest.count >= 2 && frame.byte(at: rest.lowerBound + 1) == 1:
      return LinkLayer.ethernet(frame, rest.dropFirst(2), depth + 1)
    default: return .unread(.pointToPoint(number))
    }
  }
}

/// MPLS (RFC 3032): labels, followed by a payload of any protocol.
enum LabelStack {
  private static let labelsMaximum = 16

  static func content(_ frame: RawSpan, _ range: Range<Int>, _ depth: Int) -> LinkLayer.Content {
    var rest = range
    for _ in 0..<labelsMaximum {
      guard rest.count >= 4 else { return .malformed }
      let isLast = frame.byte(at: rest.lowerBound + 2) & 1 != 0
      rest = rest.dropFirst(4)
      if isLast { return payload(frame, rest, depth) }
    }
    return .unread(.multiprotocolLabels)
  }

  /// Parses the payload, which has no type field.
  ///
  /// IP begins with its version (RFC 4928 section 3). A pseudowire begins with a control word whose
  /// first four bits are zero (RFC 4385 section 3), or directly with an Ethernet address, which may
  /// have any bits.
  private static func payload(_ frame: RawSpan, _ range: Range<Int>, _ depth: Int)
    -> LinkLayer.Content
  {
    guard let first = range.first.map({ frame.byte(at: $0) >> 4 }) else { return .malformed }
    if InternetHeader.isCertain(frame, in: range) { return .ip(range) }
    if first == 0, isEthernet(frame, range.dropFirst(4)) {
      return LinkLayer.ethernet(frame, range.dropFirst(4), depth)
    }
    if isEthernet(frame, range) { return LinkLayer.ethernet(frame, range, depth) }
    if first == 4 || first == 6, InternetHeader(frame, in: range) != nil { return .ip(range) }
    return .unread(.multiprotocolLabels)
  }

  /// Returns whether the bytes are an Ethernet frame with IP, ARP, LLDP, MPLS or PPPoE.
  static func isEthernet(_ frame: RawSpan, _ range: Range<Int>) -> Bool {
    guard range.count >= 14 else { return false }
    var place = range.lowerBound + 12
    for _ in 0..<3 where place + 6 <= range.upperBound {
      guard [0x8100, 0x88a8, 0x9100].contains(frame.uint16(at: place)) else { break }
      place += 4
    }
    let body = place + 2..<range.upperBound
    switch frame.uint16(at: place) {
    case LinkLayer.EtherType.ipv4, LinkLayer.EtherType.ipv6:
      return InternetHeader(frame, in: body) != nil
    case 0x0806, 0x88cc, LinkLayer.EtherType.mpls, LinkLayer.EtherType.pppoeSession: return true
    default: return false
    }
  }
}

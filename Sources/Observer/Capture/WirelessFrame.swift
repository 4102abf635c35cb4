import Wire

/// 802.11 frames (IEEE 802.11-2020 section 9.2), and the headers before them.
enum WirelessFrame {
  /// Finds the contents of an 802.11 frame, after any header that the capturing system added.
  static func content(_ frame: RawSpan, _ range: Range<Int>, _ type: LinkType, _ depth: Int)
    -> LinkLayer.Content
  {
    switch type {
    case .wirelessRadiotap: return radiotap(frame, range, depth)
    case .perPacketInformation: return perPacketInformation(frame, range, depth)
    case .wirelessPrism, .wirelessAVS:
      guard range.count >= 8 else { return .malformed }
      // AVS begins with a magic number in network byte order; Prism's length is in host byte order.
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

  /// Parses the radiotap.org header: version, length, and fields selected by bit masks.
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
      // An eight-byte time, aligned to eight bytes, may precede the flags.
      var offset = 4 + 4 * words
      if present & 1 != 0 { offset = (offset + 7) & ~7 + 8 }
      if offset < header.count { flags = frame.byte(at: header.lowerBound + offset) }
    }
    // The flag marks a bad checksum; the sender retransmits such a frame.
    guard flags & 0x40 == 0 else { return .malformed }
    var body = range.dropFirst(length)
    if flags & 0x10 != 0 { body = body.dropLast(4) }
    return data(frame, body, depth, isPadded: flags & 0x20 != 0)
  }

  /// Parses PPI: version, flags, length and the link type of the contents, in little-endian order.
  private static func perPacketInformation(
    _ frame: RawSpan, _ range: Range<Int>, _ depth: Int
  ) -> LinkLayer.Content {
    guard range.count >= 8, depth < 4 else { return .malformed }
    let length = Int(little16(frame, range.lowerBound + 2))
    guard length >= 8, length <= range.count else { return .malformed }
    let type = LinkType(rawValue: little16(frame, range.lowerBound + 4))
    return LinkLayer.content(of: frame, in: range.dropFirst(length), type, depth + 1)
  }

  /// Parses an 802.11 frame, which starts with its control field.
  ///
  /// - Parameter isPadded: whether the card padded the header to a multiple of four bytes.
  private static func data(
    _ frame: RawSpan, _ range: Range<Int>, _ depth: Int, isPadded: Bool = false
  ) -> LinkLayer.Content {
    guard range.count >= 2 else { return .malformed }
    let (kind, flags) = (frame.byte(at: range.lowerBound), frame.byte(at: range.lowerBound + 1))
    guard kind & 3 == 0 else { return .malformed }
    // Only data frames are parsed, excluding subtypes without data.
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
      // Cards that decrypt leave the protected bit set, and some leave the initialization vector (8
      // bytes in CCMP and TKIP).
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

  /// Parses several packets in one frame (A-MSDU, section 9.3.2.2), each aligned to four bytes.
  private static func aggregate(_ frame: RawSpan, _ range: Range<Int>, _ depth: Int)
    -> LinkLayer.Content
  {
    var packets: [LinkLayer.Content] = []
    var rest = range
    // An A-MSDU has at most 11,454 bytes.
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

/// Headers that capturing systems add to frames.
enum CaptureHeaders {
  /// Parses macOS's PKTAP header: its length, whether a packet follows, and the packet's link type,
  /// in host byte order.
  static func packetTap(
    _ frame: RawSpan, _ range: Range<Int>, _ type: LinkType, _ depth: Int
  ) -> LinkLayer.Content {
    // Older files use a number that is reserved for private use.
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

  /// Parses NFLOG: family, version and resource, then fields, one of which is the packet, in host
  /// byte order.
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
      // NFULA_PAYLOAD; the highest bits are flags.
      if order.uint16(frame, at: rest.lowerBound + 2) & 0x3fff == 9 {
        return rest.dropFirst(4).prefix(length - 4)
      }
      rest = rest.dropFirst((length + 3) & ~3)
    }
    return nil
  }
}

// MARK: - UnreadLayer

/// An unsupported layer, whose contents are unknown.
package enum UnreadLayer: Hashable, Sendable {
  case linkType(UInt16)
  case etherType(UInt16)
  /// A loopback interface's protocol family.
  case family(UInt32)
  /// 802.2 without an EtherType, for example spanning tree.
  case logicalLink
  case internetProtocol(UInt8)
  case pointToPoint(UInt16)
  case macSecurity
  case wirelessControl
  case wirelessEncryption
  case wirelessFragment
  case multiprotocolLabels
  /// Tunnels nested too deeply.
  case tooDeep

  /// Whether the layer may contain media, which the take then lacks; ARP, for example, cannot.
  package var mayHideMedia: Bool {
    switch self {
    case .linkType(let number): !Self.otherBuses.contains(number)
    case .etherType(let number): number == 0x894f || number == 0x8903 || number == 0x22f3
    case .family, .logicalLink, .wirelessControl: false
    case .internetProtocol(let number): Self.controlProtocols[number] == nil
    // Control protocols have numbers from 0x8000 on (RFC 1661 section 2).
    case .pointToPoint(let number): number < 0x8000
    case .macSecurity, .wirelessEncryption, .wirelessFragment, .multiprotocolLabels, .tooDeep: true
    }
  }

  /// Whether the protocol is known; random bytes rarely match a known number.
  var isNamed: Bool {
    switch self {
    case .etherType(let number): Self.etherTypes[number] != nil
    case .pointToPoint(let number): Self.pointToPointProtocols[number] != nil
    case .wirelessControl, .wirelessEncryption, .tooDeep: true
    default: false
    }
  }

  /// A phrase to follow a number of packets, such as `of link type 147`.
  package var words: String {
    switch self {
    case .linkType(let number): "of link type \(number)"
    case .etherType(let number):
      if let name = Self.etherTypes[number] {
        "of \(name)"
      } else {
        "of Ethernet type \(hex(number))"
      }
    case .family(let number): "of protocol family \(number)"
    case .logicalLink: "of 802.2 (spanning trees and the like)"
    case .internetProtocol(let number):
      if let name = Self.controlProtocols[number] ?? Self.closedProtocols[number] {
        "of \(name)"
      } else {
        "of IP protocol \(number)"
      }
    case .pointToPoint(let number):
      if let name = Self.pointToPointProtocols[number] {
        "of \(name)"
      } else {
        "of PPP protocol \(hex(number))"
      }
    case .macSecurity: "inside of encrypted MACsec"
    case .wirelessControl: "of 802.11 without data"
    case .wirelessEncryption: "inside of encrypted 802.11"
    case .wirelessFragment: "inside of fragments of 802.11"
    case .multiprotocolLabels: "inside of MPLS that carries neither IP nor Ethernet"
    case .tooDeep: "inside of more than \(CaptureReader.tunnelsMaximum) tunnels"
    }
  }

  private func hex(_ number: UInt16) -> String {
    let digits = String(number, radix: 16)
    return "0x" + String(repeating: "0", count: 4 - digits.count) + digits
  }

  /// USB, Bluetooth, 802.15.4, CAN, D-Bus, netlink and others, which do not carry IP.
  private static let otherBuses: Set<UInt16> = [
    186, 187, 189, 195, 201, 215, 220, 227, 230, 231, 249, 251, 252, 253, 254, 255, 256, 272, 283,
  ]

  private static let etherTypes: [UInt16: String] = [
    0x0806: "ARP", 0x8035: "RARP", 0x22f3: "TRILL", 0x8863: "PPPoE discovery",
    0x8809: "slow protocols (LACP)", 0x888e: "EAPOL", 0x88cc: "LLDP", 0x88f7: "PTP",
    0x8902: "CFM", 0x8903: "FabricPath", 0x894f: "NSH", 0x9000: "loop tests", 0x8137: "IPX",
    0x80f3: "AARP", 0x809b: "AppleTalk", 0x2000: "CDP",
  ]

  /// Protocols that do not carry media.
  private static let controlProtocols: [UInt8: String] = [
    1: "ICMP", 2: "IGMP", 46: "RSVP", 58: "ICMPv6", 59: "IPv6 without a next header", 88: "EIGRP",
    89: "OSPF", 103: "PIM", 112: "VRRP", 132: "SCTP",
  ]

  private static let closedProtocols: [UInt8: String] = [
    33: "DCCP", 47: "GRE that is empty or has routes", 50: "ESP (IPsec)", 108: "IPComp",
    115: "L2TP over IP", 136: "UDP-Lite",
  ]

  private static let pointToPointProtocols: [UInt16: String] = [
    0x002d: "PPP with compressed TCP headers", 0x002f: "PPP with compressed TCP headers",
    0x003d: "multilink PPP", 0x0053: "encrypted PPP", 0x00fb: "compressed PPP",
    0x00fd: "compressed PPP", 0x8021: "IPCP", 0x8057: "IPV6CP", 0x80fd: "CCP", 0xc021: "LCP",
    0xc023: "PAP", 0xc025: "LQR", 0xc223: "CHAP",
  ]
}

/// Counts packets in unsupported layers.
package struct UnreadLayers: Hashable, Sendable {
  /// Each layer with its number of packets, in order of first appearance.
  package private(set) var counts: [(layer: UnreadLayer, packets: UInt64)] = []
  /// Packets in layers that are not counted separately: a damaged capture may have 65,536 different
  /// layers.
  package private(set) var further: UInt64 = 0

  /// The maximum number of layers that are counted separately.
  private static let layersMaximum = 32

  mutating func count(_ layer: UnreadLayer) {
    if let known = counts.firstIndex(where: { $0.layer == layer }) {
      counts[known].packets += 1
    } else if counts.count < Self.layersMaximum {
      counts.append((layer, 1))
    } else {
      further += 1
    }
  }

  package static func == (left: UnreadLayers, right: UnreadLayers) -> Bool {
    left.further == right.further && left.counts.elementsEqual(right.counts) { $0 == $1 }
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(further)
    for count in counts {
      hasher.combine(count.layer)
      hasher.combine(count.packets)
    }
  }

  /// The number of packets that may contain media.
  package var hidingMedia: UInt64 {
    counts.reduce(0) { $1.layer.mayHideMedia ? $0 + $1.packets : $0 }
  }

  /// Returns a list such as `40 packets inside of encrypted MACsec, 12 packets of link type 147`,
  /// most packets first; empty if there are none.
  ///
  /// - Parameter hidingMedia: whether to list only layers that may contain media.
  package func words(hidingMedia: Bool = false) -> String {
    var parts = counts.filter { !hidingMedia || $0.layer.mayHideMedia }
      .sorted { $0.packets > $1.packets }
      .map { Self.packets($0.packets) + " " + $0.layer.words }
    if further > 0, !hidingMedia { parts.append(Self.packets(further) + " of further kinds") }
    return parts.joined(separator: ", ")
  }

  private static func packets(_ count: UInt64) -> String {
    count == 1 ? "1 packet" : "\(count) packets"
  }
}

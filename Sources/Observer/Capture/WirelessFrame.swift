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

// MARK: - UnreadLayer

/// A layer that is not opened: what is inside of it is unknown.
package enum UnreadLayer: Hashable, Sendable {
  case linkType(UInt16)
  case etherType(UInt16)
  /// A protocol family of a loopback.
  case family(UInt32)
  /// 802.2 without an EtherType: spanning trees and the like.
  case logicalLink
  case internetProtocol(UInt8)
  case pointToPoint(UInt16)
  case macSecurity
  case wirelessControl
  case wirelessEncryption
  case wirelessFragment
  case multiprotocolLabels
  /// More tunnels in each other than are opened.
  case tooDeep

  /// Whether media may be inside, so that not to open it weakens an answer; ARP has none.
  package var mayHideMedia: Bool {
    switch self {
    case .linkType(let number): !Self.otherBuses.contains(number)
    case .etherType(let number): number == 0x894f || number == 0x8903 || number == 0x22f3
    case .family, .logicalLink, .wirelessControl: false
    case .internetProtocol(let number): Self.controlProtocols[number] == nil
    // Control protocols have the numbers from 0x8000 on (RFC 1661 section 2).
    case .pointToPoint(let number): number < 0x8000
    case .macSecurity, .wirelessEncryption, .wirelessFragment, .multiprotocolLabels, .tooDeep: true
    }
  }

  /// Whether it is known by a name, which random bytes seldom come to.
  var isNamed: Bool {
    switch self {
    case .etherType(let number): Self.etherTypes[number] != nil
    case .pointToPoint(let number): Self.pointToPointProtocols[number] != nil
    case .wirelessControl, .wirelessEncryption, .tooDeep: true
    default: false
    }
  }

  /// What stands behind a number of packets: `of link type 147`.
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

  /// USB, Bluetooth, 802.15.4, CAN, D-Bus, netlink, ...: no networks that carry IP.
  private static let otherBuses: Set<UInt16> = [
    186, 187, 189, 195, 201, 215, 220, 227, 230, 231, 249, 251, 252, 253, 254, 255, 256, 272, 283,
  ]

  private static let etherTypes: [UInt16: String] = [
    0x0806: "ARP", 0x8035: "RARP", 0x22f3: "TRILL", 0x8863: "PPPoE discovery",
    0x8809: "slow protocols (LACP)", 0x888e: "EAPOL", 0x88cc: "LLDP", 0x88f7: "PTP",
    0x8902: "CFM", 0x8903: "FabricPath", 0x894f: "NSH", 0x9000: "loop tests", 0x8137: "IPX",
    0x80f3: "AARP", 0x809b: "AppleTalk", 0x2000: "CDP",
  ]

  /// Protocols that carry nobody's media.
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

/// How many packets stand in layers that are not opened.
package struct UnreadLayers: Hashable, Sendable {
  /// Each layer with its packets, in the order in which they came.
  package private(set) var counts: [(layer: UnreadLayer, packets: UInt64)] = []
  /// Packets in further layers: a damaged capture may name 65,536 of them.
  package private(set) var further: UInt64 = 0

  /// How many layers are told apart.
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

  /// How many packets may hide media.
  package var hidingMedia: UInt64 {
    counts.reduce(0) { $1.layer.mayHideMedia ? $0 + $1.packets : $0 }
  }

  /// `40 packets inside of encrypted MACsec, 12 packets of link type 147`, most packets first;
  /// empty without any.
  ///
  /// - Parameter hidingMedia: whether only layers are named that may hide media.
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

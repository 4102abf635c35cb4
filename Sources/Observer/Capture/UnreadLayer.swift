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

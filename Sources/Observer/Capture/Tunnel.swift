import Wire

/// Tunnels: packets within IP packets or UDP datagrams.
enum Tunnel {
  /// The IP protocol numbers of tunnels.
  static let protocols: Set<UInt8> = [4, 41, 47, 94, 97, 137]

  /// Returns the contents of an IP payload whose protocol is a tunnel; nil for other protocols.
  static func content(of payload: RawSpan, protocol number: UInt8) -> LinkLayer.Content? {
    let range = 0..<payload.byteCount
    switch number {
    // IPv4 and IPv6 (RFC 2003, RFC 4213, RFC 2473), and an older number for IPv4.
    case 4, 41, 94: return .ip(range)
    case 47: return GenericRouting.content(payload, range)
    case 137: return LabelStack.content(payload, range, 1)
    // EtherIP: version 3, with all reserved bits zero (RFC 3378).
    case 97 where range.count >= 2 && payload.uint16(at: 0) == 0x3000:
      return LinkLayer.ethernet(payload, range.dropFirst(2), 1)
    default: return nil
    }
  }

  /// Returns the contents of a tunnel over UDP; nil for an ordinary datagram.
  ///
  /// A port proves nothing, since any media may use it: all fixed bits of the header must be right,
  /// and a valid packet must follow. These headers cannot be confused with STUN or RTP.
  static func content(of payload: RawSpan, from source: UInt16, to destination: UInt16)
    -> LinkLayer.Content?
  {
    guard payload.byteCount >= 20 else { return nil }
    let first = payload.byte(at: 0)
    switch destination {
    // The second port was Linux's first choice; the third is VXLAN-GPE's.
    case 4789, 8472, 4790, 48879: return NetworkOverlay.extensible(payload, isAnyPort: false)
    case 6081: return NetworkOverlay.generic(payload)
    case 2152: return MobileCore.content(payload)
    case 1701: return LayerTwoTunnel.content(payload)
    case 37008: return MirroredFrame.content(payload)
    case 6635: return checked(LabelStack.content(payload, 0..<payload.byteCount, 1), payload)
    default:
      // Responses may come from the well-known port and go to any other.
      if source == 2152 { return MobileCore.content(payload) }
      if source == 1701 { return LayerTwoTunnel.content(payload) }
      return first == 0x08 ? NetworkOverlay.extensible(payload, isAnyPort: true) : nil
    }
  }

  /// Returns the contents if they parse as the announced packet; nil otherwise.
  ///
  /// - Parameter isCertain: whether the checksum (IPv4) or the length (IPv6) must prove the packet.
  static func checked(
    _ content: LinkLayer.Content, _ payload: RawSpan, isCertain: Bool = false
  ) -> LinkLayer.Content? {
    switch content {
    case .ip(let range):
      let isPacket =
        isCertain
        ? InternetHeader.isCertain(payload, in: range)
        : InternetHeader(payload, in: range) != nil
      return isPacket ? content : nil
    case .several(let parts):
      return parts.allSatisfy { checked($0, payload, isCertain: isCertain) != nil } ? content : nil
    // A virtual network also carries other protocols, such as ARP.
    case .unread(let layer): return layer.isNamed && !isCertain ? content : nil
    case .malformed: return nil
    }
  }
}

/// GRE (RFC 2784, RFC 2890), including PPTP (RFC 2637) and mirrored ports (ERSPAN).
enum GenericRouting {
  static func content(_ payload: RawSpan, _ range: Range<Int>) -> LinkLayer.Content {
    guard range.count >= 4 else { return .malformed }
    let flags = payload.uint16(at: range.lowerBound)
    let type = payload.uint16(at: range.lowerBound + 2)
    let hasSequence = flags & 0x1000 != 0
    var length = 4
    switch flags & 7 {
    case 0:
      // Source routes are obsolete (RFC 1701).
      guard flags & 0x4000 == 0 else { return .unread(.internetProtocol(47)) }
      if flags & 0x8000 != 0 { length += 4 }
      if flags & 0x2000 != 0 { length += 4 }
      if hasSequence { length += 4 }
    case 1:
      // The payload length and call id are always present.
      length += 4
      if hasSequence { length += 4 }
      if flags & 0x0080 != 0 { length += 4 }
    default: return .unread(.internetProtocol(47))
    }
    guard range.count >= length else { return .malformed }
    let body = range.dropFirst(length)
    // A PPTP acknowledgement has no payload.
    if body.isEmpty { return .unread(.internetProtocol(47)) }
    switch type {
    case 0x88be: return mirrored(payload, body, hasHeader: hasSequence)
    case 0x22eb: return mirroredThird(payload, body)
    case 0...1500: return .unread(.etherType(type))
    default: return LinkLayer.content(of: payload, in: body, type: type, 1)
    }
  }

  /// Parses ERSPAN I, which has no header, or ERSPAN II, whose header has eight bytes; only ERSPAN
  /// II has a sequence number in the GRE header.
  private static func mirrored(_ payload: RawSpan, _ body: Range<Int>, hasHeader: Bool)
    -> LinkLayer.Content
  {
    LinkLayer.ethernet(payload, hasHeader ? body.dropFirst(8) : body, 1)
  }

  /// Parses ERSPAN III: twelve bytes with the frame type (Ethernet or IP), optionally followed by
  /// eight more.
  private static func mirroredThird(_ payload: RawSpan, _ body: Range<Int>) -> LinkLayer.Content {
    guard body.count >= 12 else { return .malformed }
    let kind = payload.uint16(at: body.lowerBound + 10)
    let rest = body.dropFirst(kind & 1 != 0 ? 20 : 12)
    return kind >> 10 & 0x1f == 2 ? .ip(rest) : LinkLayer.ethernet(payload, rest, 1)
  }
}

/// Parses virtual networks over UDP: VXLAN and GENEVE.
enum NetworkOverlay {
  /// Parses VXLAN (RFC 7348), including group policy and the generic extension
  /// (draft-ietf-nvo3-vxlan-gpe); nil if the payload is not VXLAN.
  static func extensible(_ payload: RawSpan, isAnyPort: Bool) -> LinkLayer.Content? {
    let range = 0..<payload.byteCount
    guard range.count >= 8, payload.byte(at: 7) == 0 else { return nil }
    let body = range.dropFirst(8)
    switch payload.byte(at: 0) {
    case 0x08 where payload.uint16(at: 1) == 0 && payload.byte(at: 3) == 0:
      return Tunnel.checked(LinkLayer.ethernet(payload, body, 1), payload, isCertain: isAnyPort)
    // The group id is in the third and fourth byte.
    case 0x88 where !isAnyPort && payload.byte(at: 1) & 0xb7 == 0:
      return Tunnel.checked(LinkLayer.ethernet(payload, body, 1), payload, isCertain: true)
    case 0x0c where !isAnyPort && payload.uint16(at: 1) == 0:
      switch payload.byte(at: 3) {
      case 1, 2: return Tunnel.checked(.ip(body), payload)
      case 3: return Tunnel.checked(LinkLayer.ethernet(payload, body, 1), payload)
      case 5: return Tunnel.checked(LabelStack.content(payload, body, 1), payload)
      default: return nil
      }
    default: return nil
    }
  }

  /// Parses GENEVE (RFC 8926), whose option length counts 32-bit words; nil if the payload is not
  /// GENEVE.
  static func generic(_ payload: RawSpan) -> LinkLayer.Content? {
    let range = 0..<payload.byteCount
    guard range.count >= 8, payload.byte(at: 0) & 0xc0 == 0, payload.byte(at: 1) & 0x3f == 0,
      payload.byte(at: 7) == 0
    else { return nil }
    let length = 8 + 4 * Int(payload.byte(at: 0) & 0x3f)
    let type = payload.uint16(at: 2)
    guard type > 1500, length < range.count else { return nil }
    return Tunnel.checked(
      LinkLayer.content(of: payload, in: range.dropFirst(length), type: type, 1), payload)
  }
}

/// GTP-U, which carries the packets of phones in mobile networks (3GPP TS 29.281 section 5.1).
enum MobileCore {
  private static let userPacket: UInt8 = 255
  private static let extensionsMaximum = 8

  static func content(_ payload: RawSpan) -> LinkLayer.Content? {
    let range = 0..<payload.byteCount
    // The header must have version 1 of GTP (not GTP') and no reserved bit set.
    guard range.count >= 8, payload.byte(at: 0) & 0xf8 == 0x30,
      payload.byte(at: 1) == userPacket
    else { return nil }
    let length = Int(payload.uint16(at: 2))
    guard length > 0 else { return nil }
    var body = range.dropFirst(8).prefix(length)
    if payload.byte(at: 0) & 7 != 0 {
      guard body.count >= 4 else { return nil }
      let hasExtensions = payload.byte(at: 0) & 4 != 0
      var next = hasExtensions ? payload.byte(at: body.lowerBound + 3) : 0
      body = body.dropFirst(4)
      var extensions = 0
      while next != 0 {
        guard let words = body.first.map({ Int(payload.byte(at: $0)) }), words > 0,
          body.count > 4 * words, extensions < extensionsMaximum
        else { return nil }
        next = payload.byte(at: body.lowerBound + 4 * words - 1)
        body = body.dropFirst(4 * words)
        extensions += 1
      }
    }
    if let packet = Tunnel.checked(.ip(body), payload) { return packet }
    // A session may carry Ethernet too (TS 23.501 section 5.6.10.2).
    return LabelStack.isEthernet(payload, body) ? LinkLayer.ethernet(payload, body, 1) : nil
  }
}

/// L2TP data (RFC 2661 section 3.1), which is PPP.
enum LayerTwoTunnel {
  static func content(_ payload: RawSpan) -> LinkLayer.Content? {
    let flags = payload.uint16(at: 0)
    // The version must be 2, no reserved bit may be set, and control messages are excluded.
    guard flags & 0x8000 == 0, flags & 0x34ff == 2 else { return nil }
    var length = 2
    var end = payload.byteCount
    if flags & 0x4000 != 0 {
      guard end >= 4 else { return nil }
      let stated = Int(payload.uint16(at: 2))
      guard stated >= 8 else { return nil }
      end = min(end, stated)
      length += 2
    }
    length += 4
    if flags & 0x0800 != 0 { length += 4 }
    if flags & 0x0200 != 0 {
      guard length + 2 <= end else { return nil }
      length += 2 + Int(payload.uint16(at: length))
    }
    guard length < end else { return nil }
    return Tunnel.checked(PointToPoint.content(payload, length..<end, 1), payload)
  }
}

/// Frames with tags from MikroTik's sniffer (TZSP).
enum MirroredFrame {
  static func content(_ payload: RawSpan) -> LinkLayer.Content? {
    // The header must have version 1 and type 0, a received frame.
    guard payload.uint16(at: 0) == 0x0100 else { return nil }
    let links: [UInt16: LinkType] = [
      1: .ethernet, 18: .wireless, 119: .wirelessPrism, 127: .wirelessAVS,
    ]
    guard let link = links[payload.uint16(at: 2)] else { return nil }
    var place = 4
    while place < payload.byteCount {
      switch payload.byte(at: place) {
      case 0: place += 1
      case 1:
        return Tunnel.checked(
          LinkLayer.content(of: payload, in: place + 1..<payload.byteCount, link, 1), payload)
      default:
        guard place + 1 < payload.byteCount else { return nil }
        place += 2 + Int(payload.byte(at: place + 1))
      }
    }
    return nil
  }
}

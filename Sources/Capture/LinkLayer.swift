import Wire

/// What stands in front of IP in a frame.
enum LinkLayer {
  /// What a frame carries.
  enum Content {
    case ip(Range<Int>)
    /// Another protocol than IP.
    case other
    case malformed
    case unknownLink
  }

  private static let ipv4: UInt16 = 0x0800
  private static let ipv6: UInt16 = 0x86dd
  /// Tags of virtual networks: 802.1Q, 802.1ad ("QinQ"), and what stood for it before.
  private static let tags: [UInt16] = [0x8100, 0x88a8, 0x9100]
  /// How many tags a frame may have.
  private static let tagsMaximum = 4

  /// Finds the IP packet in a frame; `frame` is without its checksum.
  static func content(of frame: RawSpan, _ type: LinkType) -> Content {
    switch type {
    case .ethernet: protocolled(frame, typeAt: 12, bodyAt: 14)
    case .linuxCooked: protocolled(frame, typeAt: 14, bodyAt: 16)
    case .linuxCooked2: protocolled(frame, typeAt: 0, bodyAt: 20)
    case .raw, .rawBSD, .rawOpenBSD, .ipv4, .ipv6: .ip(0..<frame.byteCount)
    case .null, .loop: loopback(frame)
    default: .unknownLink
    }
  }

  private static func protocolled(_ frame: RawSpan, typeAt: Int, bodyAt: Int) -> Content {
    guard frame.byteCount >= bodyAt else { return .malformed }
    var type = frame.uint16(at: typeAt)
    var body = bodyAt
    for _ in 0..<tagsMaximum where tags.contains(type) {
      guard frame.byteCount >= body + 4 else { return .malformed }
      type = frame.uint16(at: body + 2)
      body += 4
    }
    return type == ipv4 || type == ipv6 ? .ip(body..<frame.byteCount) : .other
  }

  /// The family's number differs from system to system, as does its byte order; all are small, and
  /// the packet itself says which version it is.
  private static func loopback(_ frame: RawSpan) -> Content {
    guard frame.byteCount >= 4 else { return .malformed }
    let value = frame.uint32(at: 0)
    let family = value > 0xffff ? value.byteSwapped : value
    // AF_INET is 2 everywhere; AF_INET6 is 10, 23, 24, 28 or 30.
    return [2, 10, 23, 24, 28, 30].contains(family) ? .ip(4..<frame.byteCount) : .other
  }
}

/// An IPv4 or IPv6 address.
public struct IPAddress: Hashable, Sendable {
  /// The 16 bytes of the address in network order; an IPv4 address is in the last four.
  private let high: UInt64
  private let low: UInt64
  /// Whether this is an IPv4 rather than an IPv6 address.
  public let isIPv4: Bool

  /// Creates an IPv4 address from its four bytes as one number, the first byte highest.
  public init(ipv4 value: UInt32) {
    high = 0
    low = UInt64(value)
    isIPv4 = true
  }

  /// Creates an IPv6 address from its two halves.
  public init(ipv6High high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
    isIPv4 = false
  }

  /// Creates an address from its 4 or 16 bytes in network order; nil for any other number of bytes.
  public init?(bytes: [UInt8]) {
    func number(_ part: ArraySlice<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
    switch bytes.count {
    case 4: self.init(ipv4: UInt32(number(bytes[...])))
    case 16: self.init(ipv6High: number(bytes[..<8]), low: number(bytes[8...]))
    default: return nil
    }
  }

  /// The 4 or 16 bytes in network order.
  public var bytes: [UInt8] {
    let all = [high, low].flatMap { half in
      (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * UInt64($0))) }
    }
    return isIPv4 ? Array(all[12...]) : all
  }

  /// The address as two words; an IPv4 address is in the low half of the second.
  package var words: (high: UInt64, low: UInt64) { (high, low) }

  /// Whether this is a loopback address (127.0.0.0/8 or ::1).
  public var isLoopback: Bool { isIPv4 ? low >> 24 == 127 : high == 0 && low == 1 }

  /// Whether this is a link-local address (169.254.0.0/16 or fe80::/10).
  public var isLinkLocal: Bool { isIPv4 ? low >> 16 == 0xa9fe : high >> 54 == 0x3fa }

  /// Whether this is the unspecified address, 0.0.0.0 or ::.
  public var isUnspecified: Bool { high == 0 && low == 0 }
}

extension IPAddress: CustomStringConvertible {
  /// The address as text: dotted decimal, or the canonical IPv6 text of RFC 5952.
  public var description: String {
    if isIPv4 { return bytes.map { String($0) }.joined(separator: ".") }
    let groups = [high, low].flatMap { half in
      (0..<4).map { UInt16(truncatingIfNeeded: half >> (48 - 16 * UInt64($0))) }
    }
    var best = 0..<0
    var start = 0
    while start < 8 {
      var end = start
      while end < 8, groups[end] == 0 { end += 1 }
      if end - start > best.count, end - start > 1 { best = start..<end }
      start = max(end, start + 1)
    }
    func text(_ range: Range<Int>) -> String {
      groups[range].map { String($0, radix: 16) }.joined(separator: ":")
    }
    if best.isEmpty { return text(0..<8) }
    return text(0..<best.lowerBound) + "::" + text(best.upperBound..<8)
  }

  /// Parses dotted decimal or IPv6 text; nil for anything else, including addresses with a zone
  /// after `%`.
  public init?(_ text: some StringProtocol) {
    if text.utf8.contains(UInt8(ascii: ":")) {
      guard let address = IPAddress.ipv6(Array(text.utf8)) else { return nil }
      self = address
    } else {
      guard let value = IPAddress.ipv4(text.utf8) else { return nil }
      self.init(ipv4: value)
    }
  }

  private static func ipv4(_ text: some Sequence<UInt8>) -> UInt32? {
    var value: UInt32 = 0
    var part: UInt32?
    var parts = 0
    for character in text {
      switch character {
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        let digit = UInt32(character - UInt8(ascii: "0"))
        part = (part ?? 0) * 10 + digit
        if part ?? 0 > 255 { return nil }
      case UInt8(ascii: "."):
        guard let byte = part, parts < 3 else { return nil }
        value = value << 8 | byte
        parts += 1
        part = nil
      default: return nil
      }
    }
    guard let byte = part, parts == 3 else { return nil }
    return value << 8 | byte
  }

  private static func ipv6(_ text: [UInt8]) -> IPAddress? {
    let colon = UInt8(ascii: ":")
    var front: [UInt16] = []
    var back: [UInt16] = []
    var compressed = false
    var index = 0
    if text.starts(with: [colon, colon]) {
      compressed = true
      index = 2
    }
    while index < text.count {
      let end = text[index...].firstIndex(of: colon) ?? text.count
      let part = text[index..<end]
      var groups: [UInt16] = []
      if part.contains(UInt8(ascii: ".")) {
        guard end == text.count, let value = ipv4(part) else { return nil }
        groups = [UInt16(value >> 16), UInt16(truncatingIfNeeded: value)]
      } else {
        guard (1...4).contains(part.count),
          part.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
          let group = UInt16(String(decoding: part, as: UTF8.self), radix: 16)
        else { return nil }
        groups = [group]
      }
      if compressed { back += groups } else { front += groups }
      if front.count + back.count > 8 { return nil }
      index = end + 1
      if end < text.count {
        if index == text.count { return nil }
        if text[index] == colon {
          if compressed { return nil }
          compressed = true
          index += 1
        }
      }
    }
    let missing = 8 - front.count - back.count
    guard compressed ? missing >= 1 : missing == 0 else { return nil }
    let groups = front + [UInt16](repeating: 0, count: missing) + back
    func half(_ range: Range<Int>) -> UInt64 { groups[range].reduce(0) { $0 << 16 | UInt64($1) } }
    return IPAddress(ipv6High: half(0..<4), low: half(4..<8))
  }
}

/// An IP address with a port: one end of a path.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
  /// The address without its port.
  public var ip: IPAddress
  /// The UDP or TCP port; 0 while none is assigned.
  public var port: UInt16

  /// Creates a socket address; port 0 means that none is assigned yet.
  public init(_ ip: IPAddress, port: UInt16) {
    self.ip = ip
    self.port = port
  }

  /// The address as text: `192.0.2.1:5000` or `[2001:db8::1]:5000`.
  public var description: String { ip.isIPv4 ? "\(ip):\(port)" : "[\(ip)]:\(port)" }

  /// Parses the form that `description` returns, except that an IPv6 address need not have
  /// brackets; nil for anything else.
  public init?(_ text: some StringProtocol) {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...])
    else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    guard let ip = IPAddress(host) else { return nil }
    self.init(ip, port: port)
  }
}

/// Transport protocol of a flow, by its IP protocol number.
package enum TransportProtocol: UInt8, Hashable, Sendable {
  case tcp = 6
  case udp = 17
}

/// The two ends of a flow and its transport protocol, in one direction.
package struct FiveTuple: Hashable, Sendable, CustomStringConvertible {
  package var transport: TransportProtocol
  package var source: SocketAddress
  package var destination: SocketAddress

  package init(
    _ transport: TransportProtocol = .udp, from source: SocketAddress, to destination: SocketAddress
  ) {
    self.transport = transport
    self.source = source
    self.destination = destination
  }

  /// The opposite direction.
  package var reversed: FiveTuple { FiveTuple(transport, from: destination, to: source) }

  /// The flow as text: `udp 192.0.2.1:5000 > 192.0.2.2:6000`.
  package var description: String { "\(transport) \(source) > \(destination)" }
}

/// The local address and remote end of a TCP connection, and how its messages are framed.
package struct StreamTarget: Hashable, Sendable {
  /// The kind of the remote end, which decides how messages are framed.
  package enum Kind: Hashable, Sendable {
    /// A TURN server (RFC 8656 section 12.5).
    case server
    /// A TURN server over TLS; the take contains the decrypted messages.
    case secureServer
    /// The remote peer (RFC 6544 section 3, RFC 4571).
    case peer
  }

  package var local: IPAddress
  package var remote: SocketAddress
  package var kind: Kind
  /// The name or address that the server's certificate must state.
  package var name: String

  package init(local: IPAddress, remote: SocketAddress, kind: Kind, name: String) {
    self.local = local
    self.remote = remote
    self.kind = kind
    self.name = name
  }
}

// MARK: - Datagram

/// A UDP datagram on a path, or a message on a connection.
package struct Datagram: Hashable, Sendable {
  package var local: SocketAddress
  package var remote: SocketAddress
  package var bytes: [UInt8]
  /// The DSCP value (RFC 2474), 0 to 63; 0 for best effort.
  ///
  /// Not stored in takes: it follows from the configuration and the calls.
  package var codePoint: UInt8
  /// A received datagram's ECN mark; nil for sent datagrams, and if the IP header was not read.
  package var ecn: ECNMark?

  package init(
    local: SocketAddress, remote: SocketAddress, bytes: [UInt8], codePoint: UInt8 = 0,
    ecn: ECNMark? = nil
  ) {
    self.local = local
    self.remote = remote
    self.bytes = bytes
    self.codePoint = codePoint
    self.ecn = ecn
  }
}

/// The ECN field of an IP header (RFC 3168 section 5).
///
/// Holds any number that a file contains, so that a replay writes the same number again.
package struct ECNMark: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let notCapable = ECNMark(rawValue: 0)
  /// ECT(1), which senders of L4S use (RFC 9331 section 4).
  package static let ect1 = ECNMark(rawValue: 1)
  package static let ect0 = ECNMark(rawValue: 2)
  /// Congestion experienced: a router on the path marked the packet.
  package static let congestionExperienced = ECNMark(rawValue: 3)
}

/// Packets of a stream counted by ECN mark (W3C packetsReceivedWithEct1 and packetsReceivedWithCe).
package struct ECNCounts: Hashable, Sendable {
  package private(set) var ect1: UInt64 = 0
  package private(set) var congestionExperienced: UInt64 = 0

  package init() {}

  package mutating func count(_ mark: ECNMark) {
    switch mark {
    case .ect1: ect1 += 1
    case .congestionExperienced: congestionExperienced += 1
    default: break
    }
  }
}

extension ECNCounts? {
  /// Counts a packet if its mark is known; the first such packet creates the counters.
  package mutating func count(_ mark: ECNMark?) {
    guard let mark else { return }
    var counts = self ?? ECNCounts()
    counts.count(mark)
    self = counts
  }
}

/// The protocol of a datagram on a shared transport, by its first bytes (RFC 7983).
///
/// This is the only implementation of the rule: the stack uses it to demultiplex, and the observer
/// and the take use it to name packets.
package enum DatagramClass: Hashable, Sendable {
  case stun
  case dtls
  case rtp
  case rtcp
  /// A TURN channel message (RFC 8656 section 12.4).
  case channelData
  /// ZRTP or unknown.
  case other

  /// Classifies a datagram, as `other` if it has fewer than two bytes.
  @inlinable
  package init(_ bytes: RawSpan) {
    guard bytes.byteCount >= 2 else {
      self = .other
      return
    }
    self.init(first: bytes.byte(at: 0), second: bytes.byte(at: 1))
  }

  /// Classifies by the first two bytes; the payload type separates RTP from RTCP (RFC 5761 section
  /// 4).
  @inlinable
  package init(first: UInt8, second: UInt8) {
    switch first {
    case 0...3: self = .stun
    case 20...63: self = .dtls
    case 64...79: self = .channelData
    case 128...191: self = (64...95).contains(second & 0x7f) ? .rtcp : .rtp
    default: self = .other
    }
  }
}

/// The kind of a track, an m-section or a codec.
public enum MediaKind: String, Hashable, Sendable, Codable {
  case audio
  case video
}

import Wire

/// The header of an IPv4 packet (RFC 791), or of an IPv6 packet with its extensions (RFC 8200).
struct InternetHeader {
  static let tcp: UInt8 = 6
  static let udp: UInt8 = 17

  var source: IPAddress
  var destination: IPAddress
  /// What routers said of congestion (RFC 3168 section 5).
  var ecn: ECNMark
  /// What follows: TCP, UDP, ...
  var transport: UInt8
  /// Where it stands in the bytes that were read; it ends early when the capture cut it off.
  var payload: Range<Int>
  /// How many bytes the capture has less than the header says.
  var missing = 0
  /// The identification: 16 bits in IPv4, 32 in fragments of IPv6, else 0.
  var identification: UInt32 = 0
  /// Where the payload belongs in the whole packet, in bytes.
  var fragmentOffset = 0
  var hasMoreFragments = false

  var isTruncated: Bool { missing > 0 }

  var isFragment: Bool { hasMoreFragments || fragmentOffset > 0 }

  /// How many extension headers are walked through; more are no honest packet.
  private static let extensionsMaximum = 16

  /// Reads a packet; nil when its header contradicts itself or is cut off.
  init?(_ bytes: RawSpan, in range: Range<Int>) {
    guard let first = range.first else { return nil }
    switch bytes.byte(at: first) >> 4 {
    case 4: self.init(ipv4: bytes, in: range)
    case 6: self.init(ipv6: bytes, in: range)
    default: return nil
    }
  }

  private init?(ipv4 bytes: RawSpan, in range: Range<Int>) {
    let start = range.lowerBound
    guard range.count >= 20 else { return nil }
    let headerLength = Int(bytes.byte(at: start) & 15) * 4
    guard headerLength >= 20, headerLength <= range.count else { return nil }
    // Segmentation offload may leave the length empty: then the frame tells it.
    let stated = Int(bytes.uint16(at: start + 2))
    let length = stated == 0 ? range.count : stated
    guard length >= headerLength else { return nil }
    missing = max(0, length - range.count)
    // What follows is padding of the link.
    payload = start + headerLength..<start + min(length, range.count)
    identification = UInt32(bytes.uint16(at: start + 4))
    let fragment = bytes.uint16(at: start + 6)
    hasMoreFragments = fragment & 0x2000 != 0
    fragmentOffset = Int(fragment & 0x1fff) * 8
    transport = bytes.byte(at: start + 9)
    ecn = ECNMark(rawValue: bytes.byte(at: start + 1) & 3)
    source = IPAddress(ipv4: bytes.uint32(at: start + 12))
    destination = IPAddress(ipv4: bytes.uint32(at: start + 16))
    // An authentication header may stand before what follows (RFC 4302).
    while transport == Self.authentication, fragmentOffset == 0, !hasMoreFragments {
      guard let length = extensionLength(bytes), length <= payload.count else { return nil }
      transport = bytes.byte(at: payload.lowerBound)
      payload = payload.dropFirst(length)
    }
  }

  /// Whether nothing but an IP packet looks so: its lengths fit, and in IPv4 its checksum.
  ///
  /// Ethernet pads frames of fewer than 60 bytes.
  static func isCertain(_ bytes: RawSpan, in range: Range<Int>) -> Bool {
    guard let header = InternetHeader(bytes, in: range) else { return false }
    guard header.source.isIPv4 else {
      let padding = range.upperBound - header.payload.upperBound
      return header.missing == 0 && (padding == 0 || range.count <= 60)
        && bytes.uint16(at: range.lowerBound + 4) > 0
    }
    let length = Int(bytes.byte(at: range.lowerBound) & 15) * 4
    var sum: UInt32 = 0
    for offset in stride(from: 0, to: length, by: 2) {
      sum += UInt32(bytes.uint16(at: range.lowerBound + offset))
    }
    return sum > 0 && (sum & 0xffff) + sum >> 16 == 0xffff
  }

  private init?(ipv6 bytes: RawSpan, in range: Range<Int>) {
    let start = range.lowerBound
    guard range.count >= 40 else { return nil }
    // 0 stands for a jumbogram, or for a length that offload left empty.
    let stated = Int(bytes.uint16(at: start + 4))
    let length = stated == 0 ? range.count - 40 : stated
    missing = max(0, length - (range.count - 40))
    let end = start + 40 + min(length, range.count - 40)
    source = IPAddress(
      ipv6High: bytes.uint64(at: start + 8), low: bytes.uint64(at: start + 16))
    destination = IPAddress(
      ipv6High: bytes.uint64(at: start + 24), low: bytes.uint64(at: start + 32))
    transport = bytes.byte(at: start + 6)
    // The traffic class lies across the first two bytes (RFC 8200 section 3).
    ecn = ECNMark(rawValue: bytes.byte(at: start + 1) >> 4 & 3)
    payload = start + 40..<end
    var extensions = 0
    while let length = extensionLength(bytes) {
      extensions += 1
      guard extensions <= Self.extensionsMaximum, length <= payload.count else { return nil }
      let place = payload.lowerBound
      if transport == Self.fragmentHeader {
        let fragment = bytes.uint16(at: place + 2)
        fragmentOffset = Int(fragment & 0xfff8)
        hasMoreFragments = fragment & 1 != 0
        identification = bytes.uint32(at: place + 4)
      }
      transport = bytes.byte(at: place)
      payload = place + length..<payload.upperBound
      // What follows in a later fragment is the middle of something.
      if fragmentOffset > 0 { break }
    }
  }

  private static let fragmentHeader: UInt8 = 44
  private static let authentication: UInt8 = 51

  /// How long the extension header at the front of the payload is; nil when there is none.
  private func extensionLength(_ bytes: RawSpan) -> Int? {
    switch transport {
    // Hop-by-hop options, routing, destination options, mobility, HIP, Shim6.
    case 0, 43, 60, 135, 139, 140:
      guard payload.count >= 8 else { return .max }
      return 8 + 8 * Int(bytes.byte(at: payload.lowerBound + 1))
    case Self.fragmentHeader: return payload.count >= 8 ? 8 : .max
    // The authentication header counts in words (RFC 4302 section 2.2).
    case Self.authentication:
      guard payload.count >= 8 else { return .max }
      return 8 + 4 * Int(bytes.byte(at: payload.lowerBound + 1))
    default: return nil
    }
  }
}

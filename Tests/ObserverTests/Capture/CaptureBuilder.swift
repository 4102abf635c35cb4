import Wire

/// Builds captures and their packets for tests.
struct CaptureBuilder {
  /// Whether the file is little-endian.
  var isLittle = true
  var bytes: [UInt8] = []

  mutating func uint16(_ value: UInt16) { number(UInt64(value), 2) }
  mutating func uint32(_ value: UInt32) { number(UInt64(value), 4) }

  private mutating func number(_ value: UInt64, _ width: Int) {
    let big = (0..<width).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (width - 1 - $0))) }
    bytes += isLittle ? big.reversed() : big
  }

  // MARK: pcap

  static func pcap(
    isLittle: Bool = true, nanoseconds: Bool = false, linkType: UInt32 = 1
  ) -> CaptureBuilder {
    var builder = CaptureBuilder(isLittle: isLittle)
    builder.uint32(nanoseconds ? 0xa1b2_3c4d : 0xa1b2_c3d4)
    builder.uint16(2)
    builder.uint16(4)
    builder.uint32(0)
    builder.uint32(0)
    builder.uint32(262_144)
    builder.uint32(linkType)
    return builder
  }

  mutating func record(
    _ frame: [UInt8], seconds: UInt32 = 1, fraction: UInt32 = 0, original: Int? = nil
  ) {
    uint32(seconds)
    uint32(fraction)
    uint32(UInt32(frame.count))
    uint32(UInt32(original ?? frame.count))
    bytes += frame
  }

  // MARK: pcapng

  mutating func block(_ type: UInt32, _ body: (inout CaptureBuilder) -> Void) {
    var inner = CaptureBuilder(isLittle: isLittle)
    body(&inner)
    while inner.bytes.count % 4 != 0 { inner.bytes.append(0) }
    uint32(type)
    uint32(UInt32(inner.bytes.count + 12))
    bytes += inner.bytes
    uint32(UInt32(inner.bytes.count + 12))
  }

  mutating func option(_ code: UInt16, _ value: [UInt8]) {
    uint16(code)
    uint16(UInt16(value.count))
    bytes += value
    while bytes.count % 4 != 0 { bytes.append(0) }
  }

  mutating func section() {
    block(0x0a0d_0d0a) {
      $0.uint32(0x1a2b_3c4d)
      $0.uint16(1)
      $0.uint16(0)
      $0.uint32(.max)
      $0.uint32(.max)
    }
  }

  mutating func interface(
    _ linkType: UInt16, snapLength: UInt32 = 0, _ options: (inout CaptureBuilder) -> Void = { _ in }
  ) {
    block(1) {
      $0.uint16(linkType)
      $0.uint16(0)
      $0.uint32(snapLength)
      options(&$0)
    }
  }

  mutating func enhancedPacket(
    _ frame: [UInt8], interface: UInt32 = 0, ticks: UInt64 = 0,
    _ options: (inout CaptureBuilder) -> Void = { _ in }
  ) {
    block(6) {
      $0.uint32(interface)
      $0.uint32(UInt32(ticks >> 32))
      $0.uint32(UInt32(truncatingIfNeeded: ticks))
      $0.uint32(UInt32(frame.count))
      $0.uint32(UInt32(frame.count))
      $0.bytes += frame
      while $0.bytes.count % 4 != 0 { $0.bytes.append(0) }
      options(&$0)
    }
  }
}

/// Makes packets, from the payload outwards.
enum Packets {
  static func big(_ value: Int, _ width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * (width - 1 - $0))) }
  }

  private static func join(_ parts: [[UInt8]]) -> [UInt8] { Array(parts.joined()) }

  static func udp(_ payload: [UInt8], from: Int = 1000, to: Int = 2000, length: Int? = nil)
    -> [UInt8]
  {
    join([big(from, 2), big(to, 2), big(length ?? payload.count + 8, 2), [0, 0], payload])
  }

  static func tcp(_ payload: [UInt8], sequence: UInt32, flags: UInt8 = 0x10) -> [UInt8] {
    join([
      big(1000, 2), big(2000, 2), big(Int(sequence), 4), big(0, 4), [0x50, flags, 1, 0],
      [0, 0, 0, 0], payload,
    ])
  }

  static func ipv4(
    _ payload: [UInt8], transport: UInt8 = 17, identification: Int = 0, fragment: Int = 0,
    options: [UInt8] = [], length: Int? = nil, hops: UInt8 = 64, network: UInt8 = 2
  ) -> [UInt8] {
    let head = 20 + options.count
    var header = join([
      [0x40 | UInt8(head / 4), 0], big(length ?? head + payload.count, 2),
      big(identification, 2), big(fragment, 2), [hops, transport, 0, 0],
      [192, 0, network, 1], [192, 0, network, 2], options,
    ])
    var sum = stride(from: 0, to: head, by: 2).reduce(0) {
      $0 + Int(header[$1]) << 8 + Int(header[$1 + 1])
    }
    while sum > 0xffff { sum = sum & 0xffff + sum >> 16 }
    header.replaceSubrange(10..<12, with: big(~sum & 0xffff, 2))
    return header + payload
  }

  static func ipv6(_ payload: [UInt8], next: UInt8 = 17) -> [UInt8] {
    let prefix: [UInt8] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    return join([
      [0x60, 0, 0, 0], big(payload.count, 2), [next, 64], prefix, [1], prefix, [2], payload,
    ])
  }

  static func ethernet(_ payload: [UInt8], type: Int = 0x0800, tags: [Int] = []) -> [UInt8] {
    var frame = [UInt8](repeating: 2, count: 12)
    for tag in tags {
      frame += big(tag, 2)
      frame += [0, 5]
    }
    frame += big(type, 2)
    return frame + payload
  }

  /// Makes an RTP packet whose payload depends on its sequence number.
  static func rtp(_ sequence: Int, ssrc: Int = 0x1234_5678, count: Int = 100) -> [UInt8] {
    join([
      [0x80, 96], big(sequence, 2), big(sequence * 960, 4), big(ssrc, 4),
      (0..<count).map { UInt8(truncatingIfNeeded: $0 * 7 + sequence) },
    ])
  }

  /// Makes an RTP packet with the given one-byte header extensions.
  static func rtp(_ sequence: Int, ssrc: Int, extensions: [UInt8], count: Int = 20) -> [UInt8] {
    let plain = rtp(sequence, ssrc: ssrc, count: count)
    return join([
      [0x90], Array(plain[1..<12]), [0xbe, 0xde], big(extensions.count / 4, 2), extensions,
      Array(plain[12...]),
    ])
  }

  private static func content(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 * 5 + 1) }
  }

  /// Makes an encrypted DTLS 1.2 record with `count` bytes of content.
  static func record(_ count: Int) -> [UInt8] {
    join([[23, 0xfe, 0xfd], big(1 << 48 | 7, 8), big(count, 2), content(count)])
  }

  /// Makes an SRTCP sender report, with a tag after its index.
  static func protectedControl(tag: Int) -> [UInt8] {
    join([
      [0x80, 200], big(6, 2), big(0x0102_0304, 4), content(36), big(1 << 31 | 9, 4), content(tag),
    ])
  }

  /// Makes a Binding request with `count` bytes in place of attributes.
  static func message(_ count: Int) -> [UInt8] {
    join([[0, 1], big(count, 2), big(0x2112_a442, 4), content(12 + count)])
  }
}

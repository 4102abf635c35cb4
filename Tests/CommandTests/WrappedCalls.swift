import Foundation

/// A sample's call, rebuilt with one end behind a relay or with both ends over TCP.
struct WrappedCall {
  enum Way: String, CaseIterable, Sendable {
    case channels, indications, channelsOverTCP, tcp
  }

  /// A datagram of the call, and the end that sent it.
  struct Datagram {
    var at: Int64
    var isOfFirst: Bool
    var bytes: [UInt8]

    var isRTP: Bool {
      bytes.count >= 12 && (128..<192).contains(bytes[0]) && !(64...95).contains(bytes[1] & 0x7f)
    }
  }

  private typealias Address = (ip: [UInt8], port: Int)

  private static let client: Address = ([192, 168, 7, 7], 40_404)
  private static let server: Address = ([198, 51, 100, 9], 3478)
  private static let relayed: Address = ([198, 51, 100, 9], 50_000)

  /// The datagrams between the two ends, in capture order.
  private(set) var datagrams: [Datagram] = []
  private var ends: [Address] = []
  private var records: [UInt8] = []
  private var sequences: [UInt32] = [1, 1]

  /// Reads one call from a pcap of Ethernet or Linux cooked frames.
  init(sample path: String) throws {
    let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
    func little(_ place: Int) -> Int {
      (0..<4).reduce(0) { $0 | Int(bytes[place + $1]) << (8 * $1) }
    }
    func big(_ place: Int) -> Int { Int(bytes[place]) << 8 | Int(bytes[place + 1]) }
    let head = [1: 14, 113: 16, 276: 20, 101: 0][little(20)] ?? 0
    let unit: Int64 = little(0) == 0xa1b2_3c4d ? 1 : 1000
    var found: [(at: Int64, from: Address, to: Address, bytes: [UInt8])] = []
    var counts: [Int: Int] = [:]
    var place = 24
    while place + 16 <= bytes.count {
      let at = Int64(little(place)) * 1_000_000_000 + Int64(little(place + 4)) * unit
      let length = little(place + 8)
      let ip = place + 16 + head
      place += 16 + length
      guard bytes[ip] == 0x45, bytes[ip + 9] == 17 else { continue }
      let (source, destination) = (big(ip + 20), big(ip + 22))
      let payload = Array(bytes[(ip + 28)..<(ip + 20 + big(ip + 24))])
      if payload.count > 12, payload[0] >= 128 { counts[source * destination, default: 0] += 1 }
      found.append(
        (
          at, (Array(bytes[(ip + 12)..<(ip + 16)]), source),
          (Array(bytes[(ip + 16)..<(ip + 20)]), destination), payload
        ))
    }
    let call = counts.max { $0.value < $1.value }?.key
    for (at, from, to, bytes) in found where from.port * to.port == call {
      if ends.isEmpty { ends = from.port < to.port ? [from, to] : [to, from] }
      datagrams.append(
        Datagram(at: at, isOfFirst: from.port == ends[0].port, bytes: bytes))
    }
  }

  mutating func keep(_ isKept: (Int, Datagram) -> Bool) {
    datagrams = datagrams.enumerated().filter { isKept($0.offset, $0.element) }.map(\.element)
  }

  /// Returns how many RTP packets an end sends.
  func rtp(ofFirst isOfFirst: Bool) -> Int {
    datagrams.count { $0.isRTP && $0.isOfFirst == isOfFirst }
  }

  /// Returns a capture of the call, carried in the given way.
  mutating func capture(_ way: Way, hasAllocation: Bool = true) -> [UInt8] {
    records = Self.little([0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 262_144, 101])
    sequences = [1, 1]
    if hasAllocation, way != .tcp, let first = datagrams.first {
      for (number, message) in Self.allocation(peer: ends[1]).enumerated() {
        send(
          message, isOfFirst: number % 2 == 0, at: first.at - 100_000_000 + Int64(number) * 1000,
          way)
      }
    }
    for datagram in datagrams {
      send(wrapped(datagram, way), isOfFirst: datagram.isOfFirst, at: datagram.at, way)
    }
    return records
  }

  // MARK: Messages

  private static func message(_ type: Int, _ attributes: [UInt8]) -> [UInt8] {
    big(type) + big(attributes.count) + [0x21, 0x12, 0xa4, 0x42]
      + [UInt8](repeating: UInt8(type & 0xf), count: 12) + attributes
  }

  private static func attribute(_ type: Int, _ value: [UInt8]) -> [UInt8] {
    big(type) + big(value.count) + value + [UInt8](repeating: 0, count: -value.count & 3)
  }

  private static func address(_ type: Int, _ address: Address) -> [UInt8] {
    let masked = zip(address.ip, [0x21, 0x12, 0xa4, 0x42] as [UInt8]).map { $0 ^ $1 }
    return attribute(type, [0, 1] + big(address.port ^ 0x2112) + masked)
  }

  /// Makes an allocation and a channel binding, each with its response (RFC 8656 sections 7 and
  /// 12).
  private static func allocation(peer: Address) -> [[UInt8]] {
    [
      message(0x003, attribute(0x19, [17, 0, 0, 0])), message(0x103, address(0x16, relayed)),
      message(0x009, attribute(0x0c, [0x40, 3, 0, 0]) + address(0x12, peer)), message(0x109, []),
    ]
  }

  private func wrapped(_ datagram: Datagram, _ way: Way) -> [UInt8] {
    let bytes = datagram.bytes
    return switch way {
    case .tcp: Self.big(bytes.count) + bytes
    case .indications:
      Self.message(
        datagram.isOfFirst ? 0x016 : 0x017,
        Self.address(0x12, ends[1]) + Self.attribute(0x13, bytes))
    case .channels: [0x40, 3] + Self.big(bytes.count) + bytes
    case .channelsOverTCP:
      [0x40, 3] + Self.big(bytes.count) + bytes
        + [UInt8](repeating: 0, count: -bytes.count & 3)
    }
  }

  // MARK: Packets

  private mutating func send(_ payload: [UInt8], isOfFirst: Bool, at: Int64, _ way: Way) {
    let ways: [Address] = way == .tcp ? ends : [Self.client, Self.server]
    let (from, to) = isOfFirst ? (ways[0], ways[1]) : (ways[1], ways[0])
    let ports = Self.big(from.port) + Self.big(to.port)
    guard way == .tcp || way == .channelsOverTCP else {
      return record(ports + Self.big(8 + payload.count) + [0, 0] + payload, 17, from, to, at)
    }
    // Cut into segments of at most 1,200 bytes.
    var rest = payload[...]
    while !rest.isEmpty {
      let part = rest.prefix(1200)
      rest = rest.dropFirst(1200)
      let number = sequences[isOfFirst ? 0 : 1]
      sequences[isOfFirst ? 0 : 1] += UInt32(part.count)
      let head = Self.big(Int(number >> 16)) + Self.big(Int(number & 0xffff)) + [0, 0, 0, 0]
      record(ports + head + [0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0] + part, 6, from, to, at)
    }
  }

  private mutating func record(
    _ body: [UInt8], _ transport: UInt8, _ from: Address, _ to: Address, _ at: Int64
  ) {
    let packet =
      [0x45, 0] + Self.big(20 + body.count) + [0, 0, 0x40, 0, 64, transport, 0, 0] + from.ip + to.ip
      + body
    records += Self.little(
      [Int(at / 1_000_000_000), Int(at % 1_000_000_000), packet.count, packet.count])
    records += packet
  }

  private static func big(_ value: Int) -> [UInt8] {
    [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)]
  }

  private static func little(_ values: [Int]) -> [UInt8] {
    values.flatMap { value in (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
  }
}

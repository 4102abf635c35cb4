import Foundation
import Wire

/// A capture in parts, so that fields can be altered one by one.
struct CaptureSample {
  /// A frame, and the fields of its record in the file.
  struct Record {
    var seconds: Int64
    var nanoseconds: Int64
    var frame: [UInt8]
    /// The captured length that the record states if it is wrong; nil for the frame's real length.
    var statedLength: UInt32?
    var originalLength: UInt32?
    /// The number of dropped frames that the record's block reports, which only pcapng has.
    var dropped: UInt64?
  }

  var linkType: UInt16 = 1
  var records: [Record] = []
  /// The key log lines that decrypt the capture's packets.
  var keys = ""
  var comments: [String] = []

  /// The offset at which IP starts in a frame.
  var networkOffset: Int {
    switch linkType {
    case 0, 108: 4
    case 1: 14
    case 113: 16
    case 276: 20
    default: 0
    }
  }

  // MARK: Generated

  /// Returns datagrams between two hosts, a few milliseconds apart.
  static func of(
    _ datagrams: [(isFirst: Bool, bytes: [UInt8])], apart nanoseconds: Int64 = 5_000_000
  )
    -> CaptureSample
  {
    var sample = CaptureSample()
    for (number, datagram) in datagrams.enumerated() {
      let at = Int64(number) * nanoseconds
      sample.records.append(
        Record(
          seconds: 1_700_000_000 + at / 1_000_000_000, nanoseconds: at % 1_000_000_000,
          frame: Frame.udp(datagram.bytes, isFirst: datagram.isFirst, number: number)))
    }
    return sample
  }

  /// Appends one direction of a TCP connection, cut into segments.
  mutating func addStream(_ bytes: [UInt8], segment: Int) {
    var sequence: UInt32 = 0xffff_ff00
    let last = records.last.map { ($0.seconds, $0.nanoseconds) } ?? (1_700_000_000, 0)
    func add(_ payload: [UInt8], _ flags: UInt8) {
      records.append(
        Record(
          seconds: last.0, nanoseconds: last.1,
          frame: Frame.tcp(payload, sequence: sequence, flags: flags, number: records.count)))
    }
    add([], 2)
    sequence &+= 1
    for begin in stride(from: 0, to: bytes.count, by: segment) {
      let part = Array(bytes[begin..<min(begin + segment, bytes.count)])
      add(part, 0x18)
      sequence &+= UInt32(part.count)
    }
    add([], 0x11)
  }

  /// Appends a datagram as IP fragments of at most `count` bytes, rounded down to a multiple of
  /// eight.
  mutating func addFragments(_ datagram: [UInt8], each count: Int) {
    let last = records.last.map { ($0.seconds, $0.nanoseconds) } ?? (1_700_000_000, 0)
    let whole = Frame.udpHeader(datagram, isFirst: true) + datagram
    let step = max(8, count & ~7)
    for begin in stride(from: 0, to: whole.count, by: step) {
      let end = min(begin + step, whole.count)
      let fragment = begin / 8 | (end < whole.count ? 0x2000 : 0)
      records.append(
        Record(
          seconds: last.0, nanoseconds: last.1,
          frame: Frame.ethernet(
            Frame.ipv4(
              Array(whole[begin..<end]), transport: 17, isFirst: true, number: 77,
              fragment: fragment))))
    }
  }

  // MARK: Read from files

  /// Reads a pcap file in this machine's byte order; returns nil for any other.
  init?(pcap file: URL, keys: URL?) {
    guard let data = try? Data(contentsOf: file) else { return nil }
    let bytes = [UInt8](data)
    func number(_ place: Int) -> UInt32 {
      (0..<4).reduce(0) { $0 | UInt32(bytes[place + $1]) << UInt32(8 * $1) }
    }
    guard bytes.count > 24, number(0) == 0xa1b2_c3d4 || number(0) == 0xa1b2_3c4d else { return nil }
    let unit: Int64 = number(0) == 0xa1b2_c3d4 ? 1000 : 1
    linkType = UInt16(truncatingIfNeeded: number(20))
    var place = 24
    while place + 16 <= bytes.count {
      let count = Int(number(place + 8))
      guard place + 16 + count <= bytes.count else { break }
      records.append(
        Record(
          seconds: Int64(number(place)), nanoseconds: Int64(number(place + 4)) * unit,
          frame: Array(bytes[place + 16..<place + 16 + count])))
      place += 16 + count
    }
    self.keys = keys.flatMap { try? String(contentsOf: $0, encoding: .utf8) } ?? ""
  }

  init() {}
}

/// Makes frames between two hosts.
enum Frame {
  static func big(_ value: Int, _ width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * (width - 1 - $0))) }
  }

  static func ethernet(_ packet: [UInt8]) -> [UInt8] {
    [UInt8](repeating: 2, count: 12) + big(0x0800, 2) + packet
  }

  static func ipv4(
    _ payload: [UInt8], transport: UInt8, isFirst: Bool, number: Int, fragment: Int = 0
  ) -> [UInt8] {
    let ends: [[UInt8]] = [[192, 0, 2, 1], [192, 0, 2, 2]]
    return [0x45, 0] + big(20 + payload.count, 2) + big(number & 0xffff, 2) + big(fragment, 2)
      + [64, transport, 0, 0] + (isFirst ? ends[0] + ends[1] : ends[1] + ends[0]) + payload
  }

  static func udpHeader(_ payload: [UInt8], isFirst: Bool) -> [UInt8] {
    let ports = isFirst ? [5000, 6000] : [6000, 5000]
    return big(ports[0], 2) + big(ports[1], 2) + big(payload.count + 8, 2) + [0, 0]
  }

  static func udp(_ payload: [UInt8], isFirst: Bool, number: Int) -> [UInt8] {
    ethernet(
      ipv4(
        udpHeader(payload, isFirst: isFirst) + payload, transport: 17, isFirst: isFirst,
        number: number))
  }

  static func tcp(_ payload: [UInt8], sequence: UInt32, flags: UInt8, number: Int) -> [UInt8] {
    let header =
      big(7000, 2) + big(8080, 2) + big(Int(sequence), 4) + big(1, 4) + [0x50, flags, 1, 0]
      + [0, 0, 0, 0]
    return ethernet(ipv4(header + payload, transport: 6, isFirst: true, number: number))
  }
}

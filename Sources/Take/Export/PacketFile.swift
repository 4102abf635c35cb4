import Glibc
import Tape
package import Wire

/// A packet capture of the packets that peers sent and received.
struct PacketFile {
  private let file: CaptureFile
  private let startUnixNanoseconds: Int64
  /// The part of the take to write, in nanoseconds since the take began.
  private let window: ClosedRange<Int64>
  private var connections = TCPSegments()
  private(set) var count = 0

  /// Creates the file; `startUnixNanoseconds` is the Unix time at which the take began.
  init(
    _ path: String, _ present: WholeFile.Present, startUnixNanoseconds: Int64,
    window: ClosedRange<Int64> = .min ... .max
  ) throws(ExportFailure) {
    self.window = window
    file = try CaptureFile(path, present)
    self.startUnixNanoseconds = startUnixNanoseconds
  }

  /// Appends a datagram, unless it is too long for a UDP header, as long messages over TCP may be.
  mutating func datagram(
    from source: SocketAddress, to destination: SocketAddress, _ payload: [UInt8],
    ecn: ECNMark? = nil, atNanoseconds at: Int64
  ) {
    guard payload.count <= IPPacket.payloadMaximum else { return }
    append(
      IPPacket.datagram(
        from: source, to: destination, payload: payload, identification: identification,
        ecn: ecn ?? .notCapable), at)
  }

  /// Appends a part of a TCP stream, after `lost` missing bytes.
  mutating func segment(
    from source: SocketAddress, to destination: SocketAddress, _ payload: [UInt8], lost: Int,
    isEnd: Bool, atNanoseconds at: Int64
  ) {
    for part in connections.cut(payload, from: source, to: destination, lost: lost, isEnd: isEnd) {
      append(part.packet(identification: identification), at)
    }
  }

  /// Appends an SCTP packet without DTLS and UDP around it.
  mutating func association(
    from source: IPAddress, to destination: IPAddress, _ packet: [UInt8], atNanoseconds at: Int64
  ) {
    append(
      IPPacket.association(
        from: source, to: destination, packet: packet, identification: identification), at)
  }

  private var identification: UInt16 { UInt16(truncatingIfNeeded: count) }

  private mutating func append(_ packet: [UInt8], _ at: Int64) {
    guard window.contains(at) else { return }
    file.append(packet, unixNanoseconds: startUnixNanoseconds +| at)
    count += 1
  }

  func flush() throws(ExportFailure) { try file.flush() }

  /// Flushes the buffer and renames the file to its final name.
  func finish() throws(ExportFailure) { try file.finish() }
}

/// A packet capture with nanosecond times that begins at the IP headers (pcap,
/// draft-ietf-opsawg-pcap sections 4 and 5).
///
/// The file is created with the first packet, so that an export without packets leaves nothing
/// behind.
final class CaptureFile {
  private let path: String
  /// The file, which gets its name once it is complete; nil for standard output.
  private let whole: WholeFile?
  private var descriptor: Int32 = -1
  private var writer = ByteWriter()
  private var failure: ExportFailure?

  private static let nanosecondMagic: UInt32 = 0xa1b2_3c4d
  private static let longestPacket: UInt32 = 262_144
  private static let linkTypeRaw: UInt32 = 101
  private static let flushCount = 1 << 20

  /// Chooses the file, which only its owner may read.
  ///
  /// - Parameter path: the file; `-` is standard output.
  init(_ path: String, _ present: WholeFile.Present) throws(ExportFailure) {
    self.path = path
    if path == "-" {
      whole = nil
    } else {
      whole = try ExportFailure.writing { () throws(WholeFile.Failure) in
        try WholeFile(path, present)
      }
    }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  private func begin() throws(ExportFailure) {
    if let whole {
      descriptor = try ExportFailure.writing { () throws(WholeFile.Failure) in try whole.open() }
    } else {
      descriptor = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
      guard descriptor >= 0 else {
        throw .file(WholeFile.Failure(path: path, code: errno))
      }
    }
    // Version 2.4, UTC, no stated accuracy.
    word(Self.nanosecondMagic)
    word(4 << 16 | 2)
    writer.zeros(8)
    word(Self.longestPacket)
    word(Self.linkTypeRaw)
  }

  /// Writes a word in little-endian order; readers detect the order by the magic number.
  private func word(_ value: UInt32) { writer.uint32(value.byteSwapped) }

  /// Appends a packet with its Unix time; times before 1970 or after 2106, which the format cannot
  /// represent, are clamped.
  func append(_ packet: [UInt8], unixNanoseconds: Int64) {
    guard failure == nil else { return }
    do throws(ExportFailure) {
      if descriptor < 0 { try begin() }
      let time = max(0, unixNanoseconds)
      word(UInt32(clamping: time / 1_000_000_000))
      word(UInt32(clamping: time % 1_000_000_000))
      word(UInt32(clamping: packet.count))
      word(UInt32(clamping: packet.count))
      writer.append(packet)
      if writer.count >= Self.flushCount { try flush() }
    } catch {
      failure = error
    }
  }

  /// Writes the buffered bytes; throws the error of an earlier write, if there was one.
  func flush() throws(ExportFailure) {
    if let failure { throw failure }
    guard writer.count > 0 else { return }
    let bytes = writer.bytes
    writer = ByteWriter(capacity: Self.flushCount + Int(Self.longestPacket))
    let code = WholeFile.write(bytes, into: descriptor)
    guard code == 0 else { throw .file(WholeFile.Failure(path: path, code: code)) }
  }

  /// Flushes the buffer and renames the file to its final name.
  func finish() throws(ExportFailure) {
    try flush()
    guard descriptor >= 0, let whole else { return }
    let code = close(descriptor) == 0 ? 0 : errno
    descriptor = -1
    guard code == 0 else { throw .file(WholeFile.Failure(path: path, code: code)) }
    try ExportFailure.writing { () throws(WholeFile.Failure) in try whole.finish() }
  }
}

// MARK: - TCPSegments

/// Cuts the bytes sent over TCP connections into segments with consecutive sequence numbers.
///
/// The handshake of a connection is not part of a take: each direction begins at sequence number 1.
package struct TCPSegments {
  /// The next byte's sequence number in each direction.
  private var next: [FiveTuple: UInt32] = [:]

  package init() {}

  /// Returns the segments for a part of a stream: a single empty segment if the part has no bytes.
  ///
  /// - Parameters:
  ///   - lost: the number of bytes that are missing before this part.
  ///   - isEnd: whether the last segment ends this direction; a later connection between the same
  ///     addresses begins at 1 again.
  package mutating func cut(
    _ payload: [UInt8], from source: SocketAddress, to destination: SocketAddress, lost: Int,
    isEnd: Bool
  ) -> [Segment] {
    let tuple = FiveTuple(.tcp, from: source, to: destination)
    var sequence = (next[tuple] ?? 1) &+ UInt32(truncatingIfNeeded: lost)
    var rest = payload[...]
    var segments: [Segment] = []
    repeat {
      let part = rest.prefix(IPPacket.segmentMaximum)
      rest = rest.dropFirst(part.count)
      segments.append(
        Segment(
          source: source, destination: destination, payload: part, sequence: sequence,
          isEnd: isEnd && rest.isEmpty))
      sequence &+= UInt32(truncatingIfNeeded: part.count)
    } while !rest.isEmpty
    next[tuple] = isEnd ? nil : sequence
    return segments
  }

  /// A part of one direction of a connection.
  package struct Segment {
    fileprivate var source: SocketAddress
    fileprivate var destination: SocketAddress
    fileprivate var payload: ArraySlice<UInt8>
    fileprivate var sequence: UInt32
    fileprivate var isEnd: Bool

    /// Returns the segment as an IP packet.
    package func packet(identification: UInt16) -> [UInt8] {
      IPPacket.segment(
        from: source, to: destination, payload: payload, sequence: sequence, isEnd: isEnd,
        identification: identification)
    }
  }
}

// MARK: - IPPacket

/// Assembles IP packets; header fields that a take does not contain have fixed or computed values.
package enum IPPacket {
  /// The largest UDP payload over IPv4.
  package static let payloadMaximum = 65_507

  /// The largest part of a TCP stream that is written as one segment.
  fileprivate static let segmentMaximum = 65_000

  private static let udp: UInt8 = 17
  private static let tcp: UInt8 = 6
  private static let sctp: UInt8 = 132
  private static let hopLimit: UInt8 = 64

  /// Returns a datagram's bytes: IPv4 (RFC 791) or IPv6 (RFC 8200), UDP (RFC 768), payload.
  ///
  /// The addresses must be of the same family and the payload no longer than `payloadMaximum`.
  package static func datagram(
    from source: SocketAddress, to destination: SocketAddress, payload: [UInt8],
    identification: UInt16, ecn: ECNMark = .notCapable
  ) -> [UInt8] {
    let length = UInt16(clamping: 8 + payload.count)
    var writer = ByteWriter(capacity: 48 + payload.count)
    writer.append(header(udp, source.ip, destination.ip, length, identification, ecn))
    let begin = writer.count
    writer.uint16(source.port)
    writer.uint16(destination.port)
    writer.uint16(length)
    writer.uint16(0)
    writer.append(payload)
    // Zero means no checksum, so a sum of zero is sent as its complement.
    let checksum = checksum(udp, source.ip, destination.ip, writer.bytes[begin...])
    writer.patch(uint16: checksum == 0 ? 0xffff : checksum, at: begin + 6)
    return writer.bytes
  }

  /// Returns a TCP segment's bytes (RFC 9293 section 3.1) without an acknowledgement.
  ///
  /// The addresses must be of the same family and the payload no longer than `segmentMaximum`.
  fileprivate static func segment(
    from source: SocketAddress, to destination: SocketAddress, payload: ArraySlice<UInt8>,
    sequence: UInt32, isEnd: Bool, identification: UInt16
  ) -> [UInt8] {
    let length = UInt16(clamping: 20 + payload.count)
    var writer = ByteWriter(capacity: 60 + payload.count)
    writer.append(header(tcp, source.ip, destination.ip, length, identification))
    let begin = writer.count
    writer.uint16(source.port)
    writer.uint16(destination.port)
    writer.uint32(sequence)
    writer.uint32(0)
    // The header has five words. PSH is always set, and FIN in the last segment.
    writer.uint16(5 << 12 | 0x08 | (isEnd ? 0x01 : 0))
    writer.uint16(.max)
    writer.uint16(0)
    writer.uint16(0)
    writer.append(Array(payload))
    let checksum = checksum(tcp, source.ip, destination.ip, writer.bytes[begin...])
    writer.patch(uint16: checksum, at: begin + 16)
    return writer.bytes
  }

  /// Returns the checksum over a payload and its addresses' pseudo header (RFC 8200 section 8.1).
  private static func checksum(
    _ number: UInt8, _ source: IPAddress, _ destination: IPAddress, _ payload: ArraySlice<UInt8>
  ) -> UInt16 {
    var sum = UInt64(number) + UInt64(payload.count)
    add(source.bytes[...], to: &sum)
    add(destination.bytes[...], to: &sum)
    add(payload, to: &sum)
    return folded(sum)
  }

  /// Returns an IP packet that carries an SCTP packet directly, without UDP and DTLS (RFC 9260).
  static func association(
    from source: IPAddress, to destination: IPAddress, packet: [UInt8], identification: UInt16
  ) -> [UInt8] {
    header(sctp, source, destination, UInt16(clamping: packet.count), identification) + packet
  }

  private static func header(
    _ number: UInt8, _ source: IPAddress, _ destination: IPAddress, _ length: UInt16,
    _ identification: UInt16, _ ecn: ECNMark = .notCapable
  ) -> [UInt8] {
    var writer = ByteWriter(capacity: 40)
    let mark = ecn.rawValue & 3
    guard source.isIPv4 else {
      writer.uint32(6 << 28 | UInt32(mark) << 20)
      writer.uint16(length)
      writer.uint8(number)
      writer.uint8(hopLimit)
      writer.append(source.bytes)
      writer.append(destination.bytes)
      return writer.bytes
    }
    writer.uint16(0x4500 | UInt16(mark))
    writer.uint16(20 + length)
    writer.uint16(identification)
    writer.uint16(0x4000)  // not to be fragmented
    writer.uint8(hopLimit)
    writer.uint8(number)
    writer.uint16(0)
    writer.append(source.bytes)
    writer.append(destination.bytes)
    var sum: UInt64 = 0
    add(writer.bytes[...], to: &sum)
    writer.patch(uint16: folded(sum), at: 10)
    return writer.bytes
  }

  // MARK: Checksum (RFC 1071)

  private static func add(_ bytes: ArraySlice<UInt8>, to sum: inout UInt64) {
    var index = bytes.startIndex
    while index + 1 < bytes.endIndex {
      sum += UInt64(bytes[index]) << 8 | UInt64(bytes[index + 1])
      index += 2
    }
    if index < bytes.endIndex { sum += UInt64(bytes[index]) << 8 }
  }

  private static func folded(_ sum: UInt64) -> UInt16 {
    var sum = sum
    while sum > 0xffff { sum = sum >> 16 + sum & 0xffff }
    return ~UInt16(sum)
  }
}

import RTP
import Wire

/// RTP and RTCP stored without the network around them, as in server recordings and browser logs.
///
/// The packets become a capture between two artificial addresses, which is imported like any other.
package struct PacketRecording: Sendable {
  /// The file formats other than packet captures that contain RTP packets.
  package enum Format: String, Hashable, Sendable, CaseIterable {
    /// Janus recordings, including those from before 2015.
    case mjr
    /// rtptools files, and libwebrtc's files in that format.
    case rtpdump
    /// Browser and server log lines with packets in hexadecimal.
    case rtpdumptext
    /// libwebrtc event logs, versions 1 and 2, which have RTP headers only.
    case eventlog
    /// rtpproxy recordings without `-P`: packets, each preceded by its source address.
    case rtpproxy

    /// Detects a file's format; fails if the format is unknown.
    package init?(head: [UInt8]) {
      func begins(_ text: String) -> Bool { head.starts(with: Array(text.utf8)) }
      if begins("MJR0") || begins("MEETECHO") {
        self = .mjr
      } else if begins("#!rtpplay1.0") || begins("#!RTPencode1.0") {
        self = .rtpdump
      } else if EventLog.beginsLikeVersion1(head) || EventLog.beginsLikeVersion2(head) {
        self = .eventlog
      } else if ProxyRecord.areAt(theBeginOf: head) {
        self = .rtpproxy
      } else if String(decoding: head.prefix(64 << 10), as: UTF8.self).contains("RTP_DUMP")
        || PacketRecording.hasDumpLine(Array(head.prefix(64 << 10)))
      {
        self = .rtpdumptext
      } else {
        return nil
      }
    }

    /// The format as messages name it, such as `Janus recording`.
    package var words: String {
      switch self {
      case .mjr: "Janus recording"
      case .rtpdump: "rtptools file"
      case .rtpdumptext: "log with RTP_DUMP lines"
      case .eventlog: "RTC event log"
      case .rtpproxy: "rtpproxy recording"
      }
    }
  }

  struct Packet {
    var unixNanoseconds: Int64
    /// The offset of the packet in `bytes`, and its length there.
    var start: Int
    var count: UInt16
    /// The length on the wire, which exceeds `count` if only part of the packet was stored.
    var originalLength: UInt16
    /// The number of missing bytes that the capture fills with zeros.
    var fill: UInt16 = 0
    /// Whether the recording side sent the packet.
    var isOutgoing: Bool

    var place: Range<Int> { start..<start + Int(count) }
  }

  package let format: Format
  private var packets: [Packet] = []
  private var bytes: [UInt8] = []
  /// Descriptions derived from the stream properties in the file.
  package internal(set) var descriptions: [String] = []
  /// Sentences about what the file lacks.
  package var notes: [String] = []
  package var packetCount: Int { packets.count }

  /// The ends' names, by address.
  package var ends: [(address: String, name: String)] {
    let names =
      switch format {
      case .mjr: ("publisher", "recorder")
      case .rtpdump, .rtpproxy: ("recorder", "sender")
      case .rtpdumptext, .eventlog: ("this side", "other side")
      }
    return [(Self.text(Self.local), names.0), (Self.text(Self.remote), names.1)]
  }

  private static func text(_ address: [UInt8]) -> String {
    address.map(String.init).joined(separator: ".")
  }

  init(_ format: Format) { self.format = format }

  /// Parses a file; `notes` states what is damaged or missing.
  package init(_ format: Format, _ file: [UInt8]) {
    self.init(format)
    switch format {
    case .mjr: readJanus(file)
    case .rtpdump: readRTPDump(file)
    case .rtpdumptext: readDumpLines(file)
    case .eventlog: readEventLog(file)
    case .rtpproxy: readProxy(file)
    }
    sort()
    fill(atMost: (64 << 20) + 128 * file.count)
  }

  /// Pads incomplete packets to their stated length, but adds at most `limit` bytes, since a file
  /// may state any length.
  private mutating func fill(atMost limit: Int) {
    var rest = limit
    for place in packets.indices {
      let (stored, original) = (packets[place].count, packets[place].originalLength)
      guard original > stored, Int(original - stored) <= rest else { continue }
      packets[place].fill = original - stored
      rest -= Int(original - stored)
    }
  }

  /// Stores the whole file, so that packets in it need no copies.
  mutating func share(_ file: [UInt8]) { bytes = file }

  /// Adds a packet by its range in the shared file.
  mutating func add(
    shared place: Range<Int>, at unixNanoseconds: Int64, isOutgoing: Bool,
    originalLength: Int? = nil
  ) {
    guard place.count >= 4, place.count <= 65_000 else { return }
    packets.append(
      Packet(
        unixNanoseconds: unixNanoseconds, start: place.lowerBound, count: UInt16(place.count),
        originalLength: UInt16(max(place.count, min(originalLength ?? 0, 65_000))),
        isOutgoing: isOutgoing))
  }

  mutating func add(
    _ packet: some Collection<UInt8>, at unixNanoseconds: Int64, isOutgoing: Bool,
    originalLength: Int? = nil
  ) {
    guard packet.count >= 4, packet.count <= 65_000 else { return }
    let start = bytes.count
    bytes += packet
    packets.append(
      Packet(
        unixNanoseconds: unixNanoseconds, start: start, count: UInt16(packet.count),
        originalLength: UInt16(max(packet.count, min(originalLength ?? 0, 65_000))),
        isOutgoing: isOutgoing))
  }

  func firstBytes(_ count: Int) -> [UInt8]? {
    packets.first.map { Array(bytes[$0.place].prefix(count)) }
  }

  /// Examines the payloads and timestamps of the first packet's stream.
  func evidence() -> StreamEvidence {
    var evidence = StreamEvidence()
    guard let first = packets.first else { return evidence }
    for packet in packets.prefix(StreamEvidence.packetsMaximum) {
      evidence.add(
        Array(bytes[packet.place]),
        at: Instant(nanoseconds: packet.unixNanoseconds - first.unixNanoseconds))
    }
    return evidence
  }

  /// Removes all packets, to read them again in another way.
  mutating func removePackets() { packets = [] }

  /// Adds the packets, descriptions and notes of another file of the same recording.
  package mutating func merge(_ other: PacketRecording) {
    for packet in other.packets {
      add(
        other.bytes[packet.place], at: packet.unixNanoseconds, isOutgoing: packet.isOutgoing,
        originalLength: Int(packet.originalLength))
      packets[packets.count - 1].fill = packet.fill
    }
    descriptions = Self.joined(descriptions + other.descriptions)
    notes += other.notes.filter { !notes.contains($0) }
    sort()
  }

  private mutating func sort() {
    var isSorted = true
    for place in packets.indices.dropFirst()
    where packets[place].unixNanoseconds < packets[place - 1].unixNanoseconds { isSorted = false }
    guard !isSorted else { return }
    let order = packets.indices.sorted {
      (packets[$0].unixNanoseconds, $0) < (packets[$1].unixNanoseconds, $1)
    }
    packets = order.map { packets[$0] }
  }

  // MARK: Capture

  /// The artificial addresses, from a documentation range (RFC 5737).
  static let local: [UInt8] = [192, 0, 2, 1]
  static let remote: [UInt8] = [192, 0, 2, 2]
  static let port: UInt16 = 5004

  /// Writes the packets piece by piece, as a pcap file of raw IPv4 with nanosecond timestamps.
  package func capture(_ emit: ([UInt8]) throws -> Void) rethrows {
    var piece = ByteWriter()
    piece.uint32((0xa1b2_3c4d as UInt32).byteSwapped)
    piece.uint16((2 as UInt16).byteSwapped)
    piece.uint16((4 as UInt16).byteSwapped)
    piece.uint32((0 as UInt32).byteSwapped)
    piece.uint32((0 as UInt32).byteSwapped)
    piece.uint32((262_144 as UInt32).byteSwapped)
    piece.uint32((101 as UInt32).byteSwapped)
    for packet in packets {
      append(packet, to: &piece)
      if piece.count > 1 << 20 {
        try emit(piece.bytes)
        piece = ByteWriter()
      }
    }
    try emit(piece.bytes)
  }

  private func append(_ packet: Packet, to piece: inout ByteWriter) {
    let (source, destination) =
      packet.isOutgoing ? (Self.local, Self.remote) : (Self.remote, Self.local)
    let seconds = Int64(packet.unixNanoseconds / 1_000_000_000)
    let whole = max(0, min(seconds, Int64(UInt32.max)))
    piece.uint32(UInt32(whole).byteSwapped)
    piece.uint32(UInt32(max(0, packet.unixNanoseconds % 1_000_000_000)).byteSwapped)
    // Missing bytes are filled with zeros, so that sizes and rates match the wire. The announced
    // length is one byte more: this marks the packet as truncated, so the zeros are not decoded.
    let zeros = Int(packet.fill)
    let announced = Int(packet.count) + zeros + (zeros > 0 ? 1 : 0)
    let udpLength = UInt16(clamping: 8 + max(announced, zeros > 0 ? 0 : Int(packet.originalLength)))
    piece.uint32(UInt32(28 + Int(packet.count) + zeros).byteSwapped)
    piece.uint32(UInt32(20 + UInt32(udpLength)).byteSwapped)
    var ip: [UInt8] = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0] + source + destination
    let length = udpLength + 20
    (ip[2], ip[3]) = (UInt8(length >> 8), UInt8(length & 255))
    var sum: UInt32 = 0
    for place in stride(from: 0, to: 20, by: 2) {
      sum += UInt32(ip[place]) << 8 | UInt32(ip[place + 1])
    }
    sum = (sum & 0xffff) + (sum >> 16)
    let check = ~UInt16(truncatingIfNeeded: (sum & 0xffff) + (sum >> 16))
    (ip[10], ip[11]) = (UInt8(check >> 8), UInt8(check & 255))
    piece.append(ip)
    piece.uint16(Self.port)
    piece.uint16(Self.port)
    piece.uint16(udpLength)
    piece.uint16(0)
    piece.append(Array(bytes[packet.place]))
    piece.zeros(zeros)
  }

  /// Joins descriptions into a single description with all m-sections, because an end's later
  /// description would replace an earlier one.
  private static func joined(_ descriptions: [String]) -> [String] {
    guard descriptions.count > 1, let first = descriptions.first else { return descriptions }
    let sections = descriptions.flatMap { text in
      text.split(separator: "\r\nm=").dropFirst().map { "m=\($0.trimmed)\r\n" }
    }.map { section in
      section.split(separator: "\r\n").filter { !$0.hasPrefix("a=mid:") }
    }
    let mids = sections.indices.map(String.init)
    var lines = first.split(separator: "\r\n").prefix { !$0.hasPrefix("m=") }
      .filter { !$0.hasPrefix("a=group:") }.map(String.init)
    lines.append("a=group:BUNDLE " + mids.joined(separator: " "))
    for (mid, section) in zip(mids, sections) {
      lines += section.map(String.init) + ["a=mid:\(mid)"]
    }
    return [lines.joined(separator: "\r\n") + "\r\n"]
  }

  /// Returns a session description of one stream, built from what the file states.
  static func description(
    kind: String, payloadType: UInt8, codec: String, format: String?, ssrc: UInt32?,
    extensions: [(id: String, uri: String)]
  ) -> String {
    let address = text(local)
    let clock = ["opus": "48000/2", "pcmu": "8000", "pcma": "8000", "g722": "8000"][codec]
    var lines = [
      "v=0", "o=- 0 0 IN IP4 \(address)", "s=-", "t=0 0",
      "m=\(kind) \(port) RTP/AVP \(payloadType)", "c=IN IP4 \(address)",
      "a=rtpmap:\(payloadType) \(codec)/\(clock ?? (kind == "audio" ? "48000" : "90000"))",
      "a=sendonly",
    ]
    if let format { lines.append("a=fmtp:\(payloadType) \(format)") }
    lines += extensions.map { "a=extmap:\($0.id) \($0.uri)" }
    if let ssrc { lines.append("a=ssrc:\(ssrc) cname:recording") }
    return lines.joined(separator: "\r\n") + "\r\n"
  }
}

// MARK: - StreamEvidence

/// Determines from a recorded stream's packets whether the file describes the stream correctly.
struct StreamEvidence {
  /// The maximum number of packets to examine; that many suffice for any judgement.
  static let packetsMaximum = 2000

  private var shapes = PayloadShapes()
  private var clock = StreamClock()
  private var ssrc: UInt32?

  mutating func add(_ packet: [UInt8], at time: Instant) {
    // The second byte of RTCP, read as RTP, is a payload type from 64 to 95 (RFC 5761 section 4).
    guard let header = try? RTPHeader(parsing: packet.span.bytes),
      !(64..<96).contains(header.payloadType),
      header.ssrc == ssrc ?? header.ssrc
    else { return }
    ssrc = header.ssrc
    shapes.add(header, packet.span.bytes, clock.add(header, at: time))
  }

  /// If the packets contradict what the file states, returns the stream's actual kind, and its
  /// codec if the payloads reveal it; otherwise nil.
  func contradiction(of kind: MediaKind?, _ codec: String?) -> (kind: MediaKind, codec: String?)? {
    if let shown = shapes.codec(isVideo: clock.isVideo), shown != "red" {
      let shownKind = StaticPayloadTypes.kind(of: shown) ?? .audio
      if shownKind != kind { return (shownKind, shown) }
      // For video, only a key frame proves that the codec differs from the stated one.
      return shown != codec && shown == shapes.startCode ? (shownKind, shown) : nil
    }
    guard let rate = clock.rate else { return nil }
    let shownKind: MediaKind = rate == 90_000 ? .video : .audio
    return shownKind == kind ? nil : (shownKind, nil)
  }
}

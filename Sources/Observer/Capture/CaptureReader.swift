package import Wire

/// The location of an event's bytes, valid until the reader continues.
package enum PayloadPlace: Hashable, Sendable {
  /// Bytes of the file.
  case file(Range<Int>)
  /// Bytes reassembled from several frames.
  case assembled(Range<Int>)

  package var count: Int {
    switch self {
    case .file(let range), .assembled(let range): range.count
    }
  }

  fileprivate func part(_ part: Range<Int>) -> PayloadPlace {
    switch self {
    case .file(let range):
      .file(range.lowerBound + part.lowerBound..<range.lowerBound + part.upperBound)
    case .assembled(let range):
      .assembled(range.lowerBound + part.lowerBound..<range.lowerBound + part.upperBound)
    }
  }
}

/// A UDP datagram after reassembly, with its capture time and where its bytes are.
package struct CapturedDatagram: Hashable, Sendable {
  package var unixNanoseconds: Int64
  package var tuple: FiveTuple
  package var payload: PayloadPlace
  /// Whether the capture contains only the beginning of the datagram (snap length).
  package var isTruncated = false
  /// Whether offload had merged the datagram with others.
  package var wasJoined = false
  /// The ECN field of the IP header; for a fragmented datagram, combined from all fragments.
  package var ecn = ECNMark.notCapable
}

/// The next bytes in one direction of a TCP connection.
package struct CapturedStreamPiece: Hashable, Sendable {
  package var unixNanoseconds: Int64
  package var tuple: FiveTuple
  package var payload: PayloadPlace
  /// The number of bytes missing before this piece.
  package var lost: Int
  /// Whether the direction ends here.
  package var isEnd: Bool
}

/// An item of a capture, in file order: traffic, secrets, a comment, or a count of lost frames.
package enum CaptureEvent: Hashable, Sendable {
  case datagram(CapturedDatagram)
  case stream(CapturedStreamPiece)
  /// Secrets for decryption; only `.tlsKeyLog` is supported.
  case secrets(SecretsType, PayloadPlace)
  case comment(String)
  /// The number of frames that the capturing system lost before this event.
  case dropped(UInt64)
}

/// Reads a packet capture down to datagrams and TCP streams.
///
///     reader.append(chunk)
///     while let event = try reader.next() { ... reader.bytes(datagram.payload) ... }
///
/// Any bytes are safe: damage is an error with its offset if it precedes the first good record, and
/// is otherwise counted and skipped, as malformed frames are. Checksums are ignored, because
/// offload leaves them empty in sent packets, and damaged packets fail their authentication.
package struct CaptureReader: Sendable {
  /// The maximum depth of nested tunnels.
  static let tunnelsMaximum = 8

  private var parser = CaptureParser()
  private var fragments = FragmentStore()
  private var duplicates = DuplicateFilter()
  private var streams = TCPStreams()
  private var flows = FlowTable()
  /// Payloads reassembled from several frames.
  private var assembled: [UInt8] = []
  /// Further events from the last frame.
  private var pending: [CaptureEvent] = []
  private var nextPending = 0

  /// Counters of the frames read so far.
  package private(set) var counters = CaptureCounters()

  /// The first damage in the file; nil if there is none.
  package var damage: CaptureError? { parser.firstDamage }

  package init() {}

  /// Ends the capture; call `next` again afterwards, because a damaged last record may have hidden
  /// further events.
  package mutating func finish() {
    parser.finish()
    (counters.damagedRecords, counters.damagedBytes) = parser.damage
  }

  /// Adds the next bytes of the file, which invalidates every `PayloadPlace`.
  package mutating func append(_ bytes: RawSpan) { parser.append(bytes) }

  /// Returns the bytes of the event returned last, or of another event from the same frame.
  @_lifetime(borrow self)
  package func bytes(_ place: PayloadPlace) -> RawSpan {
    switch place {
    case .file(let range): parser.bytes(range)
    case .assembled(let range): assembled.span.bytes.extracting(range)
    }
  }

  /// The number of bytes in an incomplete record at the end of the file.
  package var waitingCount: Int { parser.waitingCount }

  /// Whether the file can contain decryption secrets: true for pcapng, false for pcap.
  package var mayBringKeys: Bool { parser.isPcapng }

  package var isRecognised: Bool { parser.isRecognised }

  /// Returns the next event; nil if more bytes are needed.
  package mutating func next() throws(CaptureError) -> CaptureEvent? {
    if nextPending < pending.count {
      defer { nextPending += 1 }
      return pending[nextPending]
    }
    pending.removeAll(keepingCapacity: true)
    nextPending = 0
    if !assembled.isEmpty { assembled.removeAll(keepingCapacity: true) }
    while let record = try parser.next() {
      switch record {
      case .secrets(let type, let range): return .secrets(type, .file(range))
      case .comment(let text): return .comment(text)
      case .dropped(let count): return .dropped(count)
      case .frame(let frame):
        read(frame)
        if let event = pending.first {
          nextPending = 1
          return event
        }
      }
    }
    (counters.damagedRecords, counters.damagedBytes) = parser.damage
    return nil
  }

  /// Parses a frame into pending events.
  private mutating func read(_ frame: CapturedFrame) {
    counters.frames += 1
    counters.frameBytes += UInt64(frame.bytes.count)
    counters.framesOutsideOfTime = parser.recordsOutsideOfTime
    // The link checksum is present only if the frame is complete.
    let trailer = frame.bytes.count == frame.originalLength ? frame.checksumLength : 0
    let range =
      frame.bytes
      .lowerBound..<max(
        frame.bytes.lowerBound, frame.bytes.upperBound - trailer)
    // A local copy, because the reader changes while the bytes are read.
    let file = parser
    let bytes = file.bytes(range)
    read(
      LinkLayer.content(of: bytes, frame.linkType), in: bytes, .file(range),
      frame.unixNanoseconds, tunnels: 0)
  }

  /// Parses the contents of a frame or tunnel.
  ///
  /// - Parameter tunnels: the number of enclosing tunnels.
  private mutating func read(
    _ content: LinkLayer.Content, in bytes: RawSpan, _ place: PayloadPlace, _ now: Int64,
    tunnels: Int
  ) {
    switch content {
    case .ip(let part):
      readPacket(bytes.extracting(part), place.part(part), now, tunnels: tunnels)
    case .several(let parts):
      for part in parts { read(part, in: bytes, place, now, tunnels: tunnels) }
    case .unread(let layer): counters.unread.count(layer)
    case .malformed: counters.malformed += 1
    }
  }

  private mutating func readPacket(
    _ packet: RawSpan, _ place: PayloadPlace, _ now: Int64, tunnels: Int
  ) {
    guard let header = InternetHeader(packet, in: 0..<packet.byteCount) else {
      counters.malformed += 1
      return
    }
    let payload = packet.extracting(header.payload)
    // Fragments of an unsupported protocol are not reassembled.
    let isRead =
      TransportProtocol(rawValue: header.transport) != nil
      || Tunnel.protocols.contains(header.transport)
    guard isRead else { return counters.unread.count(.internetProtocol(header.transport)) }
    if duplicates.isDuplicate(header, payload, at: now) {
      counters.duplicates += 1
      return
    }
    guard header.isFragment else {
      return readTransport(header, payload, place.part(header.payload), now, tunnels)
    }
    guard let whole = fragments.add(header, payload, at: now, &counters) else { return }
    let place = PayloadPlace.assembled(assembled.count..<assembled.count + whole.bytes.count)
    assembled += whole.bytes
    var joined = header
    joined.ecn = whole.ecn
    readTransport(joined, whole.bytes.span.bytes, place, now, tunnels)
  }

  private mutating func readTransport(
    _ header: InternetHeader, _ bytes: RawSpan, _ place: PayloadPlace, _ now: Int64,
    _ tunnels: Int
  ) {
    switch TransportProtocol(rawValue: header.transport) {
    case .udp: readDatagram(header, bytes, place, now, tunnels)
    case .tcp: readSegment(header, bytes, place, now)
    case nil:
      if let content = Tunnel.content(of: bytes, protocol: header.transport) {
        open(content, bytes, place, now, tunnels)
      } else {
        counters.unread.count(.internetProtocol(header.transport))
      }
    }
  }

  /// Parses the contents of a tunnel, unless tunnels are nested too deeply.
  private mutating func open(
    _ content: LinkLayer.Content, _ bytes: RawSpan, _ place: PayloadPlace, _ now: Int64,
    _ tunnels: Int
  ) {
    guard tunnels < Self.tunnelsMaximum else { return counters.unread.count(.tooDeep) }
    if tunnels == 0 { counters.tunneled += 1 }
    read(content, in: bytes, place, now, tunnels: tunnels + 1)
  }

  /// Parses a UDP datagram (RFC 768).
  private mutating func readDatagram(
    _ header: InternetHeader, _ bytes: RawSpan, _ place: PayloadPlace, _ now: Int64,
    _ tunnels: Int
  ) {
    guard bytes.byteCount >= 8 else {
      counters.malformed += 1
      return
    }
    // The length is 0 in jumbograms, and where offload left it empty.
    let stated = Int(bytes.uint16(at: 4))
    let length = stated == 0 ? bytes.byteCount : stated
    guard length >= 8 else {
      counters.malformed += 1
      return
    }
    let inner = 8..<min(length, bytes.byteCount)
    let payload = bytes.extracting(inner)
    let (source, destination) = (bytes.uint16(at: 0), bytes.uint16(at: 2))
    if let content = Tunnel.content(of: payload, from: source, to: destination) {
      return open(content, payload, place.part(inner), now, tunnels)
    }
    let tuple = FiveTuple(
      .udp, from: SocketAddress(header.source, port: source),
      to: SocketAddress(header.destination, port: destination))
    var datagram = CapturedDatagram(
      unixNanoseconds: now, tuple: tuple, payload: place.part(inner),
      isTruncated: length > bytes.byteCount, ecn: header.ecn)
    counters.datagrams += 1
    if datagram.isTruncated {
      counters.truncated += 1
      return pending.append(.datagram(datagram))
    }
    guard let size = flows.split(payload, of: tuple) else {
      return pending.append(.datagram(datagram))
    }
    counters.joinedDatagrams += 1
    datagram.wasJoined = true
    for offset in stride(from: 0, to: payload.byteCount, by: size) {
      var part = datagram
      part.payload = datagram.payload.part(offset..<min(offset + size, payload.byteCount))
      pending.append(.datagram(part))
      counters.splitDatagrams += 1
    }
  }

  /// Parses a TCP segment (RFC 9293 section 3.1).
  private mutating func readSegment(
    _ header: InternetHeader, _ bytes: RawSpan, _ place: PayloadPlace, _ now: Int64
  ) {
    guard bytes.byteCount >= 20 else {
      counters.malformed += 1
      return
    }
    let headerLength = Int(bytes.byte(at: 12) >> 4) * 4
    guard headerLength >= 20, headerLength <= bytes.byteCount else {
      counters.malformed += 1
      return
    }
    counters.segments += 1
    if header.isTruncated { counters.truncated += 1 }
    let flags = bytes.byte(at: 13)
    let segment = TCPStreams.Segment(
      tuple: FiveTuple(
        .tcp, from: SocketAddress(header.source, port: bytes.uint16(at: 0)),
        to: SocketAddress(header.destination, port: bytes.uint16(at: 2))),
      sequence: bytes.uint32(at: 4), isStart: flags & 2 != 0, isEnd: flags & 1 != 0,
      isReset: flags & 4 != 0, missing: header.missing)
    let data = bytes.extracting(headerLength..<bytes.byteCount)
    let pieces = streams.add(segment, data, at: now, &counters)
    for piece in pieces {
      let payload: PayloadPlace
      switch piece.place {
      case .segment(let range):
        payload = place.part(headerLength + range.lowerBound..<headerLength + range.upperBound)
      case .held(let held):
        payload = .assembled(assembled.count..<assembled.count + held.count)
        assembled += held
      }
      pending.append(
        .stream(
          CapturedStreamPiece(
            unixNanoseconds: now, tuple: segment.tuple, payload: payload, lost: piece.lost,
            isEnd: piece.isEnd)))
    }
  }
}

// MARK: - CaptureCounters

/// Counters of a capture's frames and their contents, including what was dropped.
package struct CaptureCounters: Hashable, Sendable {
  package var frames: UInt64 = 0
  package var frameBytes: UInt64 = 0
  /// Frames with dates that takes cannot represent (before 1823 or after 2116); their times are
  /// derived from the previous frame's.
  package var framesOutsideOfTime: UInt64 = 0
  /// Packets whose protocol is neither UDP nor TCP, or whose layers are not supported.
  package var unread = UnreadLayers()
  /// Packets within supported tunnels: GRE, VXLAN, GTP-U and so on.
  package var tunneled: UInt64 = 0
  /// Frames with contradictory or truncated headers.
  package var malformed: UInt64 = 0
  /// Datagrams and segments that were captured only in part (snap length).
  package var truncated: UInt64 = 0
  package var fragments: UInt64 = 0
  /// Datagrams reassembled from fragments.
  package var reassembled: UInt64 = 0
  /// Fragments that were repeated or malformed, or whose datagrams stayed incomplete, had
  /// overlapping parts, or were too long or too many.
  package var fragmentsDropped: UInt64 = 0
  /// Packets captured more than once: on another interface, or on a mirror port.
  package var duplicates: UInt64 = 0
  package var datagrams: UInt64 = 0
  /// Captured datagrams that were merged by offload, and the number of datagrams that they were
  /// split into.
  package var joinedDatagrams: UInt64 = 0
  package var splitDatagrams: UInt64 = 0
  package var segments: UInt64 = 0
  /// Bytes missing from TCP streams.
  package var streamBytesLost: UInt64 = 0
  /// Damaged records, and the bytes skipped because of them.
  package var damagedRecords: UInt64 = 0
  package var damagedBytes: UInt64 = 0
  /// Bytes of the incomplete record that ends the capture.
  package var cutBytes: UInt64 = 0
  /// Whether the compressed data is truncated.
  package var hasIncompleteCompression = false
  /// TCP streams that were dropped because there were too many.
  package var streamsDropped: UInt64 = 0

  package init() {}
}

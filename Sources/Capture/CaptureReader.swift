package import Wire

/// Where the bytes of an event stand; ask the reader for them before it goes on.
package enum PayloadPlace: Hashable, Sendable {
  /// In the file as it is.
  case file(Range<Int>)
  /// Put together from several frames.
  case assembled(Range<Int>)

  /// How many bytes there are.
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

/// A UDP datagram of a capture.
package struct CapturedDatagram: Hashable, Sendable {
  package var unixNanoseconds: Int64
  package var tuple: FiveTuple
  package var payload: PayloadPlace
  /// Whether the capture has only the beginning of it.
  package var isTruncated = false
  /// Whether offload had joined it with others.
  package var wasJoined = false
}

/// What one side of a TCP connection sent next.
package struct CapturedStreamPiece: Hashable, Sendable {
  package var unixNanoseconds: Int64
  package var tuple: FiveTuple
  package var payload: PayloadPlace
  /// How many bytes before these the capture does not have.
  package var lost: Int
  /// Whether nothing follows.
  package var isEnd: Bool
}

/// What a capture tells, in its order.
package enum CaptureEvent: Hashable, Sendable {
  case datagram(CapturedDatagram)
  case stream(CapturedStreamPiece)
  /// Secrets to decrypt with; only `.tlsKeyLog` is known here.
  case secrets(SecretsType, PayloadPlace)
  case comment(String)
  /// How many frames the capturing system lost before this.
  case dropped(UInt64)
}

/// Reads a packet capture down to datagrams and TCP streams.
///
///     reader.append(chunk)
///     while let event = try reader.next() { ... reader.bytes(datagram.payload) ... }
///
/// Any bytes may come: damage of the file is an error that says where, and what is wrong inside of
/// a frame is counted and passed over. Checksums are not looked at: offload leaves those of own
/// packets empty, and what the network damaged fails at its authentication.
package struct CaptureReader: Sendable {
  private var parser = CaptureParser()
  private var fragments = FragmentStore()
  private var duplicates = DuplicateFilter()
  private var streams = TCPStreams()
  private var flows = FlowTable()
  /// Payloads of events that were put together from several frames.
  private var assembled: [UInt8] = []
  /// Further events of the last frame.
  private var pending: [CaptureEvent] = []
  private var nextPending = 0

  /// What became of the frames so far.
  package private(set) var counters = CaptureCounters()

  /// What the first damaged record of the capture has, in words; nil where none is damaged.
  package var damage: CaptureError? { parser.firstDamage }

  package init() {}

  /// Ends the capture: further events may follow, where a record at its end is damaged.
  package mutating func finish() {
    parser.finish()
    (counters.damagedRecords, counters.damagedBytes) = parser.damage
  }

  /// Adds the next bytes of the file; places that were given before are void.
  package mutating func append(_ bytes: RawSpan) { parser.append(bytes) }

  /// The bytes of the event that was given last, or of another one of the same frame.
  @_lifetime(borrow self)
  package func bytes(_ place: PayloadPlace) -> RawSpan {
    switch place {
    case .file(let range): parser.bytes(range)
    case .assembled(let range): assembled.span.bytes.extracting(range)
    }
  }

  /// How many bytes at the end of the file belong to a record that is not whole.
  package var waitingCount: Int { parser.waitingCount }

  /// Whether secrets may stand in the capture: pcap has no place for them.
  package var mayBringKeys: Bool { parser.isPcapng }

  /// Whether the first bytes were those of a capture.
  package var isRecognised: Bool { parser.isRecognised }

  /// The next event; nil until more bytes are there.
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
        if let event = read(frame) { return event }
      }
    }
    (counters.damagedRecords, counters.damagedBytes) = parser.damage
    return nil
  }

  /// Reads a frame down to its event; further ones wait.
  private mutating func read(_ frame: CapturedFrame) -> CaptureEvent? {
    counters.frames += 1
    counters.frameBytes += UInt64(frame.bytes.count)
    counters.framesOutsideOfTime = parser.recordsOutsideOfTime
    // A checksum of the link is only there when all of the frame is.
    let trailer = frame.bytes.count == frame.originalLength ? frame.checksumLength : 0
    let range =
      frame.bytes
      .lowerBound..<max(
        frame.bytes.lowerBound, frame.bytes.upperBound - trailer)
    // Held beside the reader, which changes while the bytes are read.
    let file = parser
    let bytes = file.bytes(range)
    switch LinkLayer.content(of: bytes, frame.linkType) {
    case .ip(let part):
      return readPacket(
        bytes.extracting(part), at: range.lowerBound + part.lowerBound, frame.unixNanoseconds)
    case .other: counters.notIP += 1
    case .malformed: counters.malformed += 1
    case .unknownLink: counters.unknownLinks += 1
    }
    return nil
  }

  private mutating func readPacket(_ packet: RawSpan, at place: Int, _ now: Int64)
    -> CaptureEvent?
  {
    guard let header = InternetHeader(packet, in: 0..<packet.byteCount) else {
      counters.malformed += 1
      return nil
    }
    guard let transport = TransportProtocol(rawValue: header.transport) else {
      counters.otherTransports += 1
      return nil
    }
    let payload = packet.extracting(header.payload)
    if duplicates.isDuplicate(header, payload, at: now) {
      counters.duplicates += 1
      return nil
    }
    guard header.isFragment else {
      let begin = place + header.payload.lowerBound
      return readTransport(
        transport, header, payload, .file(begin..<begin + payload.byteCount), now)
    }
    guard let whole = fragments.add(header, payload, at: now, &counters) else { return nil }
    assembled = whole
    return readTransport(
      transport, header, whole.span.bytes, .assembled(0..<whole.count), now)
  }

  private mutating func readTransport(
    _ transport: TransportProtocol, _ header: InternetHeader, _ bytes: RawSpan,
    _ place: PayloadPlace, _ now: Int64
  ) -> CaptureEvent? {
    switch transport {
    case .udp: readDatagram(header, bytes, place, now)
    case .tcp: readSegment(header, bytes, place, now)
    }
  }

  /// A UDP datagram (RFC 768).
  private mutating func readDatagram(
    _ header: InternetHeader, _ bytes: RawSpan, _ place: PayloadPlace, _ now: Int64
  ) -> CaptureEvent? {
    guard bytes.byteCount >= 8 else {
      counters.malformed += 1
      return nil
    }
    // The length is empty in jumbograms, and where offload left it so.
    let stated = Int(bytes.uint16(at: 4))
    let length = stated == 0 ? bytes.byteCount : stated
    guard length >= 8 else {
      counters.malformed += 1
      return nil
    }
    let tuple = FiveTuple(
      .udp, from: SocketAddress(header.source, port: bytes.uint16(at: 0)),
      to: SocketAddress(header.destination, port: bytes.uint16(at: 2)))
    var datagram = CapturedDatagram(
      unixNanoseconds: now, tuple: tuple, payload: place.part(8..<min(length, bytes.byteCount)),
      isTruncated: length > bytes.byteCount)
    counters.datagrams += 1
    if datagram.isTruncated {
      counters.truncated += 1
      return .datagram(datagram)
    }
    let payload = bytes.extracting(8..<length)
    guard let size = flows.split(payload, of: tuple) else { return .datagram(datagram) }
    counters.joinedDatagrams += 1
    datagram.wasJoined = true
    for offset in stride(from: 0, to: payload.byteCount, by: size) {
      var part = datagram
      part.payload = datagram.payload.part(offset..<min(offset + size, payload.byteCount))
      pending.append(.datagram(part))
      counters.splitDatagrams += 1
    }
    nextPending = 1
    return pending.first
  }

  /// A TCP segment (RFC 9293 section 3.1).
  private mutating func readSegment(
    _ header: InternetHeader, _ bytes: RawSpan, _ place: PayloadPlace, _ now: Int64
  ) -> CaptureEvent? {
    guard bytes.byteCount >= 20 else {
      counters.malformed += 1
      return nil
    }
    let headerLength = Int(bytes.byte(at: 12) >> 4) * 4
    guard headerLength >= 20, headerLength <= bytes.byteCount else {
      counters.malformed += 1
      return nil
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
    nextPending = pending.isEmpty ? 0 : 1
    return pending.first
  }
}

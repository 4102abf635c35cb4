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
  /// The ECN mark of the IP header around it; of fragments that of the last one.
  package var ecn = ECNMark.notCapable
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
  /// How many tunnels inside of each other are opened.
  static let tunnelsMaximum = 8

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

  /// Reads a frame down to its events, which wait then.
  private mutating func read(_ frame: CapturedFrame) {
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
    read(
      LinkLayer.content(of: bytes, frame.linkType), in: bytes, .file(range),
      frame.unixNanoseconds, tunnels: 0)
  }

  /// Reads what a frame or a tunnel holds.
  ///
  /// - Parameter tunnels: how many tunnels are around it.
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
    // A fragment of what nobody reads does not wait for the others.
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
    let place = PayloadPlace.assembled(assembled.count..<assembled.count + whole.count)
    assembled += whole
    readTransport(header, whole.span.bytes, place, now, tunnels)
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

  /// Reads what a tunnel holds.
  private mutating func open(
    _ content: LinkLayer.Content, _ bytes: RawSpan, _ place: PayloadPlace, _ now: Int64,
    _ tunnels: Int
  ) {
    guard tunnels < Self.tunnelsMaximum else { return counters.unread.count(.tooDeep) }
    if tunnels == 0 { counters.tunneled += 1 }
    read(content, in: bytes, place, now, tunnels: tunnels + 1)
  }

  /// A UDP datagram (RFC 768).
  private mutating func readDatagram(
    _ header: InternetHeader, _ bytes: RawSpan, _ place: PayloadPlace, _ now: Int64,
    _ tunnels: Int
  ) {
    guard bytes.byteCount >= 8 else {
      counters.malformed += 1
      return
    }
    // The length is empty in jumbograms, and where offload left it so.
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

  /// A TCP segment (RFC 9293 section 3.1).
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

/// What became of the frames of a capture: nothing is dropped without being counted.
package struct CaptureCounters: Hashable, Sendable {
  package var frames: UInt64 = 0
  package var frameBytes: UInt64 = 0
  /// Frames whose date no take can have (before 1823 or after 2116), which go on from the frame
  /// before.
  package var framesOutsideOfTime: UInt64 = 0
  /// Packets of other protocols than UDP and TCP, and in layers that are not opened.
  package var unread = UnreadLayers()
  /// Packets that stood in tunnels which were opened: GRE, VXLAN, GTP-U, ...
  package var tunneled: UInt64 = 0
  /// Frames whose headers contradict themselves, or are cut off.
  package var malformed: UInt64 = 0
  /// Datagrams and segments of which the capture has only the beginning (snap length).
  package var truncated: UInt64 = 0
  package var fragments: UInt64 = 0
  /// Datagrams put together of fragments.
  package var reassembled: UInt64 = 0
  /// Fragments of datagrams that stayed incomplete, overlapped, or were too many.
  package var fragmentsDropped: UInt64 = 0
  /// Packets that were captured once more: on another interface, a mirror port.
  package var duplicates: UInt64 = 0
  package var datagrams: UInt64 = 0
  /// Datagrams that segmentation or receive offload had joined, and what they were split into.
  package var joinedDatagrams: UInt64 = 0
  package var splitDatagrams: UInt64 = 0
  package var segments: UInt64 = 0
  /// Bytes of TCP streams that the capture does not have.
  package var streamBytesLost: UInt64 = 0
  /// Records that are damaged, and the bytes that are left out for it.
  package var damagedRecords: UInt64 = 0
  package var damagedBytes: UInt64 = 0
  /// Bytes at the end of the capture that begin a record whose rest is missing.
  package var cutBytes: UInt64 = 0
  /// Whether the compressed data end before they are complete.
  package var hasIncompleteCompression = false
  /// TCP streams that were given up because there were too many.
  package var streamsDropped: UInt64 = 0

  package init() {}
}

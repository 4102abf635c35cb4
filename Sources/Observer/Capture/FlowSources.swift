import Wire

/// The sources of RTP that one side of a path sent lately, each with its last packet.
struct FlowSources {
  private struct Source {
    var ssrc: UInt32
    var sequence: UInt16
    var payloadType: UInt8
  }

  /// More sources than that are made up; they take the places of each other.
  private static let sourcesMaximum = 8
  /// How many packets of a source the capture may have missed.
  private static let missedMaximum: UInt16 = 64

  private var followed: [Source] = []
  private var oldest = 0

  /// Takes note of an RTP packet.
  mutating func note(_ packet: RawSpan) {
    guard packet.byteCount >= 12 else { return }
    let ssrc = packet.uint32(at: 8)
    let source = Source(
      ssrc: ssrc, sequence: packet.uint16(at: 2), payloadType: packet.byte(at: 1) & 0x7f)
    if let known = followed.firstIndex(where: { $0.ssrc == ssrc }) {
      followed[known] = source
    } else if followed.count < Self.sourcesMaximum {
      followed.append(source)
    } else {
      followed[oldest] = source
      oldest = (oldest + 1) % Self.sourcesMaximum
    }
  }

  /// Whether the next packet of a source that is known begins at a place: 50 bits have to fit.
  func follows(_ payload: RawSpan, at place: Int) -> Bool {
    guard place + 12 <= payload.byteCount, payload.byte(at: place) & 0xc0 == 0x80 else {
      return false
    }
    let ssrc = payload.uint32(at: place + 8)
    return followed.contains { source in
      source.ssrc == ssrc && source.payloadType == payload.byte(at: place + 1) & 0x7f
        && payload.uint16(at: place + 2) &- source.sequence &- 1 < Self.missedMaximum
    }
  }

  /// The first place from one on where the next packet of a source other than that of the payload
  /// begins, and `accepts` has no objection.
  func place(
    in payload: RawSpan, from begin: Int, where accepts: (Int) -> Bool
  ) -> Int? {
    var first: Int?
    for source in followed where source.ssrc != payload.uint32(at: 8) {
      let byte = UInt8(truncatingIfNeeded: source.ssrc >> 24)
      // The source stands in the ninth to the twelfth byte.
      var from = begin + 8
      while let found = payload.place(
        of: byte, from: from, to: (first ?? payload.byteCount) - 3)
      {
        if payload.uint32(at: found) == source.ssrc, follows(payload, at: found - 8),
          accepts(found - 8)
        {
          first = found - 8
          break
        }
        from = found + 1
      }
    }
    return first
  }
}

/// The sources of every path.
struct FlowTable {
  /// Newer paths take the places of older ones; that of another one at most.
  private static let places = 1 << 12

  private var flows: [(tuple: FiveTuple, followed: FlowSources)?]

  init() { flows = Array(repeating: nil, count: Self.places) }

  /// The size of the datagrams that make up a payload; nil when it is one datagram.
  ///
  /// Takes note of the packets in it.
  mutating func split(_ payload: RawSpan, of tuple: FiveTuple) -> Int? {
    switch DatagramClass(payload) {
    case .rtp, .rtcp: break
    default: return OffloadSplit.size(of: payload, after: FlowSources())
    }
    let place = place(of: tuple)
    if flows[place]?.tuple != tuple { flows[place] = (tuple, FlowSources()) }
    let size = OffloadSplit.size(of: payload, after: flows[place]?.followed ?? FlowSources())
    let step = size ?? max(1, payload.byteCount)
    for offset in stride(from: 0, to: payload.byteCount, by: step) {
      let packet = payload.extracting(offset..<min(offset + step, payload.byteCount))
      if DatagramClass(packet) == .rtp { flows[place]?.followed.note(packet) }
    }
    return size
  }

  private func place(of tuple: FiveTuple) -> Int {
    var digest = ContentDigest(
      seed: UInt64(tuple.source.port) << 16 | UInt64(tuple.destination.port))
    digest.mix(tuple.source.ip)
    digest.mix(tuple.destination.ip)
    return Int(truncatingIfNeeded: digest.value & UInt64(Self.places - 1))
  }
}

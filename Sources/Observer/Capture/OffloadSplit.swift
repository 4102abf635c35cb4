import Wire

/// Finds the datagrams that offload merged into one datagram before the capture.
///
/// With segmentation offload (UDP_SEGMENT) and receive offload (UDP_GRO), a capture shows one large
/// datagram for many of equal size, the last of which may be shorter. IP headers do not reveal the
/// merge; the contents do, together with the path's earlier packets. A sender may also merge a
/// single final message of another kind or stream.
enum OffloadSplit {
  /// Returns the size of the datagrams merged into a payload; nil if it is a single datagram.
  static func size(of payload: RawSpan, after sources: FlowSources) -> Int? {
    let count = payload.byteCount
    guard count >= 40 else { return nil }
    switch DatagramClass(payload) {
    case .rtp:
      // If two streams alternate, every second packet belongs to the same stream.
      let size = min(
        packetSize(payload, sources) ?? .max, sizeBeforeStream(payload, sources) ?? .max)
      return size < count ? size : packetSizeBeforeOther(payload)
    case .rtcp: return sizeBeforeStream(payload, sources) ?? packetSizeBeforeOther(payload)
    case .stun: return messageSize(payload)
    case .dtls: return recordsSize(payload)
    default: return nil
    }
  }

  /// Returns the size of merged RTP packets if the first two belong to one stream and have
  /// consecutive numbers (50 bits must match); nil otherwise.
  private static func packetSize(_ payload: RawSpan, _ sources: FlowSources) -> Int? {
    let count = payload.byteCount
    let first = payload.byte(at: 0) & 0xc0
    let number = payload.uint16(at: 2)
    let source = unsafe payload.unsafeLoadUnaligned(fromUncheckedByteOffset: 8, as: UInt32.self)
    // The SSRC is at offset 8, and a packet has at least 13 bytes.
    var from = 21
    while let found = payload.place(of: payload.byte(at: 8), from: from, to: count - 3) {
      let size = found - 8
      if unsafe payload.unsafeLoadUnaligned(fromUncheckedByteOffset: found, as: UInt32.self)
        == source, payload.byte(at: size) & 0xc0 == first,
        payload.uint16(at: size + 2) == number &+ 1, isChain(payload, size, sources)
      {
        return size
      }
      from = found + 1
    }
    return nil
  }

  /// Returns the size of an RTP or RTCP packet followed by a packet from another stream; nil if
  /// there is none.
  private static func sizeBeforeStream(_ payload: RawSpan, _ sources: FlowSources) -> Int? {
    sources.place(in: payload, from: 13) { isChain(payload, $0, sources) }
  }

  /// Returns whether a payload consists of datagrams of the given size.
  ///
  /// Each datagram after the first must continue a stream, except that the last may be a message of
  /// another kind.
  private static func isChain(_ payload: RawSpan, _ size: Int, _ sources: FlowSources) -> Bool {
    let first = payload.byte(at: 0) & 0xc0
    let source = payload.uint32(at: 8)
    var next = payload.uint16(at: 2) &+ 1
    var offset = size
    while offset < payload.byteCount {
      if offset + 12 <= payload.byteCount, payload.byte(at: offset) & 0xc0 == first,
        payload.uint16(at: offset + 2) == next, payload.uint32(at: offset + 8) == source
      {
        next &+= 1
      } else if !sources.follows(payload, at: offset) {
        return offset + size >= payload.byteCount && isOther(payload, offset)
      }
      offset += size
    }
    return true
  }

  /// Returns the common size of merged STUN messages; nil if the payload is anything else.
  ///
  /// The last message may be shorter or a packet of another kind.
  private static func messageSize(_ payload: RawSpan) -> Int? {
    let size = 20 + Int(payload.uint16(at: 2))
    guard size < payload.byteCount else { return nil }
    var offset = size
    while offset < payload.byteCount {
      let rest = payload.byteCount - offset
      guard rest >= 20, payload.uint32(at: offset + 4) == 0x2112_a442,
        20 + Int(payload.uint16(at: offset + 2)) == min(size, rest)
      else {
        let isLast =
          payload.uint32(at: 4) == 0x2112_a442 && rest <= size
          && (isOther(payload, offset) || isRTP(payload, offset))
        return isLast ? size : nil
      }
      offset += size
    }
    return size
  }

  // MARK: Last message of another kind

  /// Returns the size of an RTP or RTCP packet followed by one shorter message of another kind; nil
  /// if there is none.
  private static func packetSizeBeforeOther(_ payload: RawSpan) -> Int? {
    let count = payload.byteCount
    // RTCP after RTCP is a compound (RFC 3550 section 6.1).
    let isControl = DatagramClass(payload) == .rtcp
    let hasTrailer = !isControl && mayEndControl(payload)
    var place = max(13, (count + 1) / 2)
    while place + 14 <= count {
      let end = min(place + 8, count - 13)
      defer { place = end }
      guard hasTrailer || place + 21 > count || mayBegin(payload, place) else { continue }
      for offset in place..<end where isOther(payload, offset) {
        if isControl, DatagramClass(payload.extracting(offset..<count)) == .rtcp { continue }
        return offset
      }
    }
    return nil
  }

  /// Returns whether a DTLS 1.2 record, a STUN message or an RTP packet with header extensions may
  /// begin at one of eight offsets.
  ///
  /// It looks for the DTLS version in the second and third byte, for two bytes of the magic cookie
  /// from the fifth byte on, and for the extension profile.
  private static func mayBegin(_ payload: RawSpan, _ place: Int) -> Bool {
    let version =
      payload.eight(from: place + 1, holding: 0xfe) & payload.eight(from: place + 2, holding: 0xfd)
    let cookie =
      payload.eight(from: place + 4, holding: 0x21) & payload.eight(from: place + 5, holding: 0x12)
    let profile =
      payload.eight(from: place + 12, holding: 0xbe)
      & payload.eight(from: place + 13, holding: 0xde)
    return version | cookie | profile != 0
  }

  /// Returns whether the rest of a payload is a complete message of another kind, or a stream's
  /// first packet.
  private static func isOther(_ payload: RawSpan, _ offset: Int) -> Bool {
    let rest = payload.byteCount - offset
    guard rest >= 14 else { return false }
    switch DatagramClass(first: payload.byte(at: offset), second: payload.byte(at: offset + 1)) {
    case .stun:
      return rest >= 20 && payload.uint32(at: offset + 4) == 0x2112_a442
        && 20 + Int(payload.uint16(at: offset + 2)) == rest
    case .dtls: return endOfRecords(payload, offset) == payload.byteCount
    case .rtcp:
      // The compound begins with a report or feedback and ends with the SRTCP index (RFC 3711
      // section 3.4). Encrypted bytes look like that once in ten million packets.
      return payload.byte(at: offset) & 0xe0 == 0x80
        && [200, 201, 205, 206].contains(payload.byte(at: offset + 1))
        && 4 * Int(payload.uint16(at: offset + 2)) + 8 <= rest && mayEndControl(payload)
    case .rtp: return hasExtensions(payload, offset)
    default: return false
    }
  }

  /// Returns whether the rest of a payload begins like an RTP packet with one-byte header
  /// extensions (RFC 8285 section 4.2).
  ///
  /// Encrypted bytes look like that once in a billion packets.
  private static func hasExtensions(_ payload: RawSpan, _ offset: Int) -> Bool {
    guard offset + 20 <= payload.byteCount, payload.byte(at: offset) == 0x90,
      payload.uint16(at: offset + 12) == 0xbede
    else { return false }
    let words = Int(payload.uint16(at: offset + 14))
    var place = offset + 16
    let end = place + 4 * words
    guard 1...16 ~= words, end <= payload.byteCount else { return false }
    var elements = 0
    while place < end {
      let head = payload.byte(at: place)
      place += 1
      guard head != 0 else { continue }
      guard 1...14 ~= head >> 4 else { return false }
      place += Int(head & 15) + 1
      elements += 1
    }
    return place == end && elements > 0
  }

  private static func isRTP(_ payload: RawSpan, _ offset: Int) -> Bool {
    guard payload.byteCount - offset >= 12 else { return false }
    let kind = DatagramClass(first: payload.byte(at: offset), second: payload.byte(at: offset + 1))
    return kind == .rtp
  }

  /// Returns whether a payload ends like SRTCP, that is, with the encryption bit and a small index,
  /// optionally followed by an 80-bit tag (none with AES-GCM).
  private static func mayEndControl(_ payload: RawSpan) -> Bool {
    hasIndex(payload, payload.byteCount - 4) || hasIndex(payload, payload.byteCount - 14)
  }

  private static func hasIndex(_ payload: RawSpan, _ place: Int) -> Bool {
    place >= 24 && payload.uint32(at: place) & 0xfffe_0000 == 0x8000_0000
  }

  /// Returns the size of DTLS datagrams followed by an RTP, RTCP or STUN message; nil if there are
  /// none.
  private static func recordsSize(_ payload: RawSpan) -> Int? {
    let end = endOfRecords(payload, 0)
    let rest = payload.byteCount - end
    guard end > 0, rest >= 12 else { return nil }
    guard isRTP(payload, end) || isOther(payload, end) else { return nil }
    // Usually each DTLS datagram has one record, and all records are equally long.
    let size = 13 + Int(payload.uint16(at: 11))
    let isEven = stride(from: 0, to: end, by: size).allSatisfy {
      $0 + 13 <= end && 13 + Int(payload.uint16(at: $0 + 11)) == size
    }
    if isEven, rest <= size { return size }
    return rest <= end ? end : nil
  }

  /// Returns the end of the complete DTLS records that begin at an offset (RFC 6347 section 4.1).
  private static func endOfRecords(_ payload: RawSpan, _ place: Int) -> Int {
    var offset = place
    while offset + 13 <= payload.byteCount, (20...26).contains(payload.byte(at: offset)),
      payload.byte(at: offset + 1) == 0xfe, payload.byte(at: offset + 2) >= 0xfd
    {
      let next = offset + 13 + Int(payload.uint16(at: offset + 11))
      guard next <= payload.byteCount else { break }
      offset = next
    }
    return offset
  }
}

// MARK: - FlowSources

/// The recent RTP sources in one direction of a path, each with its last packet.
struct FlowSources {
  private struct Source {
    var ssrc: UInt32
    var sequence: UInt16
    var payloadType: UInt8
  }

  /// The maximum number of sources; further ones are probably spoofed, and replace the earlier ones
  /// in turn.
  private static let sourcesMaximum = 8
  /// The number of packets missing between two captured packets of a source must be less than this.
  private static let missedMaximum: UInt16 = 64

  private var followed: [Source] = []
  private var oldest = 0

  mutating func record(_ packet: RawSpan) {
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

  /// Returns whether a known source's next packet begins at an offset; about 50 bits must match.
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

  /// Returns the first offset, among those that `accepts` allows, at which another known source's
  /// next packet begins; nil if there is none.
  func place(
    in payload: RawSpan, from begin: Int, where accepts: (Int) -> Bool
  ) -> Int? {
    var first: Int?
    for source in followed where source.ssrc != payload.uint32(at: 8) {
      let byte = UInt8(truncatingIfNeeded: source.ssrc >> 24)
      // The SSRC is at offset 8.
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

struct FlowTable {
  /// The number of places in the hash table, where a newer path may replace an older one.
  private static let places = 1 << 12

  private var flows: [(tuple: FiveTuple, followed: FlowSources)?]

  init() { flows = Array(repeating: nil, count: Self.places) }

  /// Returns the size of the datagrams merged into a payload, nil if it is a single datagram, and
  /// records their packets.
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
      if DatagramClass(packet) == .rtp { flows[place]?.followed.record(packet) }
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

// MARK: - DuplicateFilter

/// Detects packets that were captured more than once: on `any`, on a mirror port, or on several
/// interfaces that they passed.
///
/// Duplicates have the same addresses, identification and contents. Fields that hops and links
/// change (hop limit, tags) are ignored. So are checksums, which a system's own packets lack if its
/// network card computes them. If the IP header has no identification, only packets within two
/// milliseconds are duplicates, since an application may send the same bytes again. RTP packets are
/// numbered, so an identical one within ten milliseconds was captured twice, on one interface or on
/// two.
struct DuplicateFilter: Sendable {
  /// The number of places in the hash table, where a newer packet may replace an older one.
  private static let places = 1 << 14
  private static let identifiedWindow: Int64 = 1_000_000_000
  private static let anonymousWindow: Int64 = 2_000_000
  private static let mediaWindow: Int64 = 10_000_000

  private var seen: [(digest: UInt64, at: Int64)]

  init() { seen = Array(repeating: (0, .min / 2), count: Self.places) }

  /// Records a packet; returns whether it is a duplicate.
  mutating func isDuplicate(_ header: InternetHeader, _ payload: RawSpan, at now: Int64) -> Bool {
    var digest = ContentDigest(seed: UInt64(header.identification) << 8 | UInt64(header.transport))
    digest.mix(header.source)
    digest.mix(header.destination)
    digest.mix(UInt64(truncatingIfNeeded: header.fragmentOffset))
    Self.mix(payload, of: header, into: &digest)
    let place = Int(truncatingIfNeeded: digest.value & UInt64(Self.places - 1))
    let anonymous = Self.isMedia(header, payload) ? Self.mediaWindow : Self.anonymousWindow
    let window = header.identification == 0 ? anonymous : Self.identifiedWindow
    let last = seen[place]
    if last.digest == digest.value,
      abs(now.subtractingReportingOverflow(last.at).partialValue)
        <= window
    {
      return true
    }
    seen[place] = (digest.value, now)
    return false
  }

  /// Returns the checksum's range in a UDP header (RFC 768) or TCP header (RFC 9293 section 3.1);
  /// nil for other contents.
  private static func checksum(of header: InternetHeader) -> Range<Int>? {
    guard header.fragmentOffset == 0 else { return nil }
    switch TransportProtocol(rawValue: header.transport) {
    case .udp: return 6..<8
    case .tcp: return 16..<18
    case nil: return nil
    }
  }

  private static func mix(
    _ payload: RawSpan, of header: InternetHeader, into digest: inout ContentDigest
  ) {
    guard let checksum = checksum(of: header), payload.byteCount >= checksum.upperBound else {
      return digest.mix(payload)
    }
    digest.mix(payload.extracting(0..<checksum.lowerBound))
    digest.mix(payload.extracting(checksum.upperBound..<payload.byteCount))
  }

  /// Returns whether a packet is an unfragmented UDP datagram that looks like RTP.
  private static func isMedia(_ header: InternetHeader, _ payload: RawSpan) -> Bool {
    guard TransportProtocol(rawValue: header.transport) == .udp, !header.isFragment,
      payload.byteCount >= 20
    else { return false }
    return DatagramClass(payload.extracting(8..<payload.byteCount)) == .rtp
  }
}

import Wire

/// The header of an IPv4 packet (RFC 791), or of an IPv6 packet with its extensions (RFC 8200).
struct InternetHeader {
  static let tcp: UInt8 = 6
  static let udp: UInt8 = 17

  var source: IPAddress
  var destination: IPAddress
  /// The ECN field (RFC 3168 section 5).
  var ecn: ECNMark
  /// The protocol number of the payload, which follows any extension headers.
  var transport: UInt8
  /// The payload's range; shorter than stated if the capture truncated it.
  var payload: Range<Int>
  /// The number of payload bytes that the capture lacks.
  var missing = 0
  /// The identification: 16 bits in IPv4, 32 in IPv6 fragments, otherwise 0.
  var identification: UInt32 = 0
  /// The payload's offset in the unfragmented packet, in bytes.
  var fragmentOffset = 0
  var hasMoreFragments = false

  var isTruncated: Bool { missing > 0 }

  var isFragment: Bool { hasMoreFragments || fragmentOffset > 0 }

  /// The maximum number of extension headers; no legitimate packet has more.
  private static let extensionsMaximum = 16

  /// Parses a packet; nil if its header is contradictory or truncated.
  init?(_ bytes: RawSpan, in range: Range<Int>) {
    guard let first = range.first else { return nil }
    switch bytes.byte(at: first) >> 4 {
    case 4: self.init(ipv4: bytes, in: range)
    case 6: self.init(ipv6: bytes, in: range)
    default: return nil
    }
  }

  private init?(ipv4 bytes: RawSpan, in range: Range<Int>) {
    let start = range.lowerBound
    guard range.count >= 20 else { return nil }
    let headerLength = Int(bytes.byte(at: start) & 15) * 4
    guard headerLength >= 20, headerLength <= range.count else { return nil }
    // Segmentation offload may leave the length empty; the frame then determines it.
    let stated = Int(bytes.uint16(at: start + 2))
    let length = stated == 0 ? range.count : stated
    guard length >= headerLength else { return nil }
    missing = max(0, length - range.count)
    // The rest is padding of the link layer.
    payload = start + headerLength..<start + min(length, range.count)
    identification = UInt32(bytes.uint16(at: start + 4))
    let fragment = bytes.uint16(at: start + 6)
    hasMoreFragments = fragment & 0x2000 != 0
    fragmentOffset = Int(fragment & 0x1fff) * 8
    transport = bytes.byte(at: start + 9)
    ecn = ECNMark(rawValue: bytes.byte(at: start + 1) & 3)
    source = IPAddress(ipv4: bytes.uint32(at: start + 12))
    destination = IPAddress(ipv4: bytes.uint32(at: start + 16))
    // An authentication header may precede the payload (RFC 4302).
    while transport == Self.authentication, fragmentOffset == 0, !hasMoreFragments {
      guard let length = extensionLength(bytes), length <= payload.count else { return nil }
      transport = bytes.byte(at: payload.lowerBound)
      payload = payload.dropFirst(length)
    }
  }

  /// Returns whether the bytes can only be an IP packet, judging by the header's checksum in IPv4
  /// and by the length in IPv6.
  ///
  /// In IPv6, padding may follow the packet only if there are at most 60 bytes, since Ethernet pads
  /// shorter frames to that length.
  static func isCertain(_ bytes: RawSpan, in range: Range<Int>) -> Bool {
    guard let header = InternetHeader(bytes, in: range) else { return false }
    guard header.source.isIPv4 else {
      let padding = range.upperBound - header.payload.upperBound
      return header.missing == 0 && (padding == 0 || range.count <= 60)
        && bytes.uint16(at: range.lowerBound + 4) > 0
    }
    let length = Int(bytes.byte(at: range.lowerBound) & 15) * 4
    var sum: UInt32 = 0
    for offset in stride(from: 0, to: length, by: 2) {
      sum += UInt32(bytes.uint16(at: range.lowerBound + offset))
    }
    return sum > 0 && (sum & 0xffff) + sum >> 16 == 0xffff
  }

  private init?(ipv6 bytes: RawSpan, in range: Range<Int>) {
    let start = range.lowerBound
    guard range.count >= 40 else { return nil }
    // 0 means a jumbogram, or a length that offload left empty.
    let stated = Int(bytes.uint16(at: start + 4))
    let length = stated == 0 ? range.count - 40 : stated
    missing = max(0, length - (range.count - 40))
    let end = start + 40 + min(length, range.count - 40)
    source = IPAddress(
      ipv6High: bytes.uint64(at: start + 8), low: bytes.uint64(at: start + 16))
    destination = IPAddress(
      ipv6High: bytes.uint64(at: start + 24), low: bytes.uint64(at: start + 32))
    transport = bytes.byte(at: start + 6)
    // The traffic class spans the first two bytes (RFC 8200 section 3).
    ecn = ECNMark(rawValue: bytes.byte(at: start + 1) >> 4 & 3)
    payload = start + 40..<end
    var extensions = 0
    while let length = extensionLength(bytes) {
      extensions += 1
      guard extensions <= Self.extensionsMaximum, length <= payload.count else { return nil }
      let place = payload.lowerBound
      if transport == Self.fragmentHeader {
        let fragment = bytes.uint16(at: place + 2)
        fragmentOffset = Int(fragment & 0xfff8)
        hasMoreFragments = fragment & 1 != 0
        identification = bytes.uint32(at: place + 4)
      }
      transport = bytes.byte(at: place)
      payload = place + length..<payload.upperBound
      // The payload of a later fragment does not begin with a header.
      if fragmentOffset > 0 { break }
    }
  }

  private static let fragmentHeader: UInt8 = 44
  private static let authentication: UInt8 = 51

  /// Returns the length of the payload's leading extension header; `Int.max` if it is truncated,
  /// nil if there is none.
  private func extensionLength(_ bytes: RawSpan) -> Int? {
    switch transport {
    // Hop-by-hop options, routing, destination options, mobility, HIP, Shim6.
    case 0, 43, 60, 135, 139, 140:
      guard payload.count >= 8 else { return .max }
      return 8 + 8 * Int(bytes.byte(at: payload.lowerBound + 1))
    case Self.fragmentHeader: return payload.count >= 8 ? 8 : .max
    // The authentication header counts its length in 32-bit words (RFC 4302 section 2.2).
    case Self.authentication:
      guard payload.count >= 8 else { return .max }
      return 8 + 4 * Int(bytes.byte(at: payload.lowerBound + 1))
    default: return nil
    }
  }
}

// MARK: - FragmentStore

/// Reassembles datagrams from fragments (RFC 791 section 3.2, RFC 8200 section 4.5).
///
/// It stores only a few datagrams, for a short time.
struct FragmentStore: Sendable {
  /// The maximum number of incomplete datagrams, and of bytes in them.
  static let datagramsMaximum = 64
  static let bytesMaximum = 1 << 20
  /// The time in nanoseconds after which a datagram is dropped (RFC 8200 section 4.5: 60 s).
  private static let patience: Int64 = 60_000_000_000
  private static let lengthMaximum = 65_535

  private struct Key: Equatable, Sendable {
    var source: IPAddress
    var destination: IPAddress
    var identification: UInt32
    var transport: UInt8
  }

  private struct Datagram: Sendable {
    var key: Key
    var began: Int64
    var pieces: [(offset: Int, bytes: [UInt8])] = []
    var received = 0
    var total: Int?
    var ecn: ECNMark

    enum Outcome {
      case added
      case again
      /// The fragment overlaps another fragment, or disagrees about where the datagram ends.
      case contradiction
    }

    /// Inserts a fragment at its sorted position; a datagram may have eight thousand fragments.
    mutating func add(_ header: InternetHeader, _ payload: RawSpan) -> Outcome {
      let begin = header.fragmentOffset
      let end = begin + payload.byteCount
      let after = place(of: begin)
      if after < pieces.count, pieces[after].offset == begin,
        pieces[after].bytes.count == payload.byteCount
      {
        return .again
      }
      let reachesBack =
        after > 0 && pieces[after - 1].offset + pieces[after - 1].bytes.count > begin
      let reachesOn = after < pieces.count && pieces[after].offset < end
      let newTotal = header.hasMoreFragments ? total : end
      let reach = pieces.last.map { $0.offset + $0.bytes.count } ?? 0
      let contradicts = newTotal.map { max(end, reach) > $0 || total ?? $0 != $0 } ?? false
      guard !reachesBack, !reachesOn, !contradicts else { return .contradiction }
      pieces.insert((begin, [UInt8](payload)), at: after)
      received += payload.byteCount
      total = newTotal
      join(header.ecn)
      return .added
    }

    /// Combines a fragment's mark with the datagram's (RFC 3168 section 5.3): congestion
    /// experienced by one fragment counts for the datagram; if the marks differ otherwise, the
    /// datagram counts as not ECN-capable.
    private mutating func join(_ mark: ECNMark) {
      guard mark != ecn, ecn != .congestionExperienced else { return }
      ecn = mark == .congestionExperienced ? mark : .notCapable
    }

    /// Returns the index of the first fragment at or after an offset.
    private func place(of offset: Int) -> Int {
      if let last = pieces.last, last.offset < offset { return pieces.count }
      var low = 0
      var high = pieces.count
      while low < high {
        let middle = (low + high) / 2
        if pieces[middle].offset < offset { low = middle + 1 } else { high = middle }
      }
      return low
    }
  }

  /// Incomplete datagrams, oldest first.
  private var waiting: [Datagram] = []
  private var held = 0

  var heldBytes: Int { held }

  init() {}

  /// Adds a fragment; returns the payload and its ECN mark if the datagram is complete, otherwise
  /// nil.
  mutating func add(
    _ header: InternetHeader, _ payload: RawSpan, at now: Int64, _ counters: inout CaptureCounters
  ) -> (bytes: [UInt8], ecn: ECNMark)? {
    counters.fragments += 1
    while let first = waiting.first, now - first.began > Self.patience {
      drop(0, &counters)
    }
    let end = header.fragmentOffset + payload.byteCount
    guard !header.isTruncated, payload.byteCount > 0, end <= Self.lengthMaximum,
      !header.hasMoreFragments || payload.byteCount % 8 == 0
    else {
      counters.fragmentsDropped += 1
      return nil
    }
    let key = Key(
      source: header.source, destination: header.destination,
      identification: header.identification, transport: header.transport)
    var index = waiting.firstIndex { $0.key == key } ?? waiting.count
    if index == waiting.count { waiting.append(Datagram(key: key, began: now, ecn: header.ecn)) }
    switch waiting[index].add(header, payload) {
    case .again:
      counters.fragmentsDropped += 1
      return nil
    case .contradiction:
      // Overlapping fragments invalidate the datagram (RFC 5722 section 4).
      counters.fragmentsDropped += 1
      drop(index, &counters)
      return nil
    case .added: break
    }
    held += payload.byteCount
    if waiting[index].received == waiting[index].total {
      counters.reassembled += 1
      held -= waiting[index].received
      let whole = waiting.remove(at: index)
      return (whole.pieces.flatMap(\.bytes), whole.ecn)
    }
    while waiting.count > Self.datagramsMaximum || held > Self.bytesMaximum {
      drop(0, &counters)
      index -= 1
    }
    return nil
  }

  private mutating func drop(_ index: Int, _ counters: inout CaptureCounters) {
    let lost = waiting.remove(at: index)
    held -= lost.received
    counters.fragmentsDropped += UInt64(lost.pieces.count)
  }
}

// Searches for a byte at eight offsets at once, because splitting merged datagrams spends most of
// its time on such searches.
extension RawSpan {
  /// Compares the eight bytes at an offset with `byte`; in the result, the high bit of each byte
  /// marks a match, with the first byte lowest.
  ///
  /// Bits above the first match may be false positives.
  @inline(__always)
  func eight(from place: Int, holding byte: UInt8) -> UInt64 {
    let word =
      unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: place, as: UInt64.self)
      ^ (UInt64(byte) &* 0x0101_0101_0101_0101)
    return (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
  }

  /// Returns the first offset in a range at which a byte occurs; nil if it does not occur.
  @inline(__always)
  func place(of byte: UInt8, from begin: Int, to end: Int) -> Int? {
    var place = begin
    while place + 8 <= end {
      let found = eight(from: place, holding: byte)
      if found != 0 { return place + found.trailingZeroBitCount / 8 }
      place += 8
    }
    while place < end {
      if self.byte(at: place) == byte { return place }
      place += 1
    }
    return nil
  }
}

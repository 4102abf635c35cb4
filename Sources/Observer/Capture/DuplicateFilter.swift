import Wire

/// Recognises packets that were captured more than once: on `any`, on a mirror port, on each of the
/// interfaces that they passed.
///
/// The same packet has the same addresses, identification and contents; what hops and links change
/// (hop limit, tags) does not count, and neither do checksums: a system that leaves them to its
/// network card captures its own packets before they have one. Where IP gives no identification,
/// only what comes within two milliseconds is a duplicate: an application may well send the same
/// bytes again. RTP is an exception: its packets have a number of their own, so that the same one
/// within ten milliseconds was captured twice, at one interface as at two.
struct DuplicateFilter: Sendable {
  /// Newer packets take the places of older ones; that of another one at most.
  private static let places = 1 << 14
  private static let identifiedWindow: Int64 = 1_000_000_000
  private static let anonymousWindow: Int64 = 2_000_000
  private static let mediaWindow: Int64 = 10_000_000

  private var seen: [(digest: UInt64, at: Int64)]

  init() { seen = Array(repeating: (0, .min / 2), count: Self.places) }

  /// Whether a packet was there before; takes note of it.
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

  /// Where the checksum stands in a header of UDP (RFC 768), and of TCP (RFC 9293 section 3.1).
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

  /// Whether a datagram looks like RTP.
  private static func isMedia(_ header: InternetHeader, _ payload: RawSpan) -> Bool {
    guard TransportProtocol(rawValue: header.transport) == .udp, !header.isFragment,
      payload.byteCount >= 20
    else { return false }
    return DatagramClass(payload.extracting(8..<payload.byteCount)) == .rtp
  }
}

import ICE
import Wire

/// How sure it is that contents are what the ends of a call send, where nothing but their bytes
/// tells.
///
/// What agrees counts in bits: a magic cookie has 32 of them, a version two. Contents of a frame
/// that somebody only takes for one agree by chance now and then, and hardly several times.
struct ContentEvidence {
  private static let enough = 40
  /// The sources that are compared.
  private static let sourcesMaximum = 16

  private var bits = 0
  /// The sources of RTP, each with its last sequence number.
  private var sources: [(ssrc: UInt32, sequence: UInt16)] = []

  /// Whether it is hardly chance any more.
  var isEnough: Bool { bits >= Self.enough }

  /// Counts a content; false for one of no protocol that ends of a call speak (RFC 7983).
  mutating func add(_ bytes: RawSpan) -> Bool {
    switch DatagramClass(bytes) {
    case .stun: return addSTUN(bytes)
    case .dtls: return addDTLS(bytes)
    case .rtp: return addRTP(bytes)
    case .rtcp: return addRTCP(bytes)
    case .channelData, .other: return false
    }
  }

  private mutating func addSTUN(_ bytes: RawSpan) -> Bool {
    guard bytes.byteCount >= STUNMessage.headerLength,
      bytes.uint32(at: 4) == STUNMessage.magicCookie,
      Int(bytes.uint16(at: 2)) + STUNMessage.headerLength == bytes.byteCount
    else { return false }
    bits += 48
    return true
  }

  private mutating func addDTLS(_ bytes: RawSpan) -> Bool {
    // The short headers of 1.3 say too little to count (RFC 9147 section 4).
    guard bytes.byte(at: 0) < 32 else { return bytes.byteCount >= 17 }
    guard bytes.byteCount >= 13, bytes.byte(at: 1) == 0xfe, bytes.byte(at: 2) >= 0xfc,
      13 + Int(bytes.uint16(at: 11)) <= bytes.byteCount
    else { return false }
    bits += 16
    return true
  }

  private mutating func addRTP(_ bytes: RawSpan) -> Bool {
    guard bytes.byteCount >= 12 else { return false }
    let (sequence, ssrc) = (bytes.uint16(at: 2), bytes.uint32(at: 8))
    guard let known = sources.firstIndex(where: { $0.ssrc == ssrc }) else {
      if sources.count >= Self.sourcesMaximum { sources.removeFirst() }
      sources.append((ssrc, sequence))
      return true
    }
    if (1...16).contains(sequence &- sources[known].sequence) { bits += 20 }
    sources[known].sequence = sequence
    return true
  }

  private mutating func addRTCP(_ bytes: RawSpan) -> Bool {
    guard bytes.byteCount >= 8, (200...207).contains(bytes.byte(at: 1)),
      4 * (Int(bytes.uint16(at: 2)) + 1) <= bytes.byteCount
    else { return false }
    bits += 12
    return true
  }
}

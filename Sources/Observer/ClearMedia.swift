import RTP
import Wire

/// Judges from the payloads of a transport whether its RTP is in the clear, where nothing says so.
///
/// What SRTP encrypts is uniformly random, independently in every packet (RFC 3711 section 4.1,
/// RFC 7714). Payloads in the clear are not: each codec begins its payloads with a header that has
/// few values (the TOC of Opus, the descriptors of VP8 and VP9, NAL unit types, the aggregation
/// header of AV1, the block header of RED, the mode of AMR). So few values of the first byte show
/// the clear. That 16 random bytes have at most 3 values happens with a probability of at most
/// C(256,3) * (3/256)^16 = 2e-25, 32 with at most 8 of 1e-33, 64 with at most 16 of 1e-52: a
/// source that is encrypted is taken for clear once in 10^24, however long it lasts.
///
/// Codecs whose payloads begin with samples (G.711, G.729, GSM, G.723.1, iLBC) have lengths that
/// are those of the time that they last. A tag makes SRTP longer by a constant, so an encrypted
/// stream has the right ratio never, not seldom.
struct ClearMedia {
  /// How many sources are looked at, and how many packets of each.
  private static let sourcesMaximum = 64
  private static let packetsMaximum = 64
  /// After how many packets up to how many values of the first byte show the clear.
  private static let limits: [(packets: Int, values: Int)] = [(16, 3), (32, 8), (64, 16)]
  /// How many packets in a row have to last as long as their samples do; of G.723.1, whose shorter
  /// frames are with a tag of four bytes as long as its longer ones, the two bits that state the
  /// length have to fit as well: by chance once in 4^40, which is 10^24.
  private static let lengthsMinimum = 8
  private static let g723Minimum = 40

  /// What is counted of one payload type of a source.
  private struct Source {
    let end: Int
    let ssrc: UInt32
    let payloadType: UInt8
    var packets = 0
    /// The values of the first byte that were seen.
    var values: [4 of UInt64] = .init(repeating: 0)
    var valueCount = 0
    var sequence: UInt16 = 0
    var timestamp: UInt32 = 0
    var length = 0
    var first: UInt8 = 0
    /// How many packets in a row lasted as long as their samples.
    var fitting = 0

    init(_ header: RTPHeader, from end: Int) {
      (self.end, ssrc, payloadType) = (end, header.ssrc, header.payloadType)
    }

    mutating func add(first: UInt8) {
      let (word, bit) = (Int(first >> 6), UInt64(1) << UInt64(first & 63))
      guard values[word] & bit == 0 else { return }
      values[word] |= bit
      valueCount += 1
    }
  }

  private var sources: [Source] = []

  /// Looks at a packet of an end; true once it shows together with those before that the media is
  /// in the clear.
  mutating func isShown(by header: RTPHeader, _ packet: RawSpan, from end: Int) -> Bool {
    guard let place = place(of: header, from: end) else { return false }
    let source = sources[place]
    guard source.packets < Self.packetsMaximum, !header.payload.isEmpty,
      header.payload.upperBound <= packet.byteCount
    else { return false }
    // A packet that comes once more, or late, shows nothing that its first copy did not.
    let step = header.sequence &- source.sequence
    guard source.packets == 0 || (1..<0x8000).contains(step) else { return false }
    if source.packets > 0, step == 1 {
      let ticks = header.timestamp &- source.timestamp
      let fits = Self.lasts(source.length, ticks, source.payloadType, source.first)
      // The last packet before a pause lasts shorter than the pause.
      sources[place].fitting = fits ? source.fitting + 1 : 0
    }
    sources[place].packets += 1
    sources[place].sequence = header.sequence
    sources[place].timestamp = header.timestamp
    sources[place].length = header.payload.count
    sources[place].first = packet.byte(at: header.payload.lowerBound)
    sources[place].add(first: sources[place].first)
    let now = sources[place]
    let isG723 = now.payloadType == 4
    if now.fitting >= (isG723 ? Self.g723Minimum : Self.lengthsMinimum) { return true }
    for (packets, values) in Self.limits where now.packets == packets && now.valueCount <= values {
      return true
    }
    return false
  }

  private mutating func place(of header: RTPHeader, from end: Int) -> Int? {
    let known = sources.firstIndex {
      $0.ssrc == header.ssrc && $0.payloadType == header.payloadType && $0.end == end
    }
    if let known { return known }
    guard sources.count < Self.sourcesMaximum else { return nil }
    sources.append(Source(header, from: end))
    return sources.count - 1
  }

  /// Whether so many bytes are samples of so many ticks, in a codec of constant rate that the
  /// payload type may stand for (RFC 3551 sections 4.5 and 6, RFC 3952 section 3).
  private static func lasts(
    _ bytes: Int, _ ticks: UInt32, _ payloadType: UInt8, _ first: UInt8
  ) -> Bool {
    // Of 2.5 ms at 8 kHz to 240 ms at 44.1 kHz.
    guard (20...10_584).contains(ticks), bytes > 0 else { return false }
    let ticks = Int(ticks)
    switch payloadType {
    case 0, 8, 9: return bytes == ticks
    case 3: return bytes * 160 == 33 * ticks
    case 4:
      return first & 3 == 0 && bytes * 240 == 24 * ticks
        || first & 3 == 1 && bytes * 240 == 20 * ticks
    case 5, 6, 16, 17: return bytes == 4 + ticks / 2
    case 10, 11: return bytes == (payloadType == 10 ? 4 : 2) * ticks
    case 15: return bytes * 40 == 10 * ticks
    case 18: return bytes * 80 == 10 * ticks
    // G.711 under another number, or iLBC of 20 and 30 ms.
    case 96...127:
      return bytes == ticks || bytes * 160 == 38 * ticks || bytes * 240 == 50 * ticks
    default: return false
    }
  }
}

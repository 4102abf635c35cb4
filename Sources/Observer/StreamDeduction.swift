import RTP
import Wire

/// Concludes from its packets what a stream carries where nothing says so, and how sure that is.
///
/// Codecs show in the headers of payloads that can be read, clocks in how timestamps grow with
/// time. Both are judged again as packets come, ever more seldom: a burst at the beginning, or a
/// pause, makes the first judgement wrong and later ones right.
struct StreamDeduction {
  /// How many retransmissions have to fit to another stream.
  private static let repairsMinimum = 2
  /// From how many packets on something is concluded, and how far apart conclusions lie.
  private static let packetsMinimum = 12
  private static let growth = 4

  private var packets = 0
  private var nextJudgement = packetsMinimum
  private var clock = StreamClock()
  private var shapes = PayloadShapes()
  private var repairs: [(ssrc: UInt32, count: Int)] = []
  /// What was concluded last.
  private(set) var meaning: PayloadMeaning?
  /// Whether payloads show the codec; else its clock alone is known, and what mostly has it.
  private(set) var isSure = false
  private(set) var isOver = false

  /// Ends it: something else tells.
  mutating func stop() { isOver = true }

  /// Looks at a packet; returns what its payload type stands for once that is clear enough, and
  /// again when it turns out to be something else.
  mutating func take(_ header: RTPHeader, _ packet: RawSpan, isClear: Bool, at now: Instant)
    -> PayloadMeaning?
  {
    guard !isOver else { return nil }
    packets += 1
    let spacing = clock.add(header, at: now)
    let startCode = shapes.startCode
    if isClear { shapes.add(header, packet, spacing) }
    guard packets >= nextJudgement || startCode != shapes.startCode else { return nil }
    nextJudgement = max(nextJudgement, packets + max(4, packets / Self.growth))
    guard let judged = judge(header.payloadType), judged != meaning else { return nil }
    meaning = judged
    return judged
  }

  private mutating func judge(_ type: UInt8) -> PayloadMeaning? {
    let type = shapes.payloadType ?? clock.payloadType ?? type
    if let codec = shapes.codec(isVideo: clock.isVideo) {
      isSure = true
      let kind = StaticPayloadTypes.kind(of: codec) ?? .audio
      return PayloadMeaning(
        payloadType: type, codec: codec, clockRate: StaticPayloadTypes.usualClockRate(of: codec),
        kind: codec == "red" && clock.rate == 90_000 ? .video : kind, how: .deduced)
    }
    guard let rate = clock.rate else { return nil }
    isSure = false
    let isOpus = rate == 48_000 && !shapes.isReadable
    return PayloadMeaning(
      payloadType: type, codec: isOpus ? "opus" : "", clockRate: rate,
      kind: rate == 90_000 ? .video : .audio, how: .deduced)
  }

  /// Takes a packet that would send another one again; gives its stream once that is clear.
  ///
  /// It has a number, and a time, that the stream had lately (RFC 4588 section 4).
  mutating func takeRepair(of ssrc: UInt32) -> UInt32? {
    let index = repairs.firstIndex { $0.ssrc == ssrc } ?? repairs.count
    if index == repairs.count { repairs.append((ssrc, 0)) }
    repairs[index].count += 1
    guard repairs[index].count >= Self.repairsMinimum else { return nil }
    isOver = true
    return ssrc
  }

  /// The codec of a key frame that begins with this payload; nil for anything else.
  static func videoFrame(_ payload: RawSpan) -> String? {
    let count = payload.byteCount
    var reader = ByteReader(payload)
    // A key frame of VP8 has a start code (RFC 6386 section 9.1).
    if let descriptor = try? VP8Descriptor(parsing: &reader), descriptor.beginsFrame,
      reader.remaining >= 10
    {
      let start = reader.offset
      if payload.byte(at: start) & 1 == 0, payload.byte(at: start + 3) == 0x9d,
        payload.byte(at: start + 4) == 0x01, payload.byte(at: start + 5) == 0x2a
      {
        return "vp8"
      }
    }
    // And so has one of VP9 (VP9 bitstream specification, section 7.2.1).
    reader = ByteReader(payload)
    if let descriptor = try? VP9Descriptor(parsing: &reader), descriptor.beginsVideoFrame,
      !descriptor.isInterPredicted, (try? VP9FrameHeader(parsing: reader.rest()))?.isKey ?? false
    {
      return "vp9"
    }
    // Sequence parameters of H.264, alone or first in an aggregate (RFC 6184 section 5.2).
    let first = payload.byte(at: 0)
    if first & 0x9f == 7, count >= 4, [66, 77, 88, 100].contains(payload.byte(at: 1)) {
      return "h264"
    }
    if first & 0x9f == 24, count >= 6, payload.byte(at: 3) & 0x9f == 7,
      Int(payload.uint16(at: 1)) <= count - 3, [66, 77, 88, 100].contains(payload.byte(at: 4))
    {
      return "h264"
    }
    // A new coded video sequence of AV1 begins with its sequence header (AV1 RTP, section 4.4),
    // whose OBU has the type 1, and a length only where several elements follow.
    if first & 0x8f == 0x08, count >= 12 {
      let hasLength = first & 0x30 != 0x10
      let unit = payload.byte(at: hasLength ? 2 : 1)
      if unit & 0xf8 == 0x08, !hasLength || (8...40).contains(payload.byte(at: 1)) { return "av1" }
    }
    return nil
  }
}

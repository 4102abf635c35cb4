import RTP
import Wire

/// Concludes from its first packets what a stream carries where nothing says so.
///
/// Clocks show in how timestamps grow with time; codecs in what their payloads begin with, when
/// those can be read. It gives up after a while.
struct StreamDeduction {
  /// How many packets are looked at for a clock, and for a video frame that shows its codec.
  private static let packetsMaximum = 400
  private static let readableMaximum = 4000
  /// From how many packets on, and over what time, a clock is concluded.
  private static let packetsMinimum = 12
  private static let timeMinimum = Interval.milliseconds(300)
  /// How many retransmissions have to fit to another stream.
  private static let repairsMinimum = 2

  private var packets = 0
  private var readable = 0
  private var began: Instant?
  private var firstTime: UInt32 = 0
  private var lastTime: UInt32 = 0
  private var lastAt = Instant.zero
  private var sharesTimes = false
  /// Packets whose payload could be one of Opus.
  private var opusLike = 0
  private var clock: UInt32 = 0
  /// The codec of a video frame that was seen.
  private var codec: String?
  private var repairs: [(ssrc: UInt32, count: Int)] = []
  private(set) var isOver = false

  /// Ends it: something else tells.
  mutating func stop() { isOver = true }

  /// Takes a packet; gives what its payload type stands for once that is clear enough, and again
  /// when more is.
  mutating func take(_ header: RTPHeader, _ packet: RawSpan, isClear: Bool, at now: Instant)
    -> PayloadMeaning?
  {
    guard !isOver else { return nil }
    packets += 1
    if began == nil {
      began = now
      firstTime = header.timestamp
    } else if header.timestamp == lastTime {
      sharesTimes = true
    }
    lastTime = header.timestamp
    lastAt = now
    var isNews = false
    if isClear, header.payload.count > 2, header.payload.upperBound <= packet.byteCount {
      readable += 1
      let payload = packet.extracting(header.payload)
      if codec == nil, let shown = StreamDeduction.videoFrame(payload) {
        codec = shown
        isNews = clock == 90_000
      }
      if StreamDeduction.isOpusLike(payload) { opusLike += 1 }
    }
    if clock == 0, packets >= Self.packetsMinimum, let began, now - began >= Self.timeMinimum {
      clock = shownClock(began)
      isNews = clock != 0
    }
    let isReadable = readable * 2 > packets
    if clock == 90_000 {
      isOver = codec != nil || !isReadable || packets >= Self.readableMaximum
    } else {
      isOver = clock != 0 || packets >= Self.packetsMaximum
    }
    guard isNews else { return nil }
    if clock == 90_000 { return meaning(header, codec ?? "", clock, .video) }
    let isOpus = clock == 48_000 && (readable == 0 || opusLike > readable * 9 / 10)
    return meaning(header, isOpus ? "opus" : "", clock, .audio)
  }

  /// The clock by which timestamps grow with time; 0 when it is none of the usual ones.
  private func shownClock(_ began: Instant) -> UInt32 {
    let rate = Double(lastTime &- firstTime) / (lastAt - began).seconds
    // Several packets of one time are parts of a video frame.
    let clocks: [UInt32] = sharesTimes ? [90_000] : [8000, 16_000, 32_000, 48_000, 90_000]
    return clocks.first { abs(rate - Double($0)) < 0.12 * Double($0) } ?? 0
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

  private func meaning(
    _ header: RTPHeader, _ codec: String, _ clock: UInt32, _ kind: MediaKind
  ) -> PayloadMeaning {
    PayloadMeaning(
      payloadType: header.payloadType, codec: codec, clockRate: clock, kind: kind, how: .deduced)
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

  /// Whether a payload may be one of Opus: its first byte tells how long it is (RFC 6716 3.1).
  private static func isOpusLike(_ payload: RawSpan) -> Bool {
    let code = payload.byte(at: 0) & 3
    return code < 2 || payload.byteCount > 2
  }
}

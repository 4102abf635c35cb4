import RTP
package import Wire

/// A payload type's encoding, and its origin.
package struct PayloadMeaning: Hashable, Sendable {
  package var payloadType: UInt8
  /// The encoding name in lower case; `rtx` for retransmissions.
  package var codec: String
  /// The clock rate in Hz.
  package var clockRate: UInt32
  /// The kind of media; nil if unknown.
  package var kind: MediaKind?
  package var how: Knowledge
  /// For retransmissions, the original packets' payload type if stated.
  package var associated: UInt8?
  /// A description's format parameters.
  package var parameters: String?

  package init(
    payloadType: UInt8, codec: String, clockRate: UInt32, kind: MediaKind?, how: Knowledge,
    associated: UInt8? = nil
  ) {
    self.payloadType = payloadType
    self.codec = codec
    self.clockRate = clockRate
    self.kind = kind
    self.how = how
    self.associated = associated
  }
}

/// The static payload types (RFC 3551 section 6).
enum StaticPayloadTypes {
  private static let table: [(UInt8, String, UInt32, MediaKind)] = [
    (0, "pcmu", 8000, .audio), (3, "gsm", 8000, .audio), (4, "g723", 8000, .audio),
    (5, "dvi4", 8000, .audio), (6, "dvi4", 16_000, .audio), (7, "lpc", 8000, .audio),
    (8, "pcma", 8000, .audio), (9, "g722", 8000, .audio), (10, "l16", 44_100, .audio),
    (11, "l16", 44_100, .audio), (12, "qcelp", 8000, .audio), (13, "cn", 8000, .audio),
    (14, "mpa", 90_000, .audio), (15, "g728", 8000, .audio), (16, "dvi4", 11_025, .audio),
    (17, "dvi4", 22_050, .audio), (18, "g729", 8000, .audio), (25, "celb", 90_000, .video),
    (26, "jpeg", 90_000, .video), (28, "nv", 90_000, .video), (31, "h261", 90_000, .video),
    (32, "mpv", 90_000, .video), (33, "mp2t", 90_000, .video), (34, "h263", 90_000, .video),
  ]

  static func meaning(of payloadType: UInt8) -> PayloadMeaning? {
    table.first { $0.0 == payloadType }.map {
      PayloadMeaning(
        payloadType: payloadType, codec: $0.1, clockRate: $0.2, kind: $0.3, how: .standard)
    }
  }

  private static let sounds = [
    "opus", "red", "cn", "telephone-event", "multiopus", "lyra", "isac", "ilbc", "speex", "amr",
    "amr-wb", "evs", "l24", "g7221", "mp4a-latm", "mpeg4-generic", "g726-32",
  ]

  static func kind(of codec: String) -> MediaKind? {
    if let known = table.first(where: { $0.1 == codec }) { return known.3 }
    if codec == "rtx" { return nil }
    return sounds.contains(codec) ? .audio : .video
  }

  /// Returns an encoding's default clock rate.
  static func usualClockRate(of codec: String) -> UInt32 {
    if codec == "opus" || codec == "red" { return 48_000 }
    if let known = table.first(where: { $0.1 == codec }) { return known.2 }
    return kind(of: codec) == .audio ? 8000 : 90_000
  }
}

// MARK: - PayloadShapes

/// Recognizes the codec of unencrypted payloads by their headers.
///
/// Each codec has a test that all of its packets pass and few others do; the codec whose test
/// nearly all packets pass is chosen. A key frame's start code alone identifies the codec.
struct PayloadShapes {
  /// The number of packets before headers are judged, and the percentage that must pass.
  private static let packetsMinimum = 16
  private static let passingPercent = 95
  private static let typesMaximum = 4
  private static let innerMaximum = 3
  /// The accepted error of timestamps, in ticks: some senders take them from a separate clock.
  private static let opusTolerance = 60

  /// The codecs with their tests, the most specific first.
  private static let tests: [(codec: String, test: Test)] = [
    ("opus", isOpus), ("red", isRED), ("h265", isH265), ("h264", isH264), ("vp8", isVP8),
    ("vp9", isVP9), ("av1", isAV1),
  ]

  /// A packet, and how it relates to the previous one.
  private struct Sample {
    var header: RTPHeader
    var spacing: StreamClock.Spacing

    /// Whether the packet is the first with its timestamp, as a frame's first packet is; nil if
    /// unknown.
    var beginsTime: Bool? {
      switch spacing {
      case .unknown: nil
      case .sameTime: false
      case .step: true
      }
    }
  }

  private typealias Test = @Sendable (_ payload: RawSpan, _ sample: Sample, _ before: Int) -> Bool

  /// A payload type's counters.
  private struct Counts {
    let type: UInt8
    var packets = 0
    var passed = [Int](repeating: 0, count: PayloadShapes.tests.count)
    /// The last payload's duration in ticks if it is Opus, and the number of payloads whose
    /// duration matched the next timestamp.
    var duration = 0
    var lasting = 0
    /// Packets with redundant payloads (RFC 2198), and the payload type inside.
    var redundant = 0
    var innerType: UInt8?
    var startCode: String?
    /// The inner payload types if the payloads are RED with a single block, and whether there are
    /// too many of them for RED.
    var inner: [Inner] = []
    var isMixed = false

    /// The video inside RED with a single block, and whether a start code proves it; nil if there
    /// is none.
    var innerVideo: (type: UInt8, codec: String, isSure: Bool)? {
      let all = inner.reduce(0) { $0 + $1.packets }
      guard !isMixed, let main = inner.max(by: { $0.packets < $1.packets }),
        all * 100 >= packets * PayloadShapes.passingPercent
      else { return nil }
      if let code = main.startCode, code.hasPrefix("vp") { return (main.type, code, true) }
      guard main.packets >= PayloadShapes.packetsMinimum else { return nil }
      for (place, (codec, _)) in PayloadShapes.tests.enumerated()
      where main.passed[place] * 100 >= main.packets * PayloadShapes.passingPercent {
        return (main.type, codec, false)
      }
      return nil
    }

    /// Counts a payload if it is RED with the same inner type as earlier payloads; returns whether
    /// it was counted.
    mutating func isOfOneType(_ payload: RawSpan) -> Bool {
      guard let inner = RED.primary(payload, in: 0..<payload.byteCount) else { return false }
      if let innerType, innerType != inner.payloadType { return false }
      innerType = inner.payloadType
      if inner.redundantBlocks > 0 { redundant += 1 }
      return true
    }
  }

  /// Counters for a payload type inside RED; video has one, and its FEC another.
  private struct Inner {
    let type: UInt8
    var packets = 0
    var passed = [Int](repeating: 0, count: PayloadShapes.tests.count)
    var startCode: String?
  }

  private var counts: [Counts] = []
  /// Whether aggregates must be complete and blocks inside RED are examined; false in older takes.
  private let isClose: Bool

  init(isClose: Bool = true) { self.isClose = isClose }

  /// Whether any unencrypted payload was examined.
  var isReadable: Bool { !counts.isEmpty }

  /// The most frequent payload type; nil before the first packet.
  var payloadType: UInt8? { main?.type }

  /// The codec proved by a key frame's start code; nil if there was none.
  ///
  /// The start codes of H.264 and AV1 are so short that audio contains them by chance.
  var startCode: String? { main?.startCode }

  private var main: Counts? { counts.max { $0.packets < $1.packets } }

  /// Returns the codec; nil if it is not recognized.
  ///
  /// - Parameter isVideo: whether the clock is a video clock.
  func codec(isVideo: Bool) -> String? {
    guard let main else { return nil }
    if let startCode = main.startCode, isVideo || startCode.hasPrefix("vp") { return startCode }
    if main.innerVideo?.isSure == true { return "red" }
    guard main.packets >= Self.packetsMinimum else { return nil }
    for (place, (codec, _)) in Self.tests.enumerated()
    where main.passed[place] * 100 >= main.packets * Self.passingPercent {
      switch codec {
      // Most payloads are valid as Opus, but in few other streams the durations match the
      // timestamps.
      case "opus" where main.lasting * 2 < main.packets: continue
      // Without redundant payloads, RED is just a constant byte, which proves nothing.
      case "red" where isVideo || main.redundant * 4 < main.packets: continue
      case "opus", "red": return codec
      default: if isVideo { return codec }
      }
    }
    return isVideo && main.innerVideo != nil ? "red" : nil
  }

  /// The payload type and codec of video inside RED; nil if there is none.
  var innerVideo: (type: UInt8, codec: String)? {
    main?.innerVideo.map { ($0.type, $0.codec) }
  }

  /// Runs each codec's test on the payload of an unencrypted packet.
  mutating func add(_ header: RTPHeader, _ packet: RawSpan, _ spacing: StreamClock.Spacing) {
    guard header.payload.count > 2, header.payload.upperBound <= packet.byteCount else { return }
    var place = counts.firstIndex { $0.type == header.payloadType }
    if place == nil {
      guard counts.count < Self.typesMaximum else { return }
      counts.append(Counts(type: header.payloadType))
      place = counts.count - 1
    }
    guard let place else { return }
    let payload = packet.extracting(header.payload)
    let sample = Sample(header: header, spacing: spacing)
    counts[place].packets += 1
    for (index, (codec, test)) in Self.tests.enumerated()
    where test(payload, sample, counts[place].duration) {
      if isClose, !Self.isWhole(payload, codec) { continue }
      if codec == "red", !counts[place].isOfOneType(payload) { continue }
      counts[place].passed[index] += 1
    }
    if case .step(let ticks) = spacing, counts[place].duration > 0,
      abs(Int(ticks) - counts[place].duration) <= Self.opusTolerance
    {
      counts[place].lasting += 1
    }
    counts[place].duration = Self.opusDuration(payload)
    if counts[place].startCode == nil {
      counts[place].startCode = StreamDeduction.videoFrame(payload)
    }
    if isClose { Self.lookInside(&counts[place], payload, sample) }
  }

  /// Examines the block inside a payload that is RED with a single block.
  private static func lookInside(_ counts: inout Counts, _ payload: RawSpan, _ sample: Sample) {
    guard let block = RED.primary(payload, in: 0..<payload.byteCount), block.redundantBlocks == 0,
      block.payload.count > 2
    else { return }
    var place = counts.inner.firstIndex { $0.type == block.payloadType }
    if place == nil {
      guard counts.inner.count < innerMaximum else { return counts.isMixed = true }
      counts.inner.append(Inner(type: block.payloadType))
      place = counts.inner.count - 1
    }
    guard let place else { return }
    let content = payload.extracting(block.payload)
    counts.inner[place].packets += 1
    for (index, (codec, test)) in tests.enumerated()
    where codec != "opus" && codec != "red" && test(content, sample, 0) && isWhole(content, codec) {
      counts.inner[place].passed[index] += 1
    }
    if counts.inner[place].startCode == nil {
      counts.inner[place].startCode = StreamDeduction.videoFrame(content)
    }
  }

  // MARK: Tests

  /// Returns whether an aggregate's lengths add up to the payload (RFC 6184 section 5.7.1, RFC 7798
  /// section 4.4.2); true for all other payloads.
  private static func isWhole(_ payload: RawSpan, _ codec: String) -> Bool {
    let first = payload.byte(at: 0)
    var place: Int
    switch codec {
    case "h264" where first & 0x1f == 24: place = 1
    case "h265" where first >> 1 == 48: place = 2
    default: return true
    }
    while place + 2 < payload.byteCount {
      let size = Int(payload.uint16(at: place))
      guard size > 0 else { return false }
      place += 2 + size
    }
    return place == payload.byteCount
  }

  /// Tests VP8's descriptor: reserved bits are 0, and a frame's first packet begins a partition
  /// (RFC 7741 section 4.2).
  private static func isVP8(_ payload: RawSpan, _ sample: Sample, _: Int) -> Bool {
    let first = payload.byte(at: 0)
    guard first & 0x48 == 0 else { return false }
    if first & 0x80 != 0, payload.byte(at: 1) & 0x0f != 0 { return false }
    let begins = first & 0x17 == 0x10
    return sample.beginsTime.map { $0 == begins || !$0 && first & 0x10 != 0 } ?? true
  }

  /// Tests VP9's descriptor: a packet with the marker must end a frame, and the first packet of a
  /// timestamp must begin one (RFC 9628 section 4.2).
  private static func isVP9(_ payload: RawSpan, _ sample: Sample, _: Int) -> Bool {
    let first = payload.byte(at: 0)
    let (begins, ends) = (first & 0x08 != 0, first & 0x04 != 0)
    if sample.header.marker, !ends { return false }
    if sample.beginsTime == true, !begins { return false }
    var reader = ByteReader(payload)
    guard let descriptor = try? VP9Descriptor(parsing: &reader) else { return false }
    return descriptor.pictureID != nil || descriptor.layer != nil
  }

  /// Tests for an H.264 NAL unit, aggregate or fragment (RFC 6184 section 5.2): the first bit is 0,
  /// and the first packet of a timestamp does not end a fragmented unit.
  private static func isH264(_ payload: RawSpan, _ sample: Sample, _: Int) -> Bool {
    let first = payload.byte(at: 0)
    guard first & 0x80 == 0 else { return false }
    switch first & 0x1f {
    case 1, 5...9, 24: return true
    case 28:
      let head = payload.byte(at: 1)
      // Start and end are not both set, and the reserved bit is 0.
      guard head & 0xc0 != 0xc0, head & 0x20 == 0, (1...12).contains(head & 0x1f) else {
        return false
      }
      return !(sample.beginsTime == true && head & 0x40 != 0)
    default: return false
    }
  }

  /// Tests for an H.265 NAL unit (RFC 7798 section 4.4): a two-byte header, in the base layer.
  private static func isH265(_ payload: RawSpan, _: Sample, _: Int) -> Bool {
    let (first, second) = (payload.byte(at: 0), payload.byte(at: 1))
    guard first & 0x81 == 0, second & 0xf8 == 0, second & 7 != 0 else { return false }
    let type = first >> 1
    return type <= 9 || (16...21).contains(type) || (32...40).contains(type) || type == 48
      || type == 49
  }

  /// Tests AV1's aggregation header (AV1 RTP section 4.4): reserved bits are 0, and a new timestamp
  /// begins with a valid OBU rather than the continuation of one.
  private static func isAV1(_ payload: RawSpan, _ sample: Sample, _: Int) -> Bool {
    let first = payload.byte(at: 0)
    guard first & 0x07 == 0 else { return false }
    let continues = first & 0x80 != 0
    guard let begins = sample.beginsTime else { return true }
    guard begins else { return continues || first & 0x30 != 0 }
    guard !continues else { return false }
    let unit = payload.byte(at: first & 0x30 == 0x10 ? 1 : 2)
    let type = unit >> 3 & 0x0f
    return unit & 0x81 == 0 && (1...8).contains(type)
  }

  /// Tests whether a payload's duration is valid (RFC 6716 section 3.1), and whether the timestamp
  /// has advanced by at least the previous payload's duration; across a pause it advances by more.
  private static func isOpus(_ payload: RawSpan, _ sample: Sample, _ before: Int) -> Bool {
    guard opusDuration(payload) > 0 else { return false }
    guard case .step(let ticks) = sample.spacing, before > 0 else { return true }
    return Int(ticks) + opusTolerance >= before
  }

  /// Returns an Opus payload's duration in 48 kHz ticks; 0 if it is invalid.
  private static func opusDuration(_ payload: RawSpan) -> Int {
    let first = payload.byte(at: 0)
    let configuration = Int(first >> 3)
    let frame =
      switch configuration {
      case ..<12: [480, 960, 1920, 2880][configuration & 3]
      case ..<16: [480, 960][configuration & 1]
      default: [120, 240, 480, 960][configuration & 3]
      }
    switch first & 3 {
    case 0: return frame
    case 1: return payload.byteCount % 2 == 1 ? 2 * frame : 0
    case 2: return 2 * frame
    default:
      let count = Int(payload.byte(at: 1) & 0x3f)
      return (1...48).contains(count) && count * frame <= 5760 ? count * frame : 0
    }
  }

  /// Tests whether RED's blocks fit into the payload (RFC 2198 section 3).
  private static func isRED(_ payload: RawSpan, _: Sample, _: Int) -> Bool {
    guard let inner = RED.primary(payload, in: 0..<payload.byteCount) else { return false }
    return inner.redundantBlocks <= 8 && inner.payloadType & 0x60 != 0x40
  }
}

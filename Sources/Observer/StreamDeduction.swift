import RTP
import Wire

/// Infers a stream's contents from its packets if nothing states them, and determines how certain
/// the result is.
///
/// Codecs are recognized by payload headers if those are readable, clocks by the growth of
/// timestamps. Both are judged again, less and less often, as packets arrive, because an initial
/// burst or a pause makes the first judgement wrong.
struct StreamDeduction {
  /// The number of retransmissions that must match another stream.
  private static let repairsMinimum = 2
  /// The first inference follows `packetsMinimum` packets; each later inference waits for a quarter
  /// (1/`growth`) more packets.
  private static let packetsMinimum = 12
  private static let growth = 4

  private var packets = 0
  private var nextJudgement = packetsMinimum
  private var clock = StreamClock()
  private var shapes: PayloadShapes
  private var repairs: [(ssrc: UInt32, count: Int)] = []
  private(set) var meaning: PayloadMeaning?
  /// Whether payloads identify the codec; otherwise the codec is the usual one for the clock rate.
  private(set) var isSure = false
  private(set) var isOver = false
  /// The video that RED carries, if any.
  private(set) var inner: PayloadMeaning?

  /// Creates a deduction that has seen no packets.
  ///
  /// - Parameter isClose: whether payloads are examined as closely as in current takes.
  init(isClose: Bool = true) { shapes = PayloadShapes(isClose: isClose) }

  mutating func stop() { isOver = true }

  /// Examines a packet; returns the encoding of the stream's main payload type once it is clear
  /// enough and whenever it changes, otherwise nil.
  mutating func examine(_ header: RTPHeader, _ packet: RawSpan, isClear: Bool, at now: Instant)
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
      inner = codec == "red" ? innerVideo : nil
      if inner != nil {
        return PayloadMeaning(
          payloadType: type, codec: codec, clockRate: 90_000, kind: .video, how: .deduced)
      }
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

  private var innerVideo: PayloadMeaning? {
    shapes.innerVideo.map { type, codec in
      PayloadMeaning(
        payloadType: type, codec: codec, clockRate: 90_000, kind: .video, how: .deduced)
    }
  }

  /// Records a packet that matches another stream; returns that stream once the match is certain,
  /// and nil until then.
  ///
  /// A match repeats a recent sequence number and timestamp from the stream (RFC 4588 section 4).
  mutating func examineRepair(of ssrc: UInt32) -> UInt32? {
    let index = repairs.firstIndex { $0.ssrc == ssrc } ?? repairs.count
    if index == repairs.count { repairs.append((ssrc, 0)) }
    repairs[index].count += 1
    guard repairs[index].count >= Self.repairsMinimum else { return nil }
    isOver = true
    return ssrc
  }

  /// Returns the codec if this payload begins a key frame; nil otherwise.
  static func videoFrame(_ payload: RawSpan) -> String? {
    let count = payload.byteCount
    var reader = ByteReader(payload)
    // A VP8 key frame has a start code (RFC 6386 section 9.1).
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
    // A VP9 key frame has a sync code (VP9 bitstream specification, section 7.2.1).
    reader = ByteReader(payload)
    if let descriptor = try? VP9Descriptor(parsing: &reader), descriptor.beginsVideoFrame,
      !descriptor.isInterPredicted, (try? VP9FrameHeader(parsing: reader.rest()))?.isKey ?? false
    {
      return "vp9"
    }
    // An H.264 key frame begins with a sequence parameter set, alone or first in an aggregate
    // (RFC 6184 section 5.2).
    let first = payload.byte(at: 0)
    if first & 0x9f == 7, count >= 4, [66, 77, 88, 100].contains(payload.byte(at: 1)) {
      return "h264"
    }
    if first & 0x9f == 24, count >= 6, payload.byte(at: 3) & 0x9f == 7,
      Int(payload.uint16(at: 1)) <= count - 3, [66, 77, 88, 100].contains(payload.byte(at: 4))
    {
      return "h264"
    }
    // A new coded video sequence of AV1 begins with a sequence header, an OBU of type 1 (AV1 RTP
    // section 4.4). The OBU has a length only if the packet contains several elements.
    if first & 0x8f == 0x08, count >= 12 {
      let hasLength = first & 0x30 != 0x10
      let unit = payload.byte(at: hasLength ? 2 : 1)
      if unit & 0xf8 == 0x08, !hasLength || (8...40).contains(payload.byte(at: 1)) { return "av1" }
    }
    return nil
  }
}

// MARK: - StreamClock

/// Determines the clock rate of a stream's timestamps.
///
/// In the long run, timestamps advance with the clock: the longer a stream is observed, the less
/// bursts and jitter matter. Before that, the rate is inferred from the steps between packets:
/// audio advances by packets of some milliseconds, and video has several packets per timestamp.
struct StreamClock {
  /// The relation of a packet to the previous one.
  enum Spacing {
    /// The packet does not directly follow another one, or its timestamp went back or jumped.
    case unknown
    /// The packet has the same timestamp.
    case sameTime
    /// The packet is this many ticks later.
    case step(UInt32)
  }

  private static let audioRates: [UInt32] = [8000, 16_000, 24_000, 32_000, 44_100, 48_000]
  /// The durations that Opus packets can have, in ticks (RFC 6716 section 2.1.4, RFC 7587 section
  /// 4.2).
  private static let opusSteps: Set<UInt32> = [120, 240, 480, 960, 1920, 2880, 3840, 4800, 5760]
  /// The maximum number of distinct steps and payload types to count.
  private static let stepsMaximum = 24
  private static let typesMaximum = 8
  /// The time for which a stream is observed before its clock rate is inferred.
  private static let timeMinimum = Interval.milliseconds(300)

  private var began: Instant?
  private var lastAt = Instant.zero
  private var elapsedTicks: Int64 = 0
  private var lastTime: UInt32 = 0
  private var lastSequence: UInt16 = 0
  private var steps: [(ticks: UInt32, count: Int)] = []
  private var stepCount = 0
  private var sameTimes = 0
  /// The number of packets that directly follow a packet with a later timestamp.
  private var backwards = 0
  private var types: [(type: UInt8, count: Int)] = []

  /// The most frequent payload type; nil before the first packet.
  var payloadType: UInt8? { types.max { $0.count < $1.count }?.type }

  /// Counts a packet; returns how it relates to the previous one.
  mutating func add(_ header: RTPHeader, at now: Instant) -> Spacing {
    if let known = types.firstIndex(where: { $0.type == header.payloadType }) {
      types[known].count += 1
    } else if types.count < Self.typesMaximum {
      types.append((header.payloadType, 1))
    }
    defer { (lastTime, lastSequence, lastAt) = (header.timestamp, header.sequence, now) }
    guard began != nil else {
      began = now
      return .unknown
    }
    let ticks = Int32(bitPattern: header.timestamp &- lastTime)
    // After a jump of minutes, the clock is measured from scratch.
    guard abs(Int64(ticks)) < 1 << 26 else {
      (began, elapsedTicks) = (now, 0)
      return .unknown
    }
    elapsedTicks += Int64(ticks)
    guard header.sequence &- lastSequence == 1 else { return .unknown }
    guard ticks > 0 else {
      if ticks == 0 { sameTimes += 1 } else { backwards += 1 }
      return ticks == 0 ? .sameTime : .unknown
    }
    let step = UInt32(ticks)
    stepCount += 1
    if let known = steps.firstIndex(where: { $0.ticks == step }) {
      steps[known].count += 1
    } else if steps.count < Self.stepsMaximum {
      steps.append((step, 1))
    }
    return .step(step)
  }

  /// The most frequent step; 0 before there is one.
  private var usualStep: (ticks: UInt32, count: Int) {
    steps.max { $0.count < $1.count } ?? (0, 0)
  }

  /// Whether packets repeatedly share a timestamp, as the packets of a video frame do.
  private var sharesTimes: Bool { sameTimes >= 2 && sameTimes * 50 > stepCount }

  var isVideo: Bool { sharesTimes || rate == 90_000 }

  /// The clock rate in Hz; nil if it is unusual or not known yet.
  var rate: UInt32? {
    guard let began, lastAt - began >= Self.timeMinimum, stepCount >= 3 else { return nil }
    let seconds = (lastAt - began).seconds
    let seen = Double(elapsedTicks) / seconds
    // Allows for queueing at the beginning or end, up to 300 ms, and for inaccurate clocks.
    let tolerance = min(0.5, 0.02 + 0.3 / seconds)
    func error(_ rate: UInt32) -> Double { abs(seen / Double(rate) - 1) }
    if sharesTimes { return error(90_000) < max(tolerance, 0.12) ? 90_000 : nil }
    let even = Self.audioRates.filter { error($0) < tolerance && steps(evenly: $0) }
    if let best = even.min(by: { error($0) < error($1) }) { return best }
    // For frames with one packet each, or audio with uneven steps, the rate follows from the
    // elapsed time. After a second the usual clock rates are distinguishable.
    guard backwards * 5 <= stepCount else { return nil }
    guard seconds >= 1, !Self.opusSteps.contains(usualStep.ticks) || seconds >= 10 else {
      return nil
    }
    let near = (Self.audioRates + [90_000]).filter { error($0) < min(tolerance, 0.12) }
    return near.min { error($0) < error($1) }
  }

  /// Returns whether the steps suit audio at this rate: nearly all are multiples of 2.5 ms, and at
  /// least half have the same length of at most 120 ms.
  private func steps(evenly rate: UInt32) -> Bool {
    // Steps can have any 32-bit value.
    let whole = steps.reduce(0) { sum, step in
      sum + (UInt64(step.ticks) * 400 % UInt64(rate) == 0 ? step.count : 0)
    }
    return whole * 10 >= stepCount * 9 && usualStep.count * 2 >= stepCount
      && UInt64(usualStep.ticks) * 1000 <= UInt64(rate) * 120
  }
}

// MARK: - ExtensionDeduction

/// Infers a transport's header extensions from their contents if no description lists them: numbers
/// that count across all streams, times that advance with the clock, audio levels, constant names.
struct ExtensionDeduction {
  /// The number of packets to examine, and how many of them must have an extension that is not
  /// text.
  private static let packetsMaximum = 600
  private static let packetsMinimum = 60

  /// Counters of one extension identifier.
  private struct Element {
    var count = 0
    var lengths: Set<Int> = []
    /// Each end's last value, read as a 16-bit number.
    var numbers: [UInt16?] = [nil, nil]
    var counting = 0
    var times: [(value: UInt32, at: Instant)?] = [nil, nil]
    var timing = 0
    var isText = true
    /// Each source's latest value, if it is printable text.
    var texts: [UInt32: [UInt8]] = [:]
    var textChanges = 0
    var onFrames = 0

    mutating func record(
      _ value: RawSpan, _ ssrc: UInt32, _ end: Int, _ kind: MediaKind?, _ now: Instant
    ) {
      count += 1
      lengths.insert(value.byteCount)
      if kind == .video { onFrames += 1 }
      if value.byteCount == 2 {
        let number = value.uint16(at: 0)
        if let last = numbers[end], (1...8).contains(number &- last) {
          counting += 1
        }
        numbers[end] = number
      }
      if value.byteCount == 3 {
        let time = UInt32(value.uint16(at: 0)) << 8 | UInt32(value.byte(at: 2))
        if let last = times[end] {
          // The value is a 24-bit fixed-point time in seconds with 18 fractional bits.
          let passed = Double((time &- last.value) & 0xff_ffff) / 262_144
          if abs(passed - (now - last.at).seconds) < 0.05 { timing += 1 }
        }
        times[end] = (time, now)
      }
      let text = [UInt8](value)
      let isTextHere =
        (1...16).contains(text.count) && text.allSatisfy { (0x21...0x7e).contains($0) }
      isText = isText && isTextHere
      guard isTextHere, texts.count < 64 else { return }
      if let known = texts.updateValue(text, forKey: ssrc), known != text {
        textChanges += 1
      }
    }
  }

  /// Counters by extension identifier; a call uses few.
  private var elements: [Int: Element] = [:]
  private var packets = 0
  private(set) var isOver = false

  mutating func stop() {
    isOver = true
    elements = [:]
  }

  /// Examines a packet; once enough packets are examined, returns the extensions that they have, or
  /// nil if there are none; returns nil before that.
  mutating func examine(
    _ header: RTPHeader, _ bytes: RawSpan, from end: Int, kind: MediaKind?, at now: Instant
  ) -> HeaderExtensionMap? {
    guard !isOver else { return nil }
    packets += 1
    var reader = HeaderExtensionElements(header)
    while let (id, range) = reader.next(in: bytes) {
      elements[Int(id), default: Element()].record(
        bytes.extracting(range), header.ssrc, end, kind, now)
    }
    guard packets >= Self.packetsMaximum else { return nil }
    let map = conclude()
    stop()
    return map == HeaderExtensionMap() ? nil : map
  }

  private func conclude() -> HeaderExtensionMap {
    var map = HeaderExtensionMap()
    for id in 1...255 {
      guard let element = elements[id], element.count > 4,
        element.count >= Self.packetsMinimum || element.isText, let number = UInt8(exactly: id)
      else { continue }
      let uri: HeaderExtensionURI
      if element.lengths == [2], element.counting * 10 > element.count * 8 {
        uri = .transportSequence
      } else if element.lengths == [3], element.timing * 10 > element.count * 8 {
        uri = .absoluteSendTime
      } else if element.isText, element.textChanges == 0 {
        // The first constant text is the section's name (MID). Another constant text that only
        // video packets have is the encoding's name (RID).
        let isEncoding = map.mid != 0 && element.onFrames == element.count
        uri = isEncoding ? .streamID : .mid
      } else if element.lengths == [1], element.onFrames == 0 {
        uri = .audioLevel
      } else {
        continue
      }
      map.add(uri: uri.rawValue, id: number)
    }
    return map
  }
}

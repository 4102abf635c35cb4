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
  private var shapes: PayloadShapes
  private var repairs: [(ssrc: UInt32, count: Int)] = []
  /// What was concluded last.
  private(set) var meaning: PayloadMeaning?
  /// Whether payloads show the codec; else its clock alone is known, and what mostly has it.
  private(set) var isSure = false
  private(set) var isOver = false
  /// What RED carries, where that is video.
  private(set) var inner: PayloadMeaning?

  /// - Parameter isClose: whether payloads are looked at as closely as in takes of today.
  init(isClose: Bool = true) { shapes = PayloadShapes(isClose: isClose) }

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

// MARK: - StreamClock

/// Finds the clock by which the timestamps of a stream run.
///
/// Over time they run as the clock does, whatever the network does to single packets: the longer a
/// stream was seen, the less bursts and jitter matter. Before that, the steps between packets tell:
/// audio steps by whole packets of some milliseconds, and video sends several packets of one time.
struct StreamClock {
  /// How a packet stands to the one before it.
  enum Spacing {
    /// It is the first one, or packets are missing between them.
    case unknown
    /// It has the time of the one before.
    case sameTime
    /// So many ticks later.
    case step(UInt32)
  }

  private static let audioRates: [UInt32] = [8000, 16_000, 24_000, 32_000, 44_100, 48_000]
  /// What packets of Opus last, in ticks (RFC 6716 section 2.1.4, RFC 7587 section 4.2).
  private static let opusSteps: Set<UInt32> = [120, 240, 480, 960, 1920, 2880, 3840, 4800, 5760]
  /// How many different steps and payload types are counted.
  private static let stepsMaximum = 24
  private static let typesMaximum = 8
  /// Over less time nothing is concluded.
  private static let timeMinimum = Interval.milliseconds(300)

  private var began: Instant?
  private var lastAt = Instant.zero
  private var elapsedTicks: Int64 = 0
  private var lastTime: UInt32 = 0
  private var lastSequence: UInt16 = 0
  private var steps: [(ticks: UInt32, count: Int)] = []
  private var stepCount = 0
  private var sameTimes = 0
  /// How many packets have an earlier time than the one before.
  private var backwards = 0
  private var types: [(type: UInt8, count: Int)] = []

  /// The payload type of most packets.
  var payloadType: UInt8? { types.max { $0.count < $1.count }?.type }

  /// Counts a packet.
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
    // A jump of minutes is a new beginning, with which time is measured anew.
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

  /// The step that most packets have.
  private var usualStep: (ticks: UInt32, count: Int) {
    steps.max { $0.count < $1.count } ?? (0, 0)
  }

  /// Whether several packets have one time now and then: parts of a video frame.
  private var sharesTimes: Bool { sameTimes >= 2 && sameTimes * 50 > stepCount }

  /// Whether the clock is that of video, as far as can be told.
  var isVideo: Bool { sharesTimes || rate == 90_000 }

  /// The clock in Hz; nil where it is none of the usual ones, or cannot be told yet.
  var rate: UInt32? {
    guard let began, lastAt - began >= Self.timeMinimum, stepCount >= 3 else { return nil }
    let seconds = (lastAt - began).seconds
    let seen = Double(elapsedTicks) / seconds
    // What waits somewhere at the beginning or the end, 300 ms at most, and clocks that are not
    // quite right.
    let tolerance = min(0.5, 0.02 + 0.3 / seconds)
    func error(_ rate: UInt32) -> Double { abs(seen / Double(rate) - 1) }
    if sharesTimes { return error(90_000) < max(tolerance, 0.12) ? 90_000 : nil }
    let even = Self.audioRates.filter { error($0) < tolerance && steps(evenly: $0) }
    if let best = even.min(by: { error($0) < error($1) }) { return best }
    // Frames of one packet each, or audio that does not step evenly: time has to tell. Within a
    // second the usual clocks are far enough apart.
    guard backwards * 5 <= stepCount else { return nil }
    guard seconds >= 1, !Self.opusSteps.contains(usualStep.ticks) || seconds >= 10 else {
      return nil
    }
    let near = (Self.audioRates + [90_000]).filter { error($0) < min(tolerance, 0.12) }
    return near.min { error($0) < error($1) }
  }

  /// Whether nearly all steps are whole packets of audio with this clock: multiples of 2.5 ms, most
  /// of them of one length up to 120 ms.
  private func steps(evenly rate: UInt32) -> Bool {
    // Steps have any 32 bits.
    let whole = steps.reduce(0) { sum, step in
      sum + (UInt64(step.ticks) * 400 % UInt64(rate) == 0 ? step.count : 0)
    }
    return whole * 10 >= stepCount * 9 && usualStep.count * 2 >= stepCount
      && UInt64(usualStep.ticks) * 1000 <= UInt64(rate) * 120
  }
}

// MARK: - ExtensionDeduction

/// Concludes from their contents which header extensions a transport has, where no description
/// says so: numbers that count over all streams, times that run as time does, levels of sounds,
/// names that stay.
struct ExtensionDeduction {
  /// How many packets are looked at, and after how many something is concluded.
  private static let packetsMaximum = 600
  private static let packetsMinimum = 60

  /// What is counted of one identifier.
  private struct Element {
    var count = 0
    var lengths: Set<Int> = []
    /// By the end that sends.
    var numbers: [UInt16?] = [nil, nil]
    var counting = 0
    var times: [(value: UInt32, at: Instant)?] = [nil, nil]
    var timing = 0
    var isText = true
    /// The text of each source, while it stays the same.
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
          // Seconds with 18 bits of fraction, of which 6 bits are whole.
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

  /// By identifier, for those that were there: few, where a call is one.
  private var elements: [Int: Element] = [:]
  private var packets = 0
  private(set) var isOver = false

  /// Ends it: something else tells.
  mutating func stop() {
    isOver = true
    elements = [:]
  }

  /// Takes a packet; gives the extensions once they are clear.
  mutating func take(
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
        // The names of sections come first; those of encodings are on video frames alone.
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

import RTP
import Wire

/// A sent stream: sequence numbers, packet history and counters.
struct SendStream {
  let mid: String
  let kind: MediaKind
  let ssrc: UInt32
  /// The simulcast layer; nil for the section's only stream.
  private(set) var rid: String?
  /// Whether the section currently sends.
  private(set) var isActive = true
  /// Whether frames were dropped that later frames may depend on.
  private(set) var lostFrames = false
  private(set) var agreement: SendAgreement
  private(set) var demands = KeyframeDemands()

  private var naming: SectionNaming
  private var numbers: SendNumbers
  private var history = PacketHistory()
  private var tally: SendTally
  private var wasVoice = false

  init(
    _ source: FlowSection.Sending.Source, _ codec: FlowSection.Codec, section: SectionState,
    entropy: EntropyStream
  ) {
    mid = section.mid
    kind = section.kind
    ssrc = source.ssrc
    rid = source.rid
    agreement = SendAgreement(source, codec, section: section)
    naming = SectionNaming(section.midBytes, rid: agreement.ridBytes)
    numbers = SendNumbers(entropy)
    tally = SendTally(
      OutboundStreamCounters(
        mid: section.mid, kind: section.kind, ssrc: source.ssrc, rtxSSRC: source.rtxSSRC,
        codec: codec.name, payloadType: codec.payloadType))
  }

  /// Applies a renegotiation; all numbering continues.
  mutating func configure(
    _ source: FlowSection.Sending.Source, _ codec: FlowSection.Codec, section: SectionState
  ) {
    if agreement.rtxSSRC != source.rtxSSRC { naming.forgetRTX() }
    rid = source.rid
    agreement = SendAgreement(source, codec, section: section)
    naming.rename(rid: agreement.ridBytes)
    tally.configure(agreement)
    isActive = true
  }

  var name: StreamName { StreamName(mid, rid) }

  /// Stops sending for now; the stream keeps its numbering.
  mutating func pause() { isActive = false }

  var rtxSSRC: UInt32? { agreement.rtxSSRC }
  var codec: FlowSection.Codec { agreement.codec }

  /// Whether the counters add up; asserted after each step in debug builds.
  var isConsistent: Bool { tally.counters.isConsistent }

  var snapshot: OutboundStreamCounters {
    var counters = tally.counters
    counters.isActive = isActive
    counters.rid = rid
    return counters
  }

  // MARK: - Frames

  /// Splits a frame into payloads that fit into packets.
  mutating func split(_ frame: EncodedFrame, at now: Instant) -> [PayloadPart] {
    guard frame.codec.carriesMedia else { return event(frame, at: now) }
    let codec = agreement.codec
    if frame.temporal?.id == 0 { numbers.beginBase() }
    let shares = PayloadShare.all(
      of: frame, pictureID: numbers.pictureID, baseIndex: numbers.baseIndex,
      limit: agreement.payloadLimit, fragments: codec.fragments)
    guard !shares.isEmpty else {
      discardFrame()
      return []
    }
    let timestamp = frame.mediaTime &+ numbers.timestampOffset
    tally.countFrame(frame, timestamp: timestamp, at: now)
    let isSpurt = frame.isVoice && !wasVoice
    wasVoice = frame.isVoice
    if kind == .video { numbers.endFrame() }
    return shares.enumerated().map { index, share in
      PayloadPart(
        frame: frame.bytes, range: share.range, prefix: share.prefix,
        payloadType: codec.payloadType, rtxPayloadType: codec.rtxPayloadType,
        timestamp: timestamp, marker: kind == .video ? index == shares.count - 1 : isSpurt,
        audioLevel: frame.audioLevel, isVoice: frame.isVoice,
        // A peer that does not receive mixer levels has no use for the contributors.
        contributors: agreement.map.mixerLevels == 0 ? [] : frame.contributors, queuedAt: now)
    }
  }

  /// Returns the payload of a telephone event, which fits into one packet.
  ///
  /// Its timestamp is the event's start, and the event's first packet has the marker (RFC 4733
  /// section 2.5.1.2).
  private func event(_ frame: EncodedFrame, at now: Instant) -> [PayloadPart] {
    guard let codec = agreement.events else { return [] }
    return [
      PayloadPart(
        frame: frame.bytes, range: 0..<frame.bytes.count, prefix: .none,
        payloadType: codec.payloadType, rtxPayloadType: nil,
        timestamp: frame.mediaTime &+ numbers.timestampOffset, marker: frame.isVoice,
        audioLevel: nil, isVoice: false, contributors: [], queuedAt: now)
    ]
  }

  /// Counts a frame that cannot be sent, and records that later frames may depend on it.
  mutating func discardFrame() {
    tally.countDiscardedFrame()
    lostFrames = true
  }

  /// Records packetized frames that will not be sent.
  mutating func loseFrames() { lostFrames = true }

  /// Returns whether frames have been lost since the last call.
  mutating func consumeLoss() -> Bool {
    defer { lostFrames = false }
    return lostFrames
  }

  // MARK: - Packets

  /// Builds a packet with the next sequence number.
  mutating func packet(
    for part: PayloadPart, transportSequence: UInt16, sendTime: UInt32, at now: Instant
  ) -> [UInt8] {
    let sequence = numbers.nextSequence()
    var header = OutgoingHeader(
      payloadType: part.payloadType, sequence: sequence, timestamp: part.timestamp, ssrc: ssrc)
    header.marker = part.marker
    header.mid = naming.name
    header.streamID = naming.streamID
    header.audioLevel = part.audioLevel
    header.isVoice = part.isVoice
    header.contributors = part.contributors
    header.absoluteSendTime = sendTime
    header.transportSequence = transportSequence
    let packet = build(header, original: nil, part)
    if kind == .video, agreement.repairs {
      history.append(
        PacketHistory.Entry(
          sequence: sequence, part: part, packet: agreement.rtx(of: part) == nil ? packet : nil))
    }
    tally.countPacket(packet.count, payload: part.payloadLength, delay: now - part.queuedAt)
    return packet
  }

  /// Builds a retransmission (RFC 4588), or repeats the packet byte for byte; nil if the packet is
  /// no longer stored.
  ///
  /// A repeated packet must equal the original byte for byte: both have the same SRTP index, and
  /// with AES-GCM two different packets under one nonce would reveal the key.
  mutating func retransmission(
    of lost: UInt16, transportSequence: UInt16, sendTime: UInt32
  ) -> (bytes: [UInt8], isRepeated: Bool)? {
    guard let entry = history.entry(lost) else { return nil }
    let part = entry.part
    guard let rtx = agreement.rtx(of: part) else {
      guard let packet = entry.packet else { return nil }
      tally.countRetransmission(packet.count, payload: part.payloadLength)
      return (packet, true)
    }
    var header = OutgoingHeader(
      payloadType: rtx.payloadType, sequence: numbers.nextRTXSequence(),
      timestamp: part.timestamp, ssrc: rtx.ssrc)
    header.marker = part.marker
    header.mid = naming.rtxName
    header.repairedStreamID = naming.repairedStreamID
    header.absoluteSendTime = sendTime
    header.transportSequence = transportSequence
    let bytes = build(header, original: lost, part)
    tally.countRetransmission(bytes.count, payload: part.payloadLength + RTX.overhead)
    return (bytes, false)
  }

  /// Returns whether to retransmit a packet that the peer is missing, at most once per `spacing`.
  mutating func mayResend(_ sequence: UInt16, at now: Instant, spacing: Interval) -> Bool {
    history.mayResend(sequence, at: now, spacing: spacing)
  }

  // Inlined, because a call would copy the stream.
  @inline(__always)
  private func build(
    _ header: OutgoingHeader, original: UInt16?, _ part: PayloadPart
  ) -> [UInt8] {
    let map = agreement.map
    let overhead = RTX.overhead + part.prefix.length + MediaFlow.reservedOverhead
    var writer = ByteWriter(capacity: header.length(map: map) + part.range.count + overhead)
    header.write(into: &writer, map: map)
    if let original { writer.uint16(original) }
    part.prefix.write(into: &writer)
    writer.append(part.frame.span.bytes.extracting(part.range))
    return writer.bytes
  }

  // MARK: - Reports

  /// Returns a sender report without blocks; nil if nothing was sent since the last one.
  mutating func makeReport(_ wallClock: WallClock, at now: Instant) -> SenderReport? {
    tally.makeReport(clockRate: agreement.codec.clockRate, wallClock, at: now)
  }

  /// Applies the peer's report block on this stream; a block on its RTX only shows that the peer
  /// knows the RTX stream.
  mutating func receive(_ block: ReportBlock, roundTrip: Interval?, at arrival: Instant) {
    naming.recordReport(isRTX: block.ssrc != ssrc)
    guard block.ssrc == ssrc else { return }
    tally.receive(
      block, first: numbers.first, clockRate: agreement.codec.clockRate, roundTrip: roundTrip,
      at: arrival)
  }

  mutating func countNACK() { tally.countNACK() }

  /// Handles a key frame request; returns whether to pass it to the encoder.
  mutating func acceptDemand(_ number: UInt8?, at now: Instant) -> Bool {
    let taking = demands.classify(number, at: now)
    if taking != .repeated { tally.countKeyframeRequest(isFIR: number != nil) }
    return taking == .passedOn
  }
}

// MARK: - SendNumbers

/// A sent stream's sequence numbers.
///
/// They survive renegotiation, because SRTP would reject a restart as a replay (RFC 3711
/// section 3.3.2).
struct SendNumbers {
  /// The first packet's sequence number, drawn at random.
  let first: UInt16
  /// The random offset of RTP timestamps (RFC 3550 section 5.1).
  let timestampOffset: UInt32
  /// The picture ID of the next video frame (RFC 7741 section 4.2).
  private(set) var pictureID: UInt16
  /// TL0PICIDX of the last base layer frame (RFC 7741 section 4.2).
  private(set) var baseIndex: UInt8 = 0
  private var sequence: UInt16
  private var rtxSequence: UInt16

  init(_ entropy: EntropyStream) {
    // The top bit is clear, so that an early loss cannot confuse the SRTP rollover counter.
    sequence = entropy.integer(UInt16.self) & 0x7fff
    timestampOffset = entropy.integer(UInt32.self)
    rtxSequence = entropy.integer(UInt16.self) & 0x7fff
    pictureID = entropy.integer(UInt16.self) & 0x7fff
    first = sequence
  }

  /// Returns the next sequence number and advances it.
  mutating func nextSequence() -> UInt16 {
    defer { sequence &+= 1 }
    return sequence
  }

  /// Returns the next RTX sequence number and advances it.
  mutating func nextRTXSequence() -> UInt16 {
    defer { rtxSequence &+= 1 }
    return rtxSequence
  }

  /// Advances TL0PICIDX for a new base layer frame.
  mutating func beginBase() { baseIndex &+= 1 }

  /// Advances the picture ID after a frame.
  mutating func endFrame() { pictureID = (pictureID + 1) & 0x7fff }
}

/// Decides how long packets include the MID and layer: until the peer's first report on the stream
/// shows that the peer has identified it (RFC 9143 section 9.2, RFC 8852 section 3.3).
struct SectionNaming {
  private let mid: [UInt8]
  /// The layer; nil for a section's only stream.
  private var rid: [UInt8]?
  private var isKnown = false
  private var isRTXKnown = false

  init(_ mid: [UInt8], rid: [UInt8]? = nil) {
    self.mid = mid
    self.rid = rid
  }

  /// The MID that packets must include; nil once the peer knows the stream.
  var name: [UInt8]? { isKnown ? nil : mid }
  /// The MID that RTX packets must include; nil once the peer knows the RTX stream.
  var rtxName: [UInt8]? { isRTXKnown ? nil : mid }
  /// The layer that packets must include; nil once the peer knows the stream.
  var streamID: [UInt8]? { isKnown ? nil : rid }
  /// The layer that RTX packets must include; nil once the peer knows the RTX stream.
  var repairedStreamID: [UInt8]? { isRTXKnown ? nil : rid }

  /// Records that the peer reported on the stream or its RTX.
  mutating func recordReport(isRTX: Bool) {
    if isRTX { isRTXKnown = true } else { isKnown = true }
  }

  /// Applies a renegotiated layer.
  mutating func rename(rid: [UInt8]?) { self.rid = rid }

  /// Makes RTX packets include the MID and layer again because the RTX SSRC changed.
  mutating func forgetRTX() { isRTXKnown = false }
}

/// Decides which of the peer's key frame requests reach the encoder.
struct KeyframeDemands {
  /// Whether a request is passed on to the encoder, and if not, why.
  enum Verdict {
    /// A repetition, in case the first request was lost (RFC 5104 section 4.3.1.2).
    case repeated
    /// A request so soon after the previous request that one key frame serves both.
    case served
    case passedOn
  }

  /// The shortest time between two requests that are passed on to the encoder.
  private static let spacing = Interval.milliseconds(300)

  /// When a key frame was last requested from the encoder.
  private(set) var passedOnAt: Instant?
  private var lastNumber: UInt8?

  /// Classifies a request: a FIR has a number (RFC 5104 section 4.3.1), a PLI has none (RFC 4585
  /// section 6.3.1).
  mutating func classify(_ number: UInt8?, at now: Instant) -> Verdict {
    if let number {
      guard lastNumber != number else { return .repeated }
      lastNumber = number
    }
    if let passedOnAt, now - passedOnAt < Self.spacing { return .served }
    passedOnAt = now
    return .passedOn
  }
}

/// A stream's newest packets, kept for retransmission (RFC 4588).
struct PacketHistory {
  struct Entry {
    var sequence: UInt16
    var part: PayloadPart
    /// The complete packet, kept only if it must be repeated byte for byte.
    var packet: [UInt8]?
    /// When the packet was last retransmitted.
    var resentAt: Instant?
  }

  static let capacity = 2048
  private var entries: [Entry?] = []

  /// Adds a packet, overwriting the packet that was sent `capacity` packets earlier.
  mutating func append(_ entry: Entry) {
    if entries.isEmpty { entries = [Entry?](repeating: nil, count: PacketHistory.capacity) }
    entries[place(entry.sequence)] = entry
  }

  func entry(_ sequence: UInt16) -> Entry? {
    guard !entries.isEmpty, let entry = entries[place(sequence)], entry.sequence == sequence
    else { return nil }
    return entry
  }

  /// Returns whether a packet may be retransmitted now, because it is stored and was not
  /// retransmitted recently; if so, records the time.
  mutating func mayResend(_ sequence: UInt16, at now: Instant, spacing: Interval) -> Bool {
    guard let entry = entry(sequence) else { return false }
    if let resentAt = entry.resentAt, now - resentAt < spacing { return false }
    entries[place(sequence)]?.resentAt = now
    return true
  }

  private func place(_ sequence: UInt16) -> Int { Int(sequence) & (PacketHistory.capacity - 1) }
}

import RTP
import Wire

/// One stream that is sent: its numbers, its packets, and what was counted.
struct SendStream {
  /// The largest packet after protection, so that it passes all usual paths.
  static let largestPacket = 1200
  /// What SRTP adds at most: the tag of AES-GCM (RFC 7714) is longer than that of RFC 3711.
  static let protectionOverhead = 16
  let mid: String
  let kind: MediaKind
  let ssrc: UInt32
  private(set) var rtxSSRC: UInt32?
  private(set) var codec: FlowSection.Codec
  /// Whether the section agrees on sending now.
  var isActive = true
  private(set) var counters: OutboundStreamCounters
  /// When a key frame was last asked for, and the number of the last demand (RFC 5104 section
  /// 4.3.1).
  var keyframeRequestedAt: Instant?
  var lastDemand: UInt8?
  /// Whether packets were sent since the last report.
  var sentSinceReport = false
  /// Whether frames were dropped that others may depend on.
  var lostFrames = false

  private let midBytes: [UInt8]
  private var map: HeaderExtensionMap
  private var isTransportWide = false
  private var payloadLimit = 1000
  private let timestampOffset: UInt32
  private var sequence: UInt16
  private var rtxSequence: UInt16
  private var pictureID: UInt16
  private var history = PacketHistory()
  private let firstSequence: Int64
  private var isAcknowledged = false
  private var isRTXAcknowledged = false
  private var wasVoice = false
  private var lastFrame: (timestamp: UInt32, at: Instant)?
  private var frameBytes: UInt64 = 0
  private var mediaPackets: UInt32 = 0
  private var mediaOctets: UInt32 = 0

  init(_ sending: FlowSection.Sending, section: SectionState, entropy: EntropyStream) {
    mid = section.mid
    midBytes = section.midBytes
    kind = section.kind
    ssrc = sending.ssrc
    rtxSSRC = sending.rtxSSRC
    codec = sending.codec
    map = section.extensions
    // The top bit stays clear, so that an early loss cannot confuse the SRTP rollover counter.
    sequence = entropy.integer(UInt16.self) & 0x7fff
    timestampOffset = entropy.integer(UInt32.self)
    rtxSequence = entropy.integer(UInt16.self) & 0x7fff
    pictureID = entropy.integer(UInt16.self) & 0x7fff
    firstSequence = Int64(sequence)
    counters = OutboundStreamCounters(
      mid: section.mid, kind: section.kind, ssrc: sending.ssrc, rtxSSRC: sending.rtxSSRC,
      codec: sending.codec.name, payloadType: sending.codec.payloadType)
    configure(sending, section: section)
  }

  /// Takes over what was agreed on anew; all numbers go on.
  mutating func configure(_ sending: FlowSection.Sending, section: SectionState) {
    codec = sending.codec
    map = section.extensions
    if rtxSSRC != sending.rtxSSRC { isRTXAcknowledged = false }
    rtxSSRC = sending.rtxSSRC
    counters.rtxSSRC = rtxSSRC
    counters.codec = codec.name
    counters.payloadType = codec.payloadType
    isTransportWide = map.transportSequence != 0 && codec.feedback.contains("transport-cc")
    if !isTransportWide { map.transportSequence = 0 }
    var widest = OutgoingHeader(payloadType: 0, sequence: 0, timestamp: 0, ssrc: 0)
    widest.mid = midBytes
    widest.audioLevel = 0
    widest.absoluteSendTime = 0
    widest.transportSequence = 0
    payloadLimit =
      SendStream.largestPacket - SendStream.protectionOverhead - widest.length(map: map)
      - RTX.overhead
  }

  /// Where retransmissions of a part go; nil when they have no stream of their own.
  private func rtx(of part: PayloadPart) -> (ssrc: UInt32, payloadType: UInt8)? {
    guard let rtxSSRC, let payloadType = part.rtxPayloadType else { return nil }
    return (rtxSSRC, payloadType)
  }

  /// Whether the packets carry transport-wide sequence numbers.
  var carriesTransportSequence: Bool { isTransportWide }

  /// What was counted so far.
  var snapshot: OutboundStreamCounters {
    var counters = counters
    counters.isActive = isActive
    return counters
  }

  // MARK: - Frames

  /// Cuts a frame into packets' shares.
  mutating func split(_ frame: EncodedFrame, at now: Instant) -> [PayloadPart] {
    let shares = PayloadShare.all(
      of: frame, pictureID: pictureID, limit: payloadLimit, fragments: codec.fragments)
    guard !shares.isEmpty else {
      discardFrame()
      return []
    }
    let timestamp = frame.mediaTime &+ timestampOffset
    lastFrame = (timestamp, now)
    countFrame(frame)
    let isSpurt = frame.isVoice && !wasVoice
    wasVoice = frame.isVoice
    if kind == .video { pictureID = (pictureID + 1) & 0x7fff }
    return shares.enumerated().map { index, share in
      PayloadPart(
        frame: frame.bytes, range: share.range, prefix: share.prefix,
        payloadType: codec.payloadType, rtxPayloadType: codec.rtxPayloadType,
        timestamp: timestamp, marker: kind == .video ? index == shares.count - 1 : isSpurt,
        audioLevel: frame.audioLevel, isVoice: frame.isVoice,
        // Who is told of contributors without their levels learns nothing it could show.
        contributors: map.mixerLevels == 0 ? [] : frame.contributors, queuedAt: now)
    }
  }

  /// Takes note of a frame that cannot be sent.
  mutating func discardFrame() {
    counters.framesDiscarded += 1
    lostFrames = true
  }

  private mutating func countFrame(_ frame: EncodedFrame) {
    let size = UInt64(frame.bytes.count)
    if counters.framesSent > 0, size * counters.framesSent * 2 >= frameBytes * 5 {
      counters.hugeFramesSent += 1
    }
    frameBytes += size
    counters.framesSent += 1
    if frame.isKey, kind == .video { counters.keyFramesSent += 1 }
  }

  // MARK: - Packets

  /// Builds the packet of a share for sending at this moment.
  mutating func packet(
    for part: PayloadPart, transportSequence: UInt16, sendTime: UInt32, at now: Instant
  ) -> [UInt8] {
    var header = OutgoingHeader(
      payloadType: part.payloadType, sequence: sequence, timestamp: part.timestamp, ssrc: ssrc)
    header.marker = part.marker
    header.mid = isAcknowledged ? nil : midBytes
    header.audioLevel = part.audioLevel
    header.isVoice = part.isVoice
    header.contributors = part.contributors
    header.absoluteSendTime = sendTime
    header.transportSequence = transportSequence
    let packet = build(header, original: nil, part)
    if kind == .video, codec.feedback.contains("nack") {
      history.append(
        PacketHistory.Entry(
          sequence: sequence, part: part, packet: rtx(of: part) == nil ? packet : nil))
    }
    sequence &+= 1
    mediaPackets &+= 1
    let payload = payloadLength(part)
    mediaOctets &+= UInt32(truncatingIfNeeded: payload)
    count(packet, payload: payload)
    counters.totalPacketSendDelay = counters.totalPacketSendDelay + (now - part.queuedAt)
    return packet
  }

  /// Builds the packet that brings a lost one again (RFC 4588), or repeats it byte for byte.
  ///
  /// A repeated packet must not differ from the first one: both have the same SRTP index, and
  /// with AES-GCM two packets under one nonce would give the key away.
  mutating func retransmission(
    of lost: UInt16, transportSequence: UInt16, sendTime: UInt32
  ) -> (bytes: [UInt8], isRepeated: Bool)? {
    guard let entry = history.entry(lost) else { return nil }
    let part = entry.part
    let bytes: [UInt8]
    let payload = payloadLength(part)
    let rtx = rtx(of: part)
    if let rtx {
      var header = OutgoingHeader(
        payloadType: rtx.payloadType, sequence: rtxSequence, timestamp: part.timestamp,
        ssrc: rtx.ssrc)
      header.marker = part.marker
      header.mid = isRTXAcknowledged ? nil : midBytes
      header.absoluteSendTime = sendTime
      header.transportSequence = transportSequence
      bytes = build(header, original: lost, part)
      rtxSequence &+= 1
      count(bytes, payload: payload + RTX.overhead)
      counters.retransmittedBytesSent += UInt64(payload + RTX.overhead)
    } else {
      guard let packet = entry.packet else { return nil }
      bytes = packet
      count(bytes, payload: payload)
      counters.retransmittedBytesSent += UInt64(payload)
    }
    counters.retransmittedPacketsSent += 1
    return (bytes, rtx == nil)
  }

  /// Whether a packet that the peer misses is to be sent again.
  mutating func mayResend(_ sequence: UInt16, at now: Instant, spacing: Interval) -> Bool {
    history.mayResend(sequence, at: now, spacing: spacing)
  }

  private func build(
    _ header: OutgoingHeader, original: UInt16?, _ part: PayloadPart
  ) -> [UInt8] {
    let overhead = RTX.overhead + part.prefix.length + MediaFlow.reservedOverhead
    var writer = ByteWriter(capacity: header.length(map: map) + part.range.count + overhead)
    header.write(into: &writer, map: map)
    if let original { writer.uint16(original) }
    part.prefix.write(into: &writer)
    writer.append(part.frame.span.bytes.extracting(part.range))
    return writer.bytes
  }

  private func payloadLength(_ part: PayloadPart) -> Int {
    part.range.count + part.prefix.length
  }

  private mutating func count(_ packet: [UInt8], payload: Int) {
    sentSinceReport = true
    counters.packetsSent += 1
    counters.bytesSent += UInt64(payload)
    counters.headerBytesSent += UInt64(packet.count - payload)
  }

  // MARK: - Reports

  /// The sender report at this moment, without blocks; nil before the first frame.
  func report(at now: Instant, wallClock: WallClock) -> SenderReport? {
    guard let lastFrame, mediaPackets > 0 else { return nil }
    let elapsed = max(0, (now - lastFrame.at).nanoseconds / 1000)
    let units = elapsed &* Int64(codec.clockRate) / 1_000_000
    return SenderReport(
      ssrc: ssrc, ntpTime: wallClock.ntp(at: now),
      rtpTime: lastFrame.timestamp &+ UInt32(truncatingIfNeeded: units),
      packetCount: mediaPackets, octetCount: mediaOctets)
  }

  /// Takes what the peer reports on this stream or on its retransmissions.
  mutating func receive(_ block: ReportBlock, roundTrip: Interval?, at arrival: Instant) {
    guard block.ssrc == ssrc else {
      isRTXAcknowledged = true
      return
    }
    isAcknowledged = true
    counters.remote.take(
      block, firstSequence: firstSequence, clockRate: codec.clockRate, roundTrip: roundTrip,
      at: arrival)
  }

  /// Counts packets that the peer asked for again.
  mutating func countNACK() { counters.nackCount += 1 }

  /// Counts a demand for a key frame.
  mutating func countKeyframeRequest(isFIR: Bool) {
    if isFIR { counters.firCount += 1 } else { counters.pliCount += 1 }
  }
}

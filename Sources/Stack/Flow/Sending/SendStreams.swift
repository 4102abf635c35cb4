import RTP
import Wire

/// Identifies a sent stream by section, and by layer if there are several (RFC 8852).
struct StreamName: Hashable {
  let mid: String
  let rid: String?

  init(_ mid: String, _ rid: String?) {
    self.mid = mid
    self.rid = rid
  }
}

/// The streams sent on a transport, including those whose sections currently do not send.
struct SendStreams {
  private(set) var all: [SendStream] = []
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  /// The sender SSRC in feedback: the first SSRC that is being sent, or 1 as in other stacks.
  var localSSRC: UInt32 { all.firstIndex { $0.isActive }.map { all[$0].ssrc } ?? 1 }

  /// Whether video is being sent.
  var sendsVideo: Bool { all.indices.contains { all[$0].kind == .video && all[$0].isActive } }

  /// SSRCs being sent, including RTX.
  var activeSSRCs: [UInt32] {
    var ssrcs: [UInt32] = []
    for stream in all where stream.isActive {
      ssrcs.append(stream.ssrc)
      if let rtx = stream.rtxSSRC { ssrcs.append(rtx) }
    }
    return ssrcs
  }

  /// Returns the index of the stream that a section or layer is sending; nil if there is none.
  func index(of name: StreamName) -> Int? { all.firstIndex { $0.name == name && $0.isActive } }

  /// Returns the index of the stream that is being sent with an SSRC; nil if there is none.
  func index(of ssrc: UInt32) -> Int? { all.firstIndex { $0.ssrc == ssrc && $0.isActive } }

  /// Returns the index of the stream that a report block concerns; nil if there is none.
  func index(of block: ReportBlock) -> Int? {
    all.firstIndex { $0.ssrc == block.ssrc || $0.rtxSSRC == block.ssrc }
  }

  /// Applies a negotiation: adds new streams, removes the streams that they replace, and pauses
  /// streams that no longer send.
  mutating func configure(_ sections: [SectionState]) {
    // A paused stream is kept, because its numbering must continue; otherwise SRTP would reject its
    // packets as a replay (RFC 3711 section 3.3.2).
    for index in all.indices { all[index].pause() }
    for section in sections {
      guard let sending = section.section.sending else { continue }
      let ssrcs = sending.sources.map(\.ssrc)
      for source in sending.sources {
        if let index = all.firstIndex(where: { $0.ssrc == source.ssrc && $0.mid == section.mid }) {
          all[index].configure(source, sending.codec, section: section)
        } else {
          all.removeAll {
            $0.mid == section.mid && !ssrcs.contains($0.ssrc) || $0.ssrc == source.ssrc
          }
          all.append(SendStream(source, sending.codec, section: section, entropy: entropy))
        }
      }
    }
  }

  // MARK: - Frames and packets

  mutating func split(_ frame: EncodedFrame, _ index: Int, at now: Instant) -> [PayloadPart] {
    all[index].split(frame, at: now)
  }

  /// Records a frame that cannot be sent.
  mutating func discardFrame(_ index: Int) { all[index].discardFrame() }

  /// Records packetized video frames that will not be sent.
  mutating func loseFrames() {
    for index in all.indices where all[index].kind == .video { all[index].loseFrames() }
  }

  /// Returns the video streams that lost frames since the last call; later frames may depend on the
  /// lost ones.
  mutating func consumeLosses() -> [StreamName] {
    var names: [StreamName] = []
    for index in all.indices where all[index].consumeLoss() {
      if all[index].isActive, all[index].kind == .video { names.append(all[index].name) }
    }
    return names
  }

  /// Builds a packet with its stream's next sequence number.
  mutating func packet(
    for part: PayloadPart, _ index: Int, transportSequence: UInt16, sendTime: UInt32,
    at now: Instant
  ) -> [UInt8] {
    all[index].packet(
      for: part, transportSequence: transportSequence, sendTime: sendTime, at: now)
  }

  /// Builds a retransmission, or repeats the packet byte for byte; nil if the packet is no longer
  /// stored.
  mutating func retransmission(
    of lost: UInt16, _ index: Int, transportSequence: UInt16, sendTime: UInt32
  ) -> (bytes: [UInt8], isRepeated: Bool)? {
    all[index].retransmission(
      of: lost, transportSequence: transportSequence, sendTime: sendTime)
  }

  // MARK: - Feedback and reports

  mutating func countNACK(_ index: Int) { all[index].countNACK() }

  mutating func mayResend(
    _ sequence: UInt16, _ index: Int, at now: Instant, spacing: Interval
  ) -> Bool {
    all[index].mayResend(sequence, at: now, spacing: spacing)
  }

  /// Handles a key frame request; returns the stream whose encoder should produce a key frame, or
  /// nil if none should.
  mutating func acceptDemand(of ssrc: UInt32, number: UInt8?, at now: Instant) -> StreamName? {
    guard let index = all.firstIndex(where: { $0.ssrc == ssrc && $0.kind == .video }),
      all[index].acceptDemand(number, at: now)
    else { return nil }
    return all[index].name
  }

  /// Passes the peer's report block on a stream, or on its RTX, to that stream.
  mutating func receive(
    _ block: ReportBlock, _ index: Int, roundTrip: Interval?, at arrival: Instant
  ) {
    all[index].receive(block, roundTrip: roundTrip, at: arrival)
  }

  /// Returns reports on the streams that sent something since their last report.
  mutating func makeReports(_ wallClock: WallClock, at now: Instant) -> [SenderReport] {
    var reports: [SenderReport] = []
    for index in all.indices where all[index].isActive {
      if let report = all[index].makeReport(wallClock, at: now) { reports.append(report) }
    }
    return reports
  }
}

// MARK: - SendAgreement

/// A sent stream's negotiated parameters; immutable until the next negotiation.
struct SendAgreement {
  /// The largest packet in bytes after encryption, small enough for all common paths.
  private static let largestPacket = 1200
  /// The maximum number of bytes that SRTP adds: the AES-GCM tag (RFC 7714) is longer than the tag
  /// in RFC 3711.
  private static let protectionOverhead = 16

  let codec: FlowSection.Codec
  let events: FlowSection.Codec?
  let rtxSSRC: UInt32?
  /// The layer's RID as packets carry it; nil for the section's only stream.
  let ridBytes: [UInt8]?
  let map: HeaderExtensionMap
  /// Whether packets carry transport-wide sequence numbers.
  let isTransportWide: Bool
  /// Bytes of a frame that fit into one packet.
  let payloadLimit: Int

  init(
    _ source: FlowSection.Sending.Source, _ codec: FlowSection.Codec, section: SectionState
  ) {
    var map = section.extensions
    self.codec = codec
    events = section.section.sending?.events
    rtxSSRC = source.rtxSSRC
    ridBytes = source.rid.map { Array($0.utf8) }
    isTransportWide = map.transportSequence != 0 && codec.feedback.contains("transport-cc")
    if !isTransportWide { map.transportSequence = 0 }
    var widest = OutgoingHeader(payloadType: 0, sequence: 0, timestamp: 0, ssrc: 0)
    widest.mid = section.midBytes
    widest.streamID = ridBytes
    widest.audioLevel = 0
    widest.absoluteSendTime = 0
    widest.transportSequence = 0
    payloadLimit =
      Self.largestPacket - Self.protectionOverhead - widest.length(map: map) - RTX.overhead
    self.map = map
  }

  /// Returns whether frames of a codec can be sent: it must be the negotiated codec, or telephone
  /// events if they were negotiated.
  func carries(_ name: CodecName) -> Bool {
    name == codec.name || !name.carriesMedia && events != nil
  }

  /// Whether lost packets are retransmitted.
  var repairs: Bool { codec.feedback.contains("nack") }

  /// Returns the SSRC and payload type for retransmitting a part; nil if there is no RTX stream.
  func rtx(of part: PayloadPart) -> (ssrc: UInt32, payloadType: UInt8)? {
    guard let rtxSSRC, let payloadType = part.rtxPayloadType else { return nil }
    return (rtxSSRC, payloadType)
  }
}

// MARK: - SendTally

/// A sent stream's counters, for W3C outbound-rtp and sender reports (RFC 3550 section 6.4.1).
struct SendTally {
  private(set) var counters: OutboundStreamCounters
  private var frameBytes: UInt64 = 0
  private var mediaPackets: UInt32 = 0
  private var mediaOctets: UInt32 = 0
  private var lastFrame: (timestamp: UInt32, at: Instant)?
  /// Whether packets were sent since the last report.
  private var hasNews = false

  init(_ counters: OutboundStreamCounters) { self.counters = counters }

  mutating func configure(_ agreement: SendAgreement) {
    counters.rtxSSRC = agreement.rtxSSRC
    counters.codec = agreement.codec.name
    counters.payloadType = agreement.codec.payloadType
  }

  // MARK: Frames

  mutating func countFrame(_ frame: EncodedFrame, timestamp: UInt32, at now: Instant) {
    lastFrame = (timestamp, now)
    let size = UInt64(frame.bytes.count)
    if counters.framesSent > 0, size * counters.framesSent * 2 >= frameBytes * 5 {
      counters.hugeFramesSent += 1
    }
    frameBytes += size
    counters.framesSent += 1
    if frame.isKey, counters.kind == .video { counters.keyFramesSent += 1 }
  }

  mutating func countDiscardedFrame() { counters.framesDiscarded += 1 }

  // MARK: Packets

  /// Counts a packet sent for the first time; `size` and `payload` are its bytes with and without
  /// headers.
  mutating func countPacket(_ size: Int, payload: Int, delay: Interval) {
    mediaPackets &+= 1
    mediaOctets &+= UInt32(truncatingIfNeeded: payload)
    count(size, payload: payload)
    counters.totalPacketSendDelay = counters.totalPacketSendDelay + delay
  }

  mutating func countRetransmission(_ size: Int, payload: Int) {
    count(size, payload: payload)
    counters.retransmittedBytesSent += UInt64(payload)
    counters.retransmittedPacketsSent += 1
  }

  private mutating func count(_ size: Int, payload: Int) {
    hasNews = true
    counters.packetsSent += 1
    counters.bytesSent += UInt64(payload)
    counters.headerBytesSent += UInt64(size - payload)
  }

  // MARK: Feedback

  mutating func countNACK() { counters.nackCount += 1 }

  mutating func countKeyframeRequest(isFIR: Bool) {
    if isFIR { counters.firCount += 1 } else { counters.pliCount += 1 }
  }

  /// Applies the peer's report block to the counters for W3C remote-inbound-rtp.
  mutating func receive(
    _ block: ReportBlock, first: UInt16, clockRate: UInt32, roundTrip: Interval?,
    at arrival: Instant
  ) {
    counters.remote.apply(
      block, firstSequence: Int64(first), clockRate: clockRate, roundTrip: roundTrip, at: arrival)
  }

  /// Returns a sender report without blocks; nil if nothing was sent since the last one.
  mutating func makeReport(clockRate: UInt32, _ wallClock: WallClock, at now: Instant)
    -> SenderReport?
  {
    guard hasNews, let lastFrame, mediaPackets > 0 else { return nil }
    hasNews = false
    let elapsed = max(0, (now - lastFrame.at).nanoseconds / 1000)
    let units = elapsed &* Int64(clockRate) / 1_000_000
    return SenderReport(
      ssrc: counters.ssrc, ntpTime: wallClock.ntp(at: now),
      rtpTime: lastFrame.timestamp &+ UInt32(truncatingIfNeeded: units),
      packetCount: mediaPackets, octetCount: mediaOctets)
  }
}

import RTP
import Wire

/// A received stream: counters, reports, missing packets and frame assembly.
struct ReceiveStream {
  /// One of the stream's packets, received directly or unwrapped from RTX.
  struct Packet {
    var header: RTPHeader
    var extensions: HeaderExtensions
    var bytes: [UInt8]
    var arrival: Instant
    var codec: FlowSection.Codec
  }

  let mid: String
  let kind: MediaKind
  let ssrc: UInt32
  /// The simulcast layer that the stream's packets name (RFC 8852), if any.
  let rid: String?
  private(set) var rtxSSRC: UInt32?
  private(set) var counters: InboundStreamCounters
  /// Packets on the RTX SSRC that contain only padding.
  private(set) var probesReceived: UInt64 = 0
  /// The codec of the last packet that was not a telephone event.
  private(set) var codec: FlowSection.Codec?
  private(set) var hasEnded = false
  /// Whether another stream has replaced this one in the section.
  private(set) var isReplaced = false
  /// Video packets and their frames; unused for audio.
  private(set) var videoFrames: FrameReception
  /// Whether the stream belongs to an observed call; see `FrameReception`.
  private let isWatched: Bool
  private let awaitsBeginning: Bool

  private var reports = ReceptionReports()
  private var window = SequenceWindow()
  private var timestamps = TimestampUnwrapper()
  private var clockRate: UInt32 = 0
  private var keyframeRequests = KeyframeRequests()

  init(
    mid: String, rid: String? = nil, kind: MediaKind, ssrc: UInt32, rtxSSRC: UInt32?,
    isWatched: Bool = false, awaitsBeginning: Bool = false, at now: Instant
  ) {
    self.isWatched = isWatched
    self.awaitsBeginning = awaitsBeginning
    videoFrames = FrameReception(isWatched: isWatched, awaitsBeginning: awaitsBeginning)
    self.mid = mid
    self.rid = rid
    self.kind = kind
    self.ssrc = ssrc
    self.rtxSSRC = rtxSSRC
    counters = InboundStreamCounters(mid: mid, kind: kind, ssrc: ssrc, beganAt: now)
  }

  var snapshot: InboundStreamCounters {
    var counters = counters
    counters.rtxSSRC = rtxSSRC
    counters.rid = rid
    counters.probesReceived = probesReceived
    counters.hasEnded = hasEnded
    counters.packetsLost = reports.media.lost
    counters.jitter = clockRate == 0 ? 0 : Double(reports.media.jitter) / Double(clockRate)
    counters.framesDropped += videoFrames.assembler.droppedCount
    return counters
  }

  /// Restarts the stream after it has ended, because the source may send again, with any sequence
  /// numbers.
  mutating func resume() {
    hasEnded = false
    isReplaced = false
    counters.framesDropped += videoFrames.assembler.droppedCount
    videoFrames = FrameReception(isWatched: isWatched, awaitsBeginning: awaitsBeginning)
    window = SequenceWindow()
    reports.acceptJump()
  }

  /// Restarts the sequence numbers at the previous packet, which was counted as late.
  mutating func beginAnew(with sequence: UInt16) {
    window = SequenceWindow()
    reports.beginAnew(with: sequence)
  }

  /// Records that the stream ended, so its missing packets and key frames are no longer awaited.
  mutating func end() {
    hasEnded = true
    videoFrames.end()
    keyframeRequests.settle()
  }

  /// Records that another stream has replaced this one.
  mutating func replace() { isReplaced = true }

  /// Sets the SSRC of the stream's retransmissions.
  mutating func learn(rtxSSRC: UInt32?) { self.rtxSSRC = rtxSSRC }

  /// Records that a decoder needs a key frame.
  mutating func wantKeyframe() { keyframeRequests.want() }

  // MARK: - Packets

  /// Handles a packet on the media SSRC.
  mutating func receive(
    _ packet: Packet, at now: Instant, into outbox: inout Outbox<MediaFlow.Output>
  ) {
    clockRate = packet.codec.clockRate
    count(packet)
    let header = packet.header
    guard let sequence = reports.receive(header, clockRate: clockRate, arrival: packet.arrival)
    else {
      counters.packetsDiscarded += 1
      return
    }
    process(packet, sequence, payload: header.payload, at: now, into: &outbox)
  }

  /// Handles a packet on the RTX SSRC.
  mutating func receiveRetransmission(
    _ packet: Packet, at now: Instant, into outbox: inout Outbox<MediaFlow.Output>
  ) {
    count(packet)
    let header = packet.header
    reports.receiveRTX(header, clockRate: packet.codec.clockRate, arrival: packet.arrival)
    guard let original = RTX.unwrap(packet.bytes.span.bytes, header: header) else {
      probesReceived += 1
      return
    }
    counters.retransmittedPacketsReceived += 1
    counters.retransmittedBytesReceived += UInt64(header.payload.count)
    guard let sequence = reports.extended(original.sequence) else {
      counters.packetsDiscarded += 1
      return
    }
    if process(
      packet, isRepaired: true, sequence, payload: original.payload, at: now, into: &outbox)
    {
      counters.packetsRecovered += 1
    }
  }

  /// Handles a packet recovered by FEC; it still counts as lost (W3C packetsLost).
  mutating func receiveRecovered(
    _ packet: Packet, at now: Instant, into outbox: inout Outbox<MediaFlow.Output>
  ) {
    guard let sequence = reports.extended(packet.header.sequence) else { return }
    process(
      packet, isRepaired: true, sequence, payload: packet.header.payload, at: now, into: &outbox)
  }

  /// Counts an RTX packet by its header alone, because its payload is unusable or the stream has
  /// not started yet.
  mutating func countRetransmissionSource(_ header: RTPHeader, arrival: Instant) {
    count(header, arrival: arrival)
  }

  /// Counts the ECN mark of a media or RTX packet.
  mutating func count(_ ecn: ECNMark?) { counters.ecn.count(ecn) }

  /// Counts a padding packet on the RTX SSRC that arrived before any retransmission.
  mutating func countProbe(_ header: RTPHeader, arrival: Instant, ecn: ECNMark?) {
    probesReceived += 1
    count(header, arrival: arrival)
    counters.ecn.count(ecn)
  }

  /// Gives up the missing packets because the receiver requested a key frame.
  mutating func abandonMissing(
    at now: Instant, into outbox: inout Outbox<MediaFlow.Output>
  ) {
    videoFrames.abandonMissing()
    if let codec { deliver(codec, at: now, into: &outbox) }
  }

  /// Records a packet with an unnegotiated payload type, so that it does not count as lost.
  mutating func receiveUnusable(_ header: RTPHeader, arrival: Instant, at now: Instant) {
    counters.packetsDiscarded += 1
    guard
      let sequence = receiveSealed(header, clockRate: clockRate, arrival: arrival), kind == .video
    else { return }
    insert(
      FrameAssembler.Packet(
        sequence: sequence, timestamp: header.timestamp, marker: false, arrival: arrival),
      at: now)
  }

  /// Counts a packet that cannot be decrypted or has an unusable payload type; returns its extended
  /// number, or nil if it is a duplicate, too old, or jumps implausibly.
  @discardableResult
  mutating func receiveSealed(_ header: RTPHeader, clockRate: UInt32, arrival: Instant) -> Int64? {
    self.clockRate = clockRate
    count(header, arrival: arrival)
    guard let sequence = reports.receive(header, clockRate: clockRate, arrival: arrival),
      window.insert(sequence) == .new
    else { return nil }
    return sequence
  }

  private mutating func count(_ header: RTPHeader, arrival: Instant) {
    counters.packetsReceived += 1
    counters.bytesReceived += UInt64(header.payload.count)
    counters.headerBytesReceived += UInt64(header.headerLength + header.paddingLength)
    counters.lastPacketReceived = arrival
  }

  private mutating func count(_ packet: Packet) {
    count(packet.header, arrival: packet.arrival)
    // Telephone events do not change the stream's codec.
    guard packet.codec.name.carriesMedia else { return }
    codec = packet.codec
    counters.codec = packet.codec.name
    counters.payloadType = packet.codec.payloadType
  }

  /// Processes a packet; returns false for duplicate and late packets.
  @discardableResult
  private mutating func process(
    _ packet: Packet, isRepaired: Bool = false, _ sequence: Int64, payload: Range<Int>,
    at now: Instant, into outbox: inout Outbox<MediaFlow.Output>
  ) -> Bool {
    switch window.insert(sequence) {
    case .new: break
    case .duplicate:
      counters.packetsDuplicated += 1
      return false
    case .old:
      counters.packetsDiscarded += 1
      return false
    }
    switch kind {
    case .audio: processAudio(packet, sequence, payload: payload, into: &outbox)
    case .video:
      return processFrame(
        packet, isRepaired: isRepaired, sequence, payload: payload, at: now, into: &outbox)
    }
    return true
  }

  private mutating func processAudio(
    _ packet: Packet, _ sequence: Int64, payload: Range<Int>,
    into outbox: inout Outbox<MediaFlow.Output>
  ) {
    guard !payload.isEmpty else { return }
    counters.framesReceived += 1
    let timestamp = packet.header.timestamp
    var frame = ReceivedFrame(
      mid: mid, ssrc: ssrc, kind: .audio, codec: packet.codec.name,
      payloadType: packet.codec.payloadType, firstSequence: sequence, lastSequence: sequence,
      rtpTime: timestamp, extendedTime: timestamps.unwrap(timestamp),
      firstArrival: packet.arrival, lastArrival: packet.arrival,
      bytes: Array(packet.bytes[payload]), isKey: true,
      audioLevel: packet.extensions.audioLevel, isVoice: packet.extensions.isVoice)
    frame.contributors = packet.extensions.contributors(
      of: packet.header, in: packet.bytes.span.bytes)
    outbox.append(.received(frame))
  }

  // MARK: - Video frames

  private mutating func processFrame(
    _ packet: Packet, isRepaired: Bool, _ sequence: Int64, payload: Range<Int>, at now: Instant,
    into outbox: inout Outbox<MediaFlow.Output>
  ) -> Bool {
    videoFrames.canRequest = packet.codec.feedback.contains("nack")
    var read = FrameAssembler.Packet(packet, sequence, payload: payload)
    read.isRepaired = isRepaired
    guard insert(read, at: now) else {
      counters.packetsDiscarded += 1
      return false
    }
    deliver(packet.codec, at: now, into: &outbox)
    return true
  }

  /// Inserts a packet and counts the frames it completes; returns false if it is too late.
  @discardableResult
  private mutating func insert(_ packet: FrameAssembler.Packet, at now: Instant) -> Bool {
    guard let completed = videoFrames.insert(packet, at: now) else { return false }
    for videoFrame in completed {
      counters.framesReceived += 1
      if videoFrame.isKey { counters.keyFramesReceived += 1 }
      if videoFrame.last > videoFrame.first {
        counters.framesAssembledFromMultiplePackets += 1
        let assembly = videoFrame.lastArrival - videoFrame.firstArrival
        counters.totalAssemblyTime = counters.totalAssemblyTime + assembly
      }
    }
    return true
  }

  private mutating func deliver(
    _ codec: FlowSection.Codec, at now: Instant, into outbox: inout Outbox<MediaFlow.Output>
  ) {
    while let (videoFrame, bytes) = videoFrames.next(
      at: now, joining: codec.name.payloadFormat?.join)
    {
      if videoFrame.isKey { keyframeRequests.settle() }
      var frame = ReceivedFrame(
        mid: mid, ssrc: ssrc, kind: .video, codec: codec.name,
        payloadType: codec.payloadType, firstSequence: videoFrame.first,
        lastSequence: videoFrame.last, rtpTime: videoFrame.timestamp,
        extendedTime: timestamps.unwrap(videoFrame.timestamp),
        firstArrival: videoFrame.firstArrival, lastArrival: videoFrame.lastArrival,
        bytes: bytes, isKey: videoFrame.isKey)
      frame.rid = rid
      frame.isRepaired = videoFrame.isRepaired
      outbox.append(.received(frame))
    }
  }

  // MARK: - Feedback

  /// Returns the packets to request now; gives up frames whose missing packets are no longer
  /// requested.
  mutating func demand(
    _ codec: FlowSection.Codec, at now: Instant, spacing: Interval,
    into outbox: inout Outbox<MediaFlow.Output>
  ) -> [UInt16] {
    guard let requested = videoFrames.demand(at: now, spacing: spacing) else { return [] }
    deliver(codec, at: now, into: &outbox)
    return requested
  }

  mutating func countNACK() { counters.nackCount += 1 }

  /// Whether to request a key frame, because a decoder needs one, or because frames could not be
  /// delivered without one and no key frame is arriving.
  var needsKeyframe: Bool { keyframeRequests.isWanted || videoFrames.assembler.wantsKeyframe }

  /// Returns a PLI or FIR if one is needed and the last one is old enough; otherwise nil.
  mutating func keyframeRequest(
    _ codec: FlowSection.Codec, senderSSRC: UInt32, roundTrip: Interval?, at now: Instant
  ) -> RTCPPacket? {
    guard needsKeyframe,
      let request = keyframeRequests.next(
        to: ssrc, codec, senderSSRC: senderSSRC, roundTrip: roundTrip, at: now)
    else { return nil }
    if case .fullIntraRequest = request { counters.firCount += 1 } else { counters.pliCount += 1 }
    return request
  }

  // MARK: - Reports

  /// Returns report blocks that cover the time since the last ones.
  mutating func makeReportBlocks(at now: Instant) -> [ReportBlock] {
    reports.makeBlocks(ssrc, rtxSSRC: rtxSSRC, at: now)
  }

  /// Returns an extra report block on the media SSRC; nil before its first packet.
  func reportBlock(at now: Instant) -> ReportBlock? { reports.block(on: ssrc, at: now) }

  mutating func receive(_ report: SenderReport, at arrival: Instant) {
    reports.receive(report, at: arrival)
    var remote = counters.remote ?? RemoteOutboundCounters()
    remote.reportedAt = arrival
    remote.packetsSent = UInt64(report.packetCount)
    remote.bytesSent = UInt64(report.octetCount)
    remote.remoteUnixNanoseconds = WallClock.unixNanoseconds(ntp: report.ntpTime)
    remote.remoteRTPTime = report.rtpTime
    remote.reportsSent += 1
    counters.remote = remote
  }

  /// Records a round trip measured by extended reports; ignored before the first sender report.
  mutating func receive(roundTrip: Interval) {
    guard counters.remote != nil else { return }
    counters.remote?.roundTripTime = roundTrip.seconds
    counters.remote?.totalRoundTripTime += roundTrip.seconds
    counters.remote?.roundTripTimeMeasurements += 1
  }
}

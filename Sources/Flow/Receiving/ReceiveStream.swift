import RTP
import Wire

/// One stream that is received: its counts, what it misses, and the assembly of its frames.
struct ReceiveStream {
  /// A packet of the stream, direct or unwrapped from a retransmission.
  struct Packet {
    var header: RTPHeader
    var extensions: HeaderExtensions
    var bytes: [UInt8]
    var arrival: Instant
    var codec: FlowSection.Codec
  }

  /// A key frame that is complete waits so long for the frames before it.
  private static let keyframePatience = Interval.milliseconds(200)
  private static let keyframeSpacing = Interval.milliseconds(300)

  let mid: String
  let kind: MediaKind
  let ssrc: UInt32
  var rtxSSRC: UInt32?
  private(set) var counters: InboundStreamCounters
  /// What the last packet carried.
  private(set) var codec: FlowSection.Codec?
  private(set) var hasEnded = false
  /// Whether another stream took this one's place in the section.
  var isReplaced = false
  /// Whether packets came since the last report.
  private(set) var receivedSinceReport = false
  private(set) var retransmittedSinceReport = false
  /// Whether a decoder asked for a key frame and none came since.
  var keyframeWanted = false
  /// Packets the peer is to send again, and when.
  private(set) var missing = MissingPackets()

  private var reception = ReceptionStatistics()
  private var rtxReception = ReceptionStatistics()
  private var window = SequenceWindow()
  private var timestamps = TimestampUnwrapper()
  private(set) var assembler = PictureAssembler()
  private var clockRate: UInt32 = 0
  private var keyframeRequestedAt: Instant?
  private var demandNumber: UInt8 = 0
  private var lastSenderReport: (compactNTP: UInt32, arrival: Instant)?

  init(mid: String, kind: MediaKind, ssrc: UInt32, rtxSSRC: UInt32?, at now: Instant) {
    self.mid = mid
    self.kind = kind
    self.ssrc = ssrc
    self.rtxSSRC = rtxSSRC
    counters = InboundStreamCounters(mid: mid, kind: kind, ssrc: ssrc, beganAt: now)
  }

  /// What was counted so far.
  var snapshot: InboundStreamCounters {
    var counters = counters
    counters.rtxSSRC = rtxSSRC
    counters.hasEnded = hasEnded
    counters.packetsLost = reception.lost
    counters.jitter = clockRate == 0 ? 0 : Double(reception.jitter) / Double(clockRate)
    counters.framesDropped += assembler.droppedCount
    return counters
  }

  /// Begins again after an end: the same source may send anew, with numbers of its choice.
  mutating func resume() {
    hasEnded = false
    isReplaced = false
    counters.framesDropped += assembler.droppedCount
    assembler = PictureAssembler()
    window = SequenceWindow()
    missing = MissingPackets()
    reception.acceptJump()
  }

  /// Takes note that the source sends no more.
  mutating func end() {
    hasEnded = true
    missing.removeAll()
    keyframeWanted = false
  }

  // MARK: - Packets

  /// Takes a packet of the media source itself.
  mutating func receive(
    _ packet: Packet, at now: Instant, into outbox: inout Outbox<MediaFlow.Output>
  ) {
    clockRate = packet.codec.clockRate
    count(packet)
    receivedSinceReport = true
    let header = packet.header
    guard
      let sequence = reception.receive(
        header.sequence, timestamp: header.timestamp, clockRate: clockRate,
        arrival: packet.arrival)
    else {
      counters.packetsDiscarded += 1
      return
    }
    take(packet, sequence, payload: header.payload, at: now, into: &outbox)
  }

  /// Takes a packet of the retransmission source.
  mutating func receiveRetransmission(
    _ packet: Packet, at now: Instant, into outbox: inout Outbox<MediaFlow.Output>
  ) {
    count(packet)
    retransmittedSinceReport = true
    let header = packet.header
    _ = rtxReception.receive(
      header.sequence, timestamp: header.timestamp, clockRate: packet.codec.clockRate,
      arrival: packet.arrival)
    guard let original = RTX.unwrap(packet.bytes.span.bytes, header: header) else { return }
    counters.retransmittedPacketsReceived += 1
    counters.retransmittedBytesReceived += UInt64(header.payload.count)
    guard reception.isStarted else {
      counters.packetsDiscarded += 1
      return
    }
    let sequence = reception.extended(original.sequence)
    if take(packet, sequence, payload: original.payload, at: now, into: &outbox) {
      counters.packetsRecovered += 1
    }
  }

  /// Takes note of a packet with a payload type that was not agreed on: it is there, but no use.
  mutating func receiveUnusable(_ header: RTPHeader, arrival: Instant, at now: Instant) {
    count(header, arrival: arrival)
    receivedSinceReport = true
    counters.packetsDiscarded += 1
    guard
      let sequence = reception.receive(
        header.sequence, timestamp: header.timestamp, clockRate: clockRate, arrival: arrival),
      window.insert(sequence) == .new, kind == .video
    else { return }
    insert(
      PictureAssembler.Packet(
        sequence: sequence, timestamp: header.timestamp, marker: false, arrival: arrival),
      at: now)
  }

  private mutating func count(_ header: RTPHeader, arrival: Instant) {
    counters.packetsReceived += 1
    counters.bytesReceived += UInt64(header.payload.count)
    counters.headerBytesReceived += UInt64(header.headerLength + header.paddingLength)
    counters.lastPacketReceived = arrival
  }

  private mutating func count(_ packet: Packet) {
    count(packet.header, arrival: packet.arrival)
    codec = packet.codec
    counters.codec = packet.codec.name
    counters.payloadType = packet.codec.payloadType
  }

  /// Hands a packet on when it is news; false for duplicates and what comes too late.
  @discardableResult
  private mutating func take(
    _ packet: Packet, _ sequence: Int64, payload: Range<Int>, at now: Instant,
    into outbox: inout Outbox<MediaFlow.Output>
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
    case .audio: takeSound(packet, sequence, payload: payload, into: &outbox)
    case .video: return takePicture(packet, sequence, payload: payload, at: now, into: &outbox)
    }
    return true
  }

  private mutating func takeSound(
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

  // MARK: - Pictures

  private mutating func takePicture(
    _ packet: Packet, _ sequence: Int64, payload: Range<Int>, at now: Instant,
    into outbox: inout Outbox<MediaFlow.Output>
  ) -> Bool {
    missing.canRequest = packet.codec.feedback.contains("nack")
    guard insert(part(of: packet, sequence, payload: payload), at: now) else {
      counters.packetsDiscarded += 1
      return false
    }
    deliver(packet.codec, at: now, into: &outbox)
    return true
  }

  /// Puts a packet in its place; false when it comes too late.
  @discardableResult
  private mutating func insert(_ part: PictureAssembler.Packet, at now: Instant) -> Bool {
    if !missing.receive(part.sequence, at: now) {
      missing.removeAll()
      assembler.restart(before: part.sequence)
    }
    guard !assembler.isLate(part.sequence) else { return false }
    for picture in assembler.insert(part, at: now) {
      counters.framesReceived += 1
      if picture.isKey { counters.keyFramesReceived += 1 }
      if picture.last > picture.first {
        counters.framesAssembledFromMultiplePackets += 1
        let assembly = picture.lastArrival - picture.firstArrival
        counters.totalAssemblyTime = counters.totalAssemblyTime + assembly
      }
    }
    return true
  }

  /// Reads the payload descriptor; a payload that is empty or broken only fills its number.
  private func part(
    of packet: Packet, _ sequence: Int64, payload: Range<Int>
  ) -> PictureAssembler.Packet {
    var part = PictureAssembler.Packet(
      sequence: sequence, timestamp: packet.header.timestamp, marker: packet.header.marker,
      arrival: packet.arrival)
    guard !payload.isEmpty,
      let read = PicturePacket(
        packet.bytes.span.bytes.extracting(payload), codec: packet.codec.name)
    else { return part }
    part.beginning = read.beginning
    part.isKey = read.isKey
    part.pictureID = read.pictureID
    switch read.content {
    case .slice(let range):
      part.bytes = packet.bytes
      part.payload = payload.lowerBound + range.lowerBound..<payload.lowerBound + range.upperBound
    case .bytes(let bytes):
      part.bytes = bytes
      part.payload = 0..<bytes.count
    }
    return part
  }

  private mutating func deliver(
    _ codec: FlowSection.Codec, at now: Instant, into outbox: inout Outbox<MediaFlow.Output>
  ) {
    let patience = ReceiveStream.keyframePatience
    while true {
      guard let (picture, bytes) = assembler.next(at: now, patience: patience) else {
        // With no packet missing before it, what a frame waits for will never be complete.
        guard let blocked = assembler.blocked, blocked <= missing.oldest ?? .max else { return }
        assembler.abandon(through: blocked - 1)
        continue
      }
      missing.settle(through: picture.last)
      if picture.isKey { keyframeWanted = false }
      outbox.append(
        .received(
          ReceivedFrame(
            mid: mid, ssrc: ssrc, kind: .video, codec: codec.name,
            payloadType: codec.payloadType, firstSequence: picture.first,
            lastSequence: picture.last, rtpTime: picture.timestamp,
            extendedTime: timestamps.unwrap(picture.timestamp),
            firstArrival: picture.firstArrival, lastArrival: picture.lastArrival, bytes: bytes,
            isKey: picture.isKey)))
    }
  }

  // MARK: - Feedback

  /// What has to be asked for again now; frames that wait for what is given up are given up too.
  mutating func demand(
    _ codec: FlowSection.Codec, at now: Instant, spacing: Interval,
    into outbox: inout Outbox<MediaFlow.Output>
  ) -> [UInt16] {
    guard let due = missing.due, due <= now else { return [] }
    let demand = missing.demand(at: now, spacing: spacing)
    if let abandoned = demand.abandoned { assembler.abandon(through: abandoned) }
    deliver(codec, at: now, into: &outbox)
    return demand.requested
  }

  /// Takes note of a request for lost packets that was sent.
  mutating func countNACK() { counters.nackCount += 1 }

  /// A request for a key frame, when one is needed and the last one is long enough ago.
  mutating func keyframeRequest(
    _ codec: FlowSection.Codec, senderSSRC: UInt32, roundTrip: Interval?, at now: Instant
  ) -> RTCPPacket? {
    guard keyframeWanted || assembler.wantsKeyframe else { return nil }
    let spacing = max(ReceiveStream.keyframeSpacing, (roundTrip ?? .zero) * 3 / 2)
    if let keyframeRequestedAt, now - keyframeRequestedAt < spacing { return nil }
    if codec.feedback.contains("nack pli") {
      keyframeRequestedAt = now
      counters.pliCount += 1
      return .pictureLoss(PictureLoss(senderSSRC: senderSSRC, mediaSSRC: ssrc))
    }
    guard codec.feedback.contains("ccm fir") else { return nil }
    keyframeRequestedAt = now
    counters.firCount += 1
    demandNumber &+= 1
    return .fullIntraRequest(
      FullIntraRequest(senderSSRC: senderSSRC, entries: [.init(ssrc: ssrc, number: demandNumber)]))
  }

  // MARK: - Reports

  /// The report blocks about what came since the last report.
  mutating func reportBlocks(at now: Instant) -> [ReportBlock] {
    var blocks: [ReportBlock] = []
    if receivedSinceReport {
      var last: UInt32 = 0
      var delay: UInt32 = 0
      if let lastSenderReport {
        last = lastSenderReport.compactNTP
        delay = (now - lastSenderReport.arrival).compactUnits
      }
      blocks.append(reception.report(ssrc: ssrc, lastReport: last, delay: delay))
    }
    if retransmittedSinceReport, let rtxSSRC {
      blocks.append(rtxReception.report(ssrc: rtxSSRC, lastReport: 0, delay: 0))
    }
    receivedSinceReport = false
    retransmittedSinceReport = false
    return blocks
  }

  /// Takes the source's own report.
  mutating func receive(_ report: SenderReport, at arrival: Instant) {
    lastSenderReport = (UInt32(truncatingIfNeeded: report.ntpTime >> 16), arrival)
    var remote = counters.remote ?? RemoteOutboundCounters()
    remote.reportedAt = arrival
    remote.packetsSent = UInt64(report.packetCount)
    remote.bytesSent = UInt64(report.octetCount)
    remote.remoteUnixNanoseconds = WallClock.unixNanoseconds(ntp: report.ntpTime)
    remote.remoteRTPTime = report.rtpTime
    remote.reportsSent += 1
    counters.remote = remote
  }

  /// Takes a round trip that was measured by extended reports.
  mutating func receive(roundTrip: Interval) {
    guard counters.remote != nil else { return }
    counters.remote?.roundTripTime = roundTrip.seconds
    counters.remote?.totalRoundTripTime += roundTrip.seconds
    counters.remote?.roundTripTimeMeasurements += 1
  }
}

extension Interval {
  /// The length in units of 1/65536 s, as reports carry it; 0 when negative.
  var compactUnits: UInt32 {
    let length = max(0, nanoseconds)
    let seconds = UInt64(length / 1_000_000_000)
    let rest = UInt64(length % 1_000_000_000)
    return UInt32(truncatingIfNeeded: seconds << 16 | (rest << 16) / 1_000_000_000)
  }

  /// The interval of so many units of 1/65536 s.
  init(compactUnits: UInt32) {
    self.init(nanoseconds: Int64((UInt64(compactUnits) * 1_000_000_000) >> 16))
  }
}

extension WallClock {
  /// The Unix time in nanoseconds of an NTP time (RFC 5905 section 6).
  static func unixNanoseconds(ntp: UInt64) -> Int64 {
    let seconds = Int64(ntp >> 32) - 2_208_988_800
    let fraction = Int64(((ntp & 0xffff_ffff) * 1_000_000_000) >> 32)
    return seconds * 1_000_000_000 + fraction
  }
}

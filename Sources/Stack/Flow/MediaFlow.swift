import RTP
package import Wire

/// All RTP and RTCP on one transport before encryption: streams, feedback, retransmission, pacing.
///
/// Encoded frames are packetized and sent; received packets are reassembled into frames. Encryption
/// happens below this layer, encoding above it. This type only routes between parts, each of which
/// owns its state.
package struct MediaFlow: Machine {
  /// Spare capacity for SRTP in each outgoing packet, in bytes.
  package static let reservedOverhead = 32

  private let wallClock: WallClock
  private let composer: RTCPComposer
  private(set) var agreement = FlowAgreement()
  private(set) var senders: SendStreams
  private(set) var pacer = Pacer()
  private(set) var rate = RateControl()
  private(set) var receivers = ReceiveStreams()
  private(set) var arrivals = ArrivalFeedback()
  private(set) var reports: ReportSchedule
  private(set) var roundTrips = RoundTripMeter()
  private(set) var isWritable = false
  private var isClosed = false
  private let countsProbes: Bool
  /// When work is due next; stored, because every step of the peer reads it.
  package private(set) var deadline: Instant?
  /// Packets dropped, by reason.
  package private(set) var refused = RefusedPackets()

  /// Creates a flow without sections, on a transport that is not writable yet.
  /// - Parameters:
  ///   - entropy: the source of sequence numbers, timestamp offsets and report intervals.
  ///   - wallClock: the source of the NTP times in reports.
  ///   - cname: the canonical name in source descriptions (RFC 7022).
  ///   - reportsWithDemands: whether a PLI or FIR is preceded by a report on its source.
  ///   - countsProbes: whether padding on announced RTX SSRCs is counted even before the first
  ///     retransmission.
  package init(
    entropy: EntropyStream, wallClock: WallClock, cname: String, reportsWithDemands: Bool = false,
    countsProbes: Bool = false
  ) {
    self.wallClock = wallClock
    self.countsProbes = countsProbes
    composer = RTCPComposer(cname: cname, reportsWithDemands: reportsWithDemands)
    senders = SendStreams(entropy)
    reports = ReportSchedule(entropy)
  }

  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    guard !isClosed else { return }
    defer {
      deadline = nextDeadline
      assert(isConsistent, "sums are not those of their parts")
    }
    switch input {
    case .configure(let sections):
      agreement = FlowAgreement(sections)
      senders.configure(agreement.sections)
      receivers.configure(agreement, into: &outbox)
    case .bitrateLimits(let start, let maximum, let minimum):
      rate.congestion.setLimits(start: start, maximum: maximum, minimum: minimum)
    case .estimate(let bitrate): rate.congestion.setEstimate(bitrate)
    case .writable(let isWritable): setWritable(isWritable, into: &outbox)
    case .rtp(let bytes, let arrival, let ecn):
      receiveRTP(bytes, arrival: arrival, ecn: ecn, at: now, into: &outbox)
    case .rtcp(let bytes, let arrival):
      receiveRTCP(bytes, arrival: arrival, at: now, into: &outbox)
    case .frame(let mid, let rid, let frame):
      send(frame, StreamName(mid, rid), at: now, into: &outbox)
    case .requestKeyframe(let mid): receivers.wantKeyframe(mid)
    case .deadline: break
    case .close:
      close(at: now, into: &outbox)
      return
    }
    work(at: now, into: &outbox)
  }

  /// Whether all totals match their parts; asserted in debug builds.
  private var isConsistent: Bool {
    pacer.isConsistent && senders.all.allSatisfy(\.isConsistent)
      && receivers.all.allSatisfy(\.counters.isConsistent)
  }

  private var nextDeadline: Instant? {
    guard isWritable, !isClosed else { return nil }
    let deadline = earliest(earliest(pacer.due, arrivals.deadline), reports.deadline)
    return earliest(deadline, receivers.deadline)
  }

  /// Does all work that is due, whatever the input was; this saves separate wake-ups.
  private mutating func work(at now: Instant, into outbox: inout Outbox<Output>) {
    if senders.sendsVideo, let target = rate.announce(at: now) {
      outbox.append(.targetBitrate(target))
    }
    guard isWritable else { return }
    sendPaced(at: now, into: &outbox)
    requestMissing(at: now, into: &outbox)
    requestKeyframes(at: now, into: &outbox)
    if let due = arrivals.due, due <= now {
      for feedback in arrivals.makeReports(senderSSRC: senders.localSSRC) {
        put(.transportFeedback(feedback), into: &outbox)
      }
    }
    if reports.consumeDue(at: now) { report(at: now, into: &outbox) }
  }

  private mutating func setWritable(_ isWritable: Bool, into outbox: inout Outbox<Output>) {
    guard isWritable != self.isWritable else { return }
    self.isWritable = isWritable
    if isWritable {
      for name in senders.consumeLosses() {
        outbox.append(.keyframeRequested(mid: name.mid, rid: name.rid))
      }
    } else if !pacer.isEmpty {
      // Queued video would arrive too late; a key frame is requested when the path recovers.
      pacer.removeAll()
      senders.loseFrames()
    }
  }

  // MARK: - Sending

  /// Sends a frame's packets: audio immediately, video through the pacer.
  private mutating func send(
    _ frame: EncodedFrame, _ name: StreamName, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard let index = senders.index(of: name), !frame.bytes.isEmpty else { return }
    guard isWritable, senders.all[index].agreement.carries(frame.codec) else {
      senders.discardFrame(index)
      return
    }
    reports.begin(at: now)
    let parts = senders.split(frame, index, at: now)
    if senders.all[index].kind == .audio {
      for part in parts { _ = transmit(part, index, at: now, into: &outbox) }
    } else {
      let ssrc = senders.all[index].ssrc
      for part in parts { pacer.append(part, ssrc: ssrc, at: now) }
    }
  }

  /// Sends the packets the pacer releases.
  private mutating func sendPaced(at now: Instant, into outbox: inout Outbox<Output>) {
    while let item = pacer.next(at: now) {
      var length = 0
      switch item {
      case .part(let ssrc, let part):
        guard let index = senders.index(of: ssrc) else { continue }
        length = transmit(part, index, at: now, into: &outbox)
        rate.resends.earn(bytes: length)
      case .resend(let ssrc, let sequence):
        guard let index = senders.index(of: ssrc) else { continue }
        length = retransmit(sequence, index, at: now, into: &outbox)
      }
      pacer.sent(bytes: length, at: now, targetBitrate: rate.target)
    }
  }

  private mutating func transmit(
    _ part: PayloadPart, _ index: Int, at now: Instant, into outbox: inout Outbox<Output>
  ) -> Int {
    let packet = senders.packet(
      for: part, index, transportSequence: rate.nextSequence,
      sendTime: wallClock.absoluteSendTime(at: now), at: now)
    return put(
      packet, isNumbered: senders.all[index].agreement.isTransportWide, at: now, into: &outbox)
  }

  private mutating func retransmit(
    _ sequence: UInt16, _ index: Int, at now: Instant, into outbox: inout Outbox<Output>
  ) -> Int {
    guard rate.mayResend(at: now),
      let (packet, isRepeated) = senders.retransmission(
        of: sequence, index, transportSequence: rate.nextSequence,
        sendTime: wallClock.absoluteSendTime(at: now))
    else { return 0 }
    rate.resends.spend(bytes: packet.count, at: now)
    let isNumbered = senders.all[index].agreement.isTransportWide && !isRepeated
    return put(packet, isNumbered: isNumbered, at: now, into: &outbox)
  }

  private mutating func put(
    _ packet: [UInt8], isNumbered: Bool, at now: Instant, into outbox: inout Outbox<Output>
  ) -> Int {
    let length = packet.count
    if isNumbered { rate.sendNumbered(length, at: now) }
    outbox.append(.rtp(packet))
    return length
  }

  // MARK: - Receiving

  private mutating func receiveRTP(
    _ bytes: [UInt8], arrival: Instant, ecn: ECNMark?, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    guard let header = try? RTPHeader(parsing: bytes.span.bytes) else {
      refused.malformed += 1
      return
    }
    let values = HeaderExtensions(
      parsing: bytes.span.bytes, header: header, map: agreement.extensions)
    // Every packet is reported to the peer's congestion control, whatever it contains.
    if agreement.reportsArrivals, let sequence = values.transportSequence {
      arrivals.receive(sequence, ssrc: header.ssrc, arrival: arrival, at: now)
    }
    if agreement.reportsBitrate { arrivals.receive(bytes: bytes.count, at: arrival) }
    guard
      let place = receivers.route(
        header, ReceiveStreams.Name(values, in: bytes), agreement, at: now, into: &outbox),
      let section = agreement.section(receivers.all[place.index].mid)
    else {
      // A packet with only padding probes the path and needs no stream.
      if !header.payload.isEmpty {
        refused.unroutable += 1
      } else if countsProbes {
        receivers.countProbe(header, arrival: arrival, ecn: ecn, agreement)
      }
      return
    }
    reports.begin(at: now)
    receivers.count(ecn, place)
    guard
      let codec = section.codec(header.payloadType, isRetransmission: place.isRetransmission)
    else {
      refused.unusablePayload += 1
      receivers.receiveUnusable(header, place, arrival: arrival, at: now)
      return
    }
    receivers.receive(
      ReceiveStream.Packet(
        header: header, extensions: values, bytes: bytes, arrival: arrival, codec: codec),
      place, at: now, into: &outbox)
  }

  /// Sends NACKs for missing packets (RFC 4585 section 6.2.1).
  private mutating func requestMissing(at now: Instant, into outbox: inout Outbox<Output>) {
    let spacing = roundTrips.requestSpacing
    for index in receivers.all.indices {
      let requests = receivers.demands(
        index, senderSSRC: senders.localSSRC, at: now, spacing: spacing, into: &outbox)
      for request in requests { put(.genericNACK(request), into: &outbox) }
    }
  }

  /// Sends a PLI or FIR where a key frame is needed.
  private mutating func requestKeyframes(at now: Instant, into outbox: inout Outbox<Output>) {
    for index in receivers.all.indices {
      if let request = receivers.keyframeRequest(
        index, senderSSRC: senders.localSSRC, roundTrip: roundTrips.newest, at: now)
      {
        let block = composer.reportsWithDemands ? receivers.all[index].reportBlock(at: now) : nil
        put(request, with: block, into: &outbox)
      }
    }
  }

  // MARK: - Incoming RTCP

  private mutating func receiveRTCP(
    _ bytes: [UInt8], arrival: Instant, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    let compound = RTCPCompound(parsing: bytes.span.bytes)
    if compound.malformedCount > 0 { refused.malformed += 1 }
    // All senders in one compound packet belong to the same peer, so one answer is valid for all of
    // them.
    var peers: [UInt32] = []
    for packet in compound.packets {
      outbox.append(.rtcpBlock(RTCPRecord(packet, isInbound: true)))
      if case .senderReport(let report) = packet { peers.append(report.ssrc) }
      if case .extendedReport(let report) = packet {
        receive(report, of: peers, arrival: arrival)
      } else {
        receive(packet, arrival: arrival, at: now, into: &outbox)
      }
    }
  }

  private mutating func receive(
    _ packet: RTCPPacket, arrival: Instant, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch packet {
    case .senderReport(let report):
      receivers.receive(report, at: arrival)
      receive(report.blocks, arrival: arrival, at: now, into: &outbox)
    case .receiverReport(let report):
      receive(report.blocks, arrival: arrival, at: now, into: &outbox)
    case .goodbye(let goodbye): receivers.end(goodbye.ssrcs, into: &outbox)
    case .genericNACK(let nack): resend(nack, at: now)
    case .pictureLoss(let loss):
      demandKeyframe(of: loss.mediaSSRC, number: nil, at: now, into: &outbox)
    case .fullIntraRequest(let request):
      for entry in request.entries {
        demandKeyframe(of: entry.ssrc, number: entry.number, at: now, into: &outbox)
      }
    case .maximumBitrate(let limit): rate.congestion.receive(maximumBitrate: limit.bitrate, at: now)
    case .transportFeedback(let feedback): rate.congestion.receive(feedback, at: now)
    case .extendedReport, .sourceDescription, .other: break
    }
  }

  private mutating func receive(
    _ blocks: [ReportBlock], arrival: Instant, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    for block in blocks {
      guard let index = senders.index(of: block) else { continue }
      let measured = roundTrips.measure(
        lastReport: block.lastSenderReport, delay: block.delaySinceLastSenderReport,
        arrival: wallClock.compactNTP(at: arrival))
      senders.receive(block, index, roundTrip: measured, at: arrival)
      guard block.ssrc == senders.all[index].ssrc else { continue }
      outbox.append(.lossReported(mid: senders.all[index].mid, block.fractionLost))
      if senders.all[index].kind == .video {
        rate.congestion.receive(fractionLost: block.fractionLost, at: now)
      }
    }
  }

  private mutating func receive(_ report: ExtendedReport, of peers: [UInt32], arrival: Instant) {
    if let time = report.receiverReferenceTime {
      roundTrips.recordReference(time, of: report.ssrc, arrival: arrival)
    }
    for delay in report.delays where delay.ssrc == senders.localSSRC {
      guard
        let measured = roundTrips.measure(
          lastReport: delay.lastReport, delay: delay.delaySinceLastReport,
          arrival: wallClock.compactNTP(at: arrival))
      else { continue }
      receivers.receive(roundTrip: measured, of: peers + [report.ssrc])
    }
  }

  /// Queues the requested packets, each at most once per round trip.
  private mutating func resend(_ nack: GenericNACK, at now: Instant) {
    guard let index = senders.index(of: nack.mediaSSRC) else { return }
    senders.countNACK(index)
    guard isWritable, senders.all[index].agreement.repairs else { return }
    let spacing = roundTrips.resendSpacing
    for sequence in nack.sequences
    where senders.mayResend(sequence, index, at: now, spacing: spacing) {
      guard pacer.resend(sequence, ssrc: nack.mediaSSRC, at: now) else { return }
    }
  }

  private mutating func demandKeyframe(
    of ssrc: UInt32, number: UInt8?, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    if let name = senders.acceptDemand(of: ssrc, number: number, at: now) {
      outbox.append(.keyframeRequested(mid: name.mid, rid: name.rid))
    }
  }

  // MARK: - Outgoing RTCP

  /// Sends reports on all streams in one compound packet.
  private mutating func report(at now: Instant, into outbox: inout Outbox<Output>) {
    var packets = reportPackets(at: now)
    if agreement.reportsBitrate,
      let estimate = arrivals.estimate(
        senderSSRC: senders.localSSRC, of: receivers.videoSSRCs, at: now)
    {
      packets.append(.maximumBitrate(estimate))
    }
    put(packets, into: &outbox)
  }

  private mutating func reportPackets(at now: Instant) -> [RTCPPacket] {
    let blocks = receivers.makeReportBlocks(at: now)
    if let worst = blocks.map(\.fractionLost).max() { arrivals.receive(fractionLost: worst) }
    return composer.reports(
      senders.makeReports(wallClock, at: now), blocks, localSSRC: senders.localSSRC,
      receives: receivers.isReceiving, reference: wallClock.ntp(at: now),
      roundTrips.makeAnswers(at: now))
  }

  /// Stops, and sends a last report with a BYE for the streams being sent.
  private mutating func close(at now: Instant, into outbox: inout Outbox<Output>) {
    isClosed = true
    guard isWritable else { return }
    let ssrcs = senders.activeSSRCs
    guard !ssrcs.isEmpty else { return }
    var packets = reportPackets(at: now)
    packets.append(.goodbye(Goodbye(ssrcs: Array(ssrcs.prefix(RTCPComposer.sourcesMaximum)))))
    put(packets, into: &outbox)
  }

  private func put(
    _ packet: RTCPPacket, with block: ReportBlock? = nil, into outbox: inout Outbox<Output>
  ) {
    put(
      composer.feedback(
        packet, localSSRC: senders.localSSRC, isAlone: agreement.usesReducedSize, block: block),
      into: &outbox)
  }

  private func put(_ packets: [RTCPPacket], into outbox: inout Outbox<Output>) {
    let bytes = RTCPComposer.bytes(packets)
    for packet in packets {
      outbox.append(.rtcpBlock(RTCPRecord(packet, isInbound: false)))
    }
    outbox.append(.rtcp(bytes))
  }
}

// MARK: - State

// The state that stats and encoders read.
extension MediaFlow {
  /// Counters of the sent streams, including those whose sections currently do not send.
  package var outbound: [OutboundStreamCounters] { senders.all.map(\.snapshot) }

  /// Counters of the received streams, including ended ones and, for each section or layer, the
  /// last one that was replaced.
  package var inbound: [InboundStreamCounters] { receivers.all.map(\.snapshot) }

  /// Estimated capacity in bits per second; nil before the peer's first transport-wide feedback or
  /// REMB.
  package var availableOutgoingBitrate: UInt64? {
    rate.congestion.isEstimated ? rate.target : nil
  }

  /// Returns the maximum bit rate for video that arrives already encoded; nil if the path is not
  /// known to be the limit.
  package func pathLimit(at now: Instant) -> UInt64? { rate.congestion.pathLimit(at: now) }

  /// The receive rate sent to the peer in REMB, in bits per second; nil before the first REMB, and
  /// always nil if the peer estimates the rate itself.
  package var availableIncomingBitrate: UInt64? {
    agreement.reportsBitrate ? arrivals.reportedBitrate : nil
  }
}

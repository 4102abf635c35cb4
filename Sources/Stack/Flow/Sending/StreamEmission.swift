package import RTP
package import Wire

/// The sender's counters for an observed stream, derived from its packets and the reports on it
/// (W3C outbound-rtp, remote-inbound-rtp).
package struct StreamEmission {
  /// A sender report that report blocks may refer to.
  private struct Report {
    var compactNTP: UInt32
    var at: Instant
  }

  private static let reportsMaximum = 16
  private static let requestedMaximum = 512
  private static let earlyMaximum = 64
  /// The longest plausible round trip; longer ones are treated as errors.
  private static let longestRoundTrip = Interval.seconds(30)

  private var sent: OutboundStreamCounters
  /// Retransmissions for which no request was captured.
  private var unrequested = (packets: UInt64(0), bytes: UInt64(0))
  private let clockRate: UInt32
  private var firstSequence: Int64?
  private var lastTime: UInt32?
  private var lastKeyTime: UInt32?
  /// The frame size in the last key frame, in pixels.
  package private(set) var size: (width: Int, height: Int)?
  /// Requested packets not retransmitted yet, oldest first.
  private var requested: [UInt16] = []
  /// Retransmitted packets not requested yet, oldest first.
  private var early: [(sequence: UInt16, bytes: UInt64)] = []
  /// Whether retransmissions sent before their request are counted once the request arrives.
  ///
  /// libwebrtc retransmits packets that transport-wide feedback reports lost, before the NACK
  /// arrives.
  private let countsEarlyRepeats: Bool
  private var reports: [Report] = []

  package var counters: OutboundStreamCounters {
    var counters = sent
    // If none of the receiver's reports are visible, neither are its requests.
    if counters.remote == nil, counters.nackCount == 0 {
      counters.retransmittedPacketsSent += unrequested.packets
      counters.retransmittedBytesSent += unrequested.bytes
    }
    return counters
  }

  package init(
    mid: String, kind: MediaKind, ssrc: UInt32, codec: CodecName, payloadType: UInt8,
    clockRate: UInt32, countsEarlyRepeats: Bool = false
  ) {
    self.clockRate = clockRate
    self.countsEarlyRepeats = countsEarlyRepeats
    sent = OutboundStreamCounters(
      mid: mid, kind: kind, ssrc: ssrc, rtxSSRC: nil, codec: codec, payloadType: payloadType)
  }

  /// What an observer can see of a packet's content.
  package struct Content {
    package var codec: FlowSection.Codec
    /// Whether the packet carries media; false for FEC and padding, which belong to no frame.
    package var isMedia: Bool
    package var isKey = false
    /// The frame size that a key frame states, in pixels; nil if the packet states none.
    package var size: (width: Int, height: Int)?

    package init(codec: FlowSection.Codec, isMedia: Bool) {
      self.codec = codec
      self.isMedia = isMedia
    }
  }

  /// Counts a packet of the stream.
  /// - Parameter content: the packet's content; nil if it is not visible.
  package mutating func send(_ header: RTPHeader, _ content: Content?) {
    count(header)
    sent.payloadType = content?.codec.payloadType ?? header.payloadType
    if let content { sent.codec = content.codec.name }
    if firstSequence == nil { firstSequence = Int64(header.sequence) }
    // Padding belongs to no frame, and FEC has an earlier frame's timestamp.
    guard sent.kind == .video, !header.payload.isEmpty, content?.isMedia != false else { return }
    if let size = content?.size { self.size = size }
    if content?.isKey == true, lastKeyTime != header.timestamp {
      lastKeyTime = header.timestamp
      sent.keyFramesSent += 1
    }
    if let lastTime, Int32(bitPattern: header.timestamp &- lastTime) <= 0 { return }
    lastTime = header.timestamp
    sent.framesSent += 1
  }

  /// Counts a packet on the RTX SSRC.
  ///
  /// - Parameter original: sequence number of the packet that it repeats; nil if it is not visible.
  /// - Returns: whether it was counted as a retransmission.
  @discardableResult
  package mutating func repeatPacket(_ header: RTPHeader, of original: UInt16?) -> Bool {
    sent.rtxSSRC = header.ssrc
    count(header)
    guard !header.payload.isEmpty else { return false }
    if let original, let index = requested.firstIndex(of: original) {
      requested.remove(at: index)
    } else if original != nil {
      unrequested.packets += 1
      unrequested.bytes += UInt64(header.payload.count)
      if countsEarlyRepeats, let original {
        if early.count == StreamEmission.earlyMaximum { early.removeFirst() }
        early.append((original, UInt64(header.payload.count)))
      }
      return false
    }
    sent.retransmittedPacketsSent += 1
    sent.retransmittedBytesSent += UInt64(header.payload.count)
    return true
  }

  /// Counts a packet from the stream's FlexFEC source.
  package mutating func sendCorrection(_ header: RTPHeader) { count(header) }

  private mutating func count(_ header: RTPHeader) {
    sent.packetsSent += 1
    sent.bytesSent += UInt64(header.payload.count)
    sent.headerBytesSent += UInt64(header.headerLength + header.paddingLength)
  }

  package mutating func report(_ report: SenderReport, at arrival: Instant) {
    if reports.count >= StreamEmission.reportsMaximum { reports.removeFirst() }
    reports.append(
      Report(compactNTP: UInt32(truncatingIfNeeded: report.ntpTime >> 16), at: arrival))
  }

  /// Handles a report block from the receiver.
  ///
  /// The round trip is measured from the capture point to the receiver and back (RFC 3550
  /// section 6.4.1), since the sender's clock is unknown here.
  ///
  /// - Returns: the round trip; nil if the block does not show one.
  @discardableResult
  package mutating func receive(_ block: ReportBlock, at arrival: Instant) -> Interval? {
    var roundTrip: Interval?
    if block.lastSenderReport != 0,
      let report = reports.last(where: { $0.compactNTP == block.lastSenderReport })
    {
      let delay = Interval(compactUnits: block.delaySinceLastSenderReport)
      let length = (arrival - report.at) - delay
      if length < StreamEmission.longestRoundTrip { roundTrip = max(length, .zero) }
    }
    sent.remote.apply(
      block, firstSequence: firstSequence ?? 0, clockRate: clockRate, roundTrip: roundTrip,
      at: arrival)
    return roundTrip
  }

  /// Counts a NACK from the receiver, and records the requested packets.
  package mutating func receive(_ nack: GenericNACK) {
    sent.nackCount += 1
    for sequence in nack.sequences.prefix(StreamEmission.requestedMaximum)
    where !requested.contains(sequence) && !wasRepeated(sequence) {
      request(sequence)
    }
  }

  private mutating func request(_ sequence: UInt16) {
    if requested.count == StreamEmission.requestedMaximum { requested.removeFirst() }
    requested.append(sequence)
  }

  /// Expects a retransmission of a packet that transport-wide feedback reports lost, because
  /// libwebrtc sends it unrequested.
  package mutating func receive(lost sequence: UInt16) {
    if !requested.contains(sequence) { request(sequence) }
  }

  /// Counts an earlier retransmission of a packet that is only now requested; returns false if
  /// there was none.
  private mutating func wasRepeated(_ sequence: UInt16) -> Bool {
    guard let index = early.firstIndex(where: { $0.sequence == sequence }) else { return false }
    let bytes = early.remove(at: index).bytes
    unrequested.packets -= 1
    unrequested.bytes -= bytes
    sent.retransmittedPacketsSent += 1
    sent.retransmittedBytesSent += bytes
    return true
  }

  /// Counts a PLI or FIR from the receiver.
  package mutating func countKeyframeRequest(isFIR: Bool) {
    if isFIR { sent.firCount += 1 } else { sent.pliCount += 1 }
  }
}

extension RemoteInboundCounters? {
  /// Applies a report block; the first one starts the counters.
  mutating func apply(
    _ block: ReportBlock, firstSequence: Int64, clockRate: UInt32, roundTrip: Interval?,
    at arrival: Instant
  ) {
    var remote = self ?? RemoteInboundCounters()
    remote.reportedAt = arrival
    remote.packetsLost = Int64(block.cumulativeLost)
    let highest = Int64(block.highestSequence)
    remote.packetsReceived = max(0, highest - firstSequence + 1 - remote.packetsLost)
    remote.fractionLost = Double(block.fractionLost) / 256
    remote.jitter = clockRate == 0 ? 0 : Double(block.jitter) / Double(clockRate)
    if let roundTrip {
      remote.roundTripTime = roundTrip.seconds
      remote.totalRoundTripTime += roundTrip.seconds
      remote.roundTripTimeMeasurements += 1
    }
    self = remote
  }
}

package import RTP
package import Wire

/// A stream of somebody else's call as far as its packets and the reports on it show what its
/// sender counts (W3C outbound-rtp, remote-inbound-rtp).
package struct StreamEmission {
  /// A sender report that went by, which report blocks refer to.
  private struct Report {
    var compactNTP: UInt32
    var at: Instant
  }

  private static let reportsMaximum = 16
  /// A round trip this long is not believed.
  private static let longestRoundTrip = Interval.seconds(30)

  package private(set) var counters: OutboundStreamCounters
  private let clockRate: UInt32
  private var firstSequence: Int64?
  private var lastTime: UInt32?
  private var reports: [Report] = []

  /// Begins with the first packet of a stream.
  package init(
    mid: String, kind: MediaKind, ssrc: UInt32, codec: CodecName, payloadType: UInt8,
    clockRate: UInt32
  ) {
    self.clockRate = clockRate
    counters = OutboundStreamCounters(
      mid: mid, kind: kind, ssrc: ssrc, rtxSSRC: nil, codec: codec, payloadType: payloadType)
  }

  /// Counts a packet of the stream or of its retransmissions.
  package mutating func send(_ header: RTPHeader, isRetransmission: Bool) {
    counters.packetsSent += 1
    counters.bytesSent += UInt64(header.payload.count)
    counters.headerBytesSent += UInt64(header.headerLength + header.paddingLength)
    if isRetransmission {
      counters.rtxSSRC = header.ssrc
      counters.retransmittedPacketsSent += 1
      counters.retransmittedBytesSent += UInt64(header.payload.count)
      return
    }
    counters.payloadType = header.payloadType
    if firstSequence == nil { firstSequence = Int64(header.sequence) }
    // What is padding alone belongs to no frame.
    guard counters.kind == .video, !header.payload.isEmpty, lastTime != header.timestamp else {
      return
    }
    lastTime = header.timestamp
    counters.framesSent += 1
  }

  /// Takes note of a report of the sender.
  package mutating func report(_ report: SenderReport, at arrival: Instant) {
    if reports.count >= StreamEmission.reportsMaximum { reports.removeFirst() }
    reports.append(
      Report(compactNTP: UInt32(truncatingIfNeeded: report.ntpTime >> 16), at: arrival))
  }

  /// Takes what the receiver reports.
  ///
  /// The round trip is that from the place of the capture to the receiver and back (RFC 3550
  /// section 6.4.1), for the sender's clock is not known here.
  package mutating func receive(_ block: ReportBlock, at arrival: Instant) {
    var roundTrip: Interval?
    if block.lastSenderReport != 0,
      let report = reports.last(where: { $0.compactNTP == block.lastSenderReport })
    {
      let delay = Interval(compactUnits: block.delaySinceLastSenderReport)
      let length = (arrival - report.at) - delay
      if length < StreamEmission.longestRoundTrip { roundTrip = max(length, .zero) }
    }
    counters.remote.take(
      block, firstSequence: firstSequence ?? 0, clockRate: clockRate, roundTrip: roundTrip,
      at: arrival)
  }

  /// Counts a request for lost packets that goes to the sender.
  package mutating func countNACK() { counters.nackCount += 1 }

  /// Counts a request for a key frame that goes to the sender.
  package mutating func countKeyframeRequest(isFIR: Bool) {
    if isFIR { counters.firCount += 1 } else { counters.pliCount += 1 }
  }
}

extension RemoteInboundCounters? {
  /// Takes a report block; the first one begins the counters.
  mutating func take(
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

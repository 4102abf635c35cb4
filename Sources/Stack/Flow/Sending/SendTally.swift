import RTP
import Wire

/// Counters of a sent stream, for W3C outbound-rtp and sender reports (RFC 3550 section 6.4.1).
struct SendTally {
  private(set) var counters: OutboundStreamCounters
  private var frameBytes: UInt64 = 0
  private var mediaPackets: UInt32 = 0
  private var mediaOctets: UInt32 = 0
  private var lastFrame: (timestamp: UInt32, at: Instant)?
  /// Whether packets were sent since the last report.
  private var hasNews = false

  init(_ counters: OutboundStreamCounters) { self.counters = counters }

  /// Records a renegotiation.
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

  /// Counts a packet by its size and payload size in bytes.
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

  /// Counts a NACK.
  mutating func countNACK() { counters.nackCount += 1 }

  mutating func countKeyframeRequest(isFIR: Bool) {
    if isFIR { counters.firCount += 1 } else { counters.pliCount += 1 }
  }

  /// Handles the peer's report block.
  mutating func receive(
    _ block: ReportBlock, first: UInt16, clockRate: UInt32, roundTrip: Interval?,
    at arrival: Instant
  ) {
    counters.remote.apply(
      block, firstSequence: Int64(first), clockRate: clockRate, roundTrip: roundTrip, at: arrival)
  }

  /// Returns the sender report without blocks; nil if nothing was sent since the last.
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

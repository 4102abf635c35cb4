import RTP
import Wire

/// Owns what the peer is told of the packets that arrive, for its congestion control: when each of
/// them came, or else the bit rate of all (REMB).
struct ArrivalFeedback {
  private var log = ArrivalLog()
  private var bitrate = IncomingBitrate()
  /// The SSRC of the newest packet that arrived with a transport-wide sequence number.
  private var newestSSRC: UInt32 = 0

  /// When arrivals are to be reported in a step that happens anyway, and when for their own sake.
  var due: Instant? { log.due }
  var deadline: Instant? { log.deadline }

  /// The bit rate that the peer was told, in bits per second; nil before it was.
  var reportedBitrate: UInt64? { bitrate.latest }

  /// Records a packet with a transport-wide sequence number.
  mutating func receive(_ sequence: UInt16, ssrc: UInt32, arrival: Instant, at now: Instant) {
    log.receive(sequence, arrival: arrival, at: now)
    newestSSRC = ssrc
  }

  /// Counts a packet towards the bit rate.
  mutating func receive(bytes: Int, at arrival: Instant) {
    bitrate.receive(bytes: bytes, at: arrival)
  }

  /// Handles the share of packets lost since the last report, in 1/256.
  mutating func receive(fractionLost: UInt8) { bitrate.receive(fractionLost: fractionLost) }

  /// Creates the feedbacks for what has arrived since the last ones.
  mutating func takeReports(senderSSRC: UInt32) -> [TransportFeedback] {
    log.report(senderSSRC: senderSSRC, mediaSSRC: newestSSRC)
  }

  /// The bit rate that the peer may send these sources with.
  mutating func estimate(senderSSRC: UInt32, of ssrcs: [UInt32], at now: Instant)
    -> MaximumBitrate?
  {
    guard !ssrcs.isEmpty, let bitrate = bitrate.estimate(at: now) else { return nil }
    return MaximumBitrate(senderSSRC: senderSSRC, bitrate: bitrate, ssrcs: ssrcs)
  }
}

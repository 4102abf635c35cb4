import RTP
import Wire

/// Feedback on arriving packets for the peer's congestion control: arrival times, or the total bit
/// rate (REMB).
struct ArrivalFeedback {
  private var log = ArrivalLog()
  private var bitrate = IncomingBitrate()
  /// The SSRC of the newest packet that arrived with a transport-wide sequence number.
  private var newestSSRC: UInt32 = 0

  /// When arrivals are reported if a step happens anyway, and when they need one of their own.
  var due: Instant? { log.due }
  var deadline: Instant? { log.deadline }

  /// The bit rate last sent to the peer, in bits per second; nil before the first.
  var reportedBitrate: UInt64? { bitrate.latest }

  /// Records the arrival of a packet with a transport-wide sequence number.
  mutating func receive(_ sequence: UInt16, ssrc: UInt32, arrival: Instant, at now: Instant) {
    log.receive(sequence, arrival: arrival, at: now)
    newestSSRC = ssrc
  }

  mutating func receive(bytes: Int, at arrival: Instant) {
    bitrate.receive(bytes: bytes, at: arrival)
  }

  /// Handles the share of packets lost since the last report, in 1/256.
  mutating func receive(fractionLost: UInt8) { bitrate.receive(fractionLost: fractionLost) }

  /// Returns feedback on the arrivals since the last call.
  mutating func makeReports(senderSSRC: UInt32) -> [TransportFeedback] {
    log.report(senderSSRC: senderSSRC, mediaSSRC: newestSSRC)
  }

  /// Returns a REMB message for these sources.
  mutating func estimate(senderSSRC: UInt32, of ssrcs: [UInt32], at now: Instant)
    -> MaximumBitrate?
  {
    guard !ssrcs.isEmpty, let bitrate = bitrate.estimate(at: now) else { return nil }
    return MaximumBitrate(senderSSRC: senderSSRC, bitrate: bitrate, ssrcs: ssrcs)
  }
}

import RTP
import Wire

/// Owns how much may be sent: the estimate of the path with the packets that it rests on, what of
/// it goes to retransmissions, and what encoders were told.
struct RateControl {
  /// The target is told anew at most so often.
  private static let targetSpacing = Interval.milliseconds(150)

  private(set) var congestion = AdaptiveBitrate()
  private var resends = ResendBudget()
  private var transportSequence: Int64 = 0
  private var announced: (bitrate: UInt64, at: Instant)?

  /// What may be sent in all, in bits per second.
  var target: UInt64 { congestion.target }

  /// The transport-wide sequence number of the next packet that carries one.
  var nextSequence: UInt16 { UInt16(truncatingIfNeeded: transportSequence) }

  // MARK: Packets

  /// Records a packet that carries the next transport-wide sequence number.
  mutating func sendNumbered(_ bytes: Int, at now: Instant) {
    congestion.packetSent(transportSequence, bytes: bytes, at: now)
    transportSequence += 1
  }

  /// Records a packet of video that is sent for the first time.
  mutating func earn(bytes: Int) { resends.earn(bytes: bytes) }

  /// Whether a retransmission may be sent now.
  mutating func mayResend(at now: Instant) -> Bool {
    resends.mayResend(at: now, targetBitrate: congestion.target)
  }

  /// Records a retransmission.
  mutating func spend(bytes: Int, at now: Instant) { resends.spend(bytes: bytes, at: now) }

  // MARK: What the peer tells

  mutating func setLimits(start: UInt64, maximum: UInt64, minimum: UInt64? = nil) {
    congestion.setLimits(start: start, maximum: maximum, minimum: minimum)
  }

  mutating func setEstimate(_ bitrate: UInt64) { congestion.setEstimate(bitrate) }

  mutating func receive(_ feedback: TransportFeedback, at now: Instant) {
    congestion.receive(feedback, at: now)
  }

  mutating func receive(maximumBitrate: UInt64, at now: Instant) {
    congestion.receive(maximumBitrate: maximumBitrate, at: now)
  }

  mutating func receive(fractionLost: UInt8, at now: Instant) {
    congestion.receive(fractionLost: fractionLost, at: now)
  }

  // MARK: Encoders

  /// The target for encoders when they are to be told: it changed by more than a twentieth, or
  /// reached its bounds.
  mutating func announce(at now: Instant) -> UInt64? {
    let target = encoderTarget(at: now)
    if let announced {
      let change = max(target, announced.bitrate) - min(target, announced.bitrate)
      let isBound = congestion.isBound && target == congestion.target && change > 0
      guard change * 20 > announced.bitrate || isBound,
        now - announced.at >= Self.targetSpacing
      else { return nil }
    }
    announced = (target, now)
    return target
  }

  /// What is left for encoders if recent retransmissions continue, in bits per second.
  ///
  /// In place, because a call would copy all that the estimate rests on.
  @inline(__always)
  private func encoderTarget(at now: Instant) -> UInt64 {
    let total = Double(congestion.target)
    let rest = max(total - resends.rate(at: now), total / 2)
    return UInt64(max(rest, min(total, congestion.bounds.minimum)))
  }
}

import RTP
import Wire

/// The sending rate: the path estimate, the share of retransmissions, and the target announced to
/// encoders.
struct RateControl {
  /// The minimum time between announcements of the target.
  private static let targetSpacing = Interval.milliseconds(150)

  private(set) var congestion = AdaptiveBitrate()
  private var resends = ResendBudget()
  private var transportSequence: Int64 = 0
  private var announced: (bitrate: UInt64, at: Instant)?

  /// The total rate that may be sent, in bits per second.
  var target: UInt64 { congestion.target }

  var nextSequence: UInt16 { UInt16(truncatingIfNeeded: transportSequence) }

  // MARK: Packets

  /// Records a packet with the next transport-wide sequence number.
  mutating func sendNumbered(_ bytes: Int, at now: Instant) {
    congestion.packetSent(transportSequence, bytes: bytes, at: now)
    transportSequence += 1
  }

  /// Records a video packet sent for the first time.
  mutating func earn(bytes: Int) { resends.earn(bytes: bytes) }

  mutating func mayResend(at now: Instant) -> Bool {
    resends.mayResend(at: now, targetBitrate: congestion.target)
  }

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

  /// Returns the target for encoders if it changed by more than a twentieth or reached a bound.
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

  /// The target less the rate of recent retransmissions, in bits per second.
  ///
  /// Computed in place, because passing the estimate along would copy it.
  @inline(__always)
  private func encoderTarget(at now: Instant) -> UInt64 {
    let total = Double(congestion.target)
    let rest = max(total - resends.rate(at: now), total / 2)
    return UInt64(max(rest, min(total, congestion.bounds.minimum)))
  }
}

package import RTP
package import Wire

/// Raises the bit rate step by step while the path stays clean and cuts it when delay or loss grow.
///
/// With transport-wide feedback it follows the trend of the delay and the loss; without it, it
/// stays below the peer's own estimate (REMB) and minds the loss in receiver reports.
package struct AdaptiveBitrate: CongestionController {
  package private(set) var isEstimated = false
  private(set) var estimate = 600_000.0
  private(set) var bounds = BitrateBounds()
  private var hasFeedback = false
  private var log = SentLog()
  private(set) var trend = DelayTrend()
  private var arrivals = ArrivalRate()
  private(set) var loss = LossFraction()
  private(set) var capacity = PathCapacity()
  private var updatedAt: Instant?

  /// Creates a controller that starts with 600 kbit/s and tries at most 2.5 Mbit/s.
  package init() {}

  package var target: UInt64 { UInt64(bounds.clamp(estimate)) }

  /// The rate at which packets arrived recently, in bits per second; nil until enough of them have.
  var arrivalRate: Double? { arrivals.bitrate }

  /// The capacity of the path in bits per second if it was recently full; nil if it is not known to
  /// be below the highest rate allowed.
  ///
  /// Video that arrives encoded and cannot be made smaller has to stay below it. The encoders'
  /// target does not serve for that, because it starts low and is capped whatever the path carries.
  package func pathLimit(at now: Instant) -> UInt64? {
    guard let carried = capacity.carriedAtCut else {
      return bounds.isLimitedByPeer && !hasFeedback ? target : nil
    }
    guard estimate < bounds.maximum || capacity.isRecent(at: now) else { return nil }
    return max(target, UInt64(min(max(carried, 0), 1e12)))
  }

  /// Whether the target is at its minimum or maximum.
  var isBound: Bool { bounds.isBound(estimate) }

  package mutating func setLimits(start: UInt64, maximum: UInt64, minimum: UInt64? = nil) {
    bounds.set(maximum: maximum, minimum: minimum)
    if !isEstimated { estimate = BitrateBounds.bounded(start) }
    estimate = bounds.clamp(estimate)
  }

  package mutating func setEstimate(_ bitrate: UInt64) {
    estimate = bounds.clamp(BitrateBounds.bounded(bitrate))
  }

  package mutating func packetSent(_ transportSequence: Int64, bytes: Int, at now: Instant) {
    log.append(transportSequence, bytes: bytes, at: now)
  }

  package mutating func receive(_ feedback: TransportFeedback, at now: Instant) {
    let news = log.news(in: feedback)
    guard !news.arrived.isEmpty || news.lostCount > 0 else { return }
    hasFeedback = true
    isEstimated = true
    for packet in news.arrived {
      trend.receive(packet)
      arrivals.receive(packet)
    }
    loss.receive(arrived: news.arrived.count, missing: news.lostCount)
    update(at: now)
  }

  package mutating func receive(maximumBitrate: UInt64, at now: Instant) {
    bounds.set(remoteMaximum: maximumBitrate)
    isEstimated = true
    if !hasFeedback { update(at: now) }
  }

  package mutating func receive(fractionLost: UInt8, at now: Instant) {
    guard !hasFeedback else { return }
    loss.receive(fractionLost)
    update(at: now)
  }

  private mutating func update(at now: Instant) {
    let elapsed = min((now - (updatedAt ?? now)).seconds, 1)
    updatedAt = now
    let mayCut = capacity.mayCut(at: now)
    let fraction = loss.value
    if hasFeedback, trend.signal == .growing {
      if mayCut { cut(to: PathCapacity.drainingShare * (arrivalRate ?? estimate), at: now) }
    } else if fraction > 0.1 {
      // Drops at a full queue are no reason to go below the rate that gets through.
      let through = min(arrivalRate.map { PathCapacity.drainingShare * $0 } ?? 0, estimate)
      if mayCut { cut(to: max(estimate * (1 - 0.5 * fraction), through), at: now) }
    } else if fraction < 0.02, trend.signal == .steady {
      grow(over: elapsed, at: now)
    }
    if !hasFeedback { estimate = bounds.clampToPeer(estimate) }
    estimate = bounds.clamp(estimate)
  }

  private mutating func cut(to rate: Double, at now: Instant) {
    capacity.cut(from: estimate, arrivalRate: arrivalRate, at: now)
    estimate = min(estimate, rate)
  }

  private mutating func grow(over elapsed: Double, at now: Instant) {
    let growth = capacity.growth(of: estimate, at: now)
    guard capacity.fullAt != nil else {
      estimate *= 1 + growth * elapsed
      return
    }
    let grown = estimate * (1 + growth * elapsed) + 1000 * elapsed
    // Traffic that is not being sent does not prove that the path would carry more.
    let proven = arrivalRate.map { 1.5 * $0 + 10_000 } ?? grown
    estimate = max(estimate, min(grown, proven))
  }
}

import DequeModule
package import RTP
package import Wire

/// Raises the bit rate step by step while the path stays clean and cuts it when delay or loss grow.
///
/// With transport-wide feedback it follows the trend of the delay and the loss; without it, it
/// stays below the peer's own estimate (REMB) and minds the loss in receiver reports.
package struct AdaptiveBitrate: CongestionController {
  /// Below this rate no video frame is of use.
  private static let usefulMinimum = 50_000.0
  /// What is sent in any case, whatever an application says: nothing can be paced without.
  private static let leastMinimum = 5_000.0
  /// The time over which the rate of arrivals is measured, in units of 250 µs.
  private static let rateWindowTicks: Int64 = 2000
  /// A cut is followed by no other one before its effect can be seen.
  private static let cutSpacing = Interval.milliseconds(250)
  /// For so long a path that proved to be full is taken to be near it.
  private static let memory = Interval.seconds(10)

  package private(set) var isEstimated = false
  private(set) var estimate = 600_000.0
  private(set) var minimum = AdaptiveBitrate.usefulMinimum
  private(set) var maximum = 2_500_000.0
  private(set) var remoteMaximum: Double?
  private var hasFeedback = false
  private var log = SentLog()
  private(set) var trend = DelayTrend()
  private var arrivals = Deque<(ticks: Int64, bytes: Int)>()
  private var arrivedBytes = 0
  private var newestArrival: Int64 = .min
  private var lossArrived = 0
  private var lossMissing = 0
  private(set) var lossFraction = 0.0
  private var updatedAt: Instant?
  private(set) var cutAt: Instant?
  /// What the path carried when the target was last cut, less what its queue needs to drain.
  private var carriedAtCut: Double?
  /// The rate at which the path last proved to be full; nil before that ever happened.
  private(set) var fullAt: Double?

  /// Creates a controller that starts with 600 kbit/s and tries at most 2.5 Mbit/s.
  package init() {}

  package var target: UInt64 { UInt64(min(max(estimate, minimum), maximum)) }

  /// What the path carries, in bits per second, where it proved to be full of late; nil where that
  /// is not known to be less than what may be tried.
  ///
  /// What cannot be made smaller has to keep below it, though not below the target of encoders:
  /// that one begins low, and has a highest value whatever the path carries.
  package func pathLimit(at now: Instant) -> UInt64? {
    guard let cutAt, let carriedAtCut else {
      guard let remoteMaximum, !hasFeedback, remoteMaximum < maximum else { return nil }
      return target
    }
    guard estimate < maximum || now - cutAt < AdaptiveBitrate.memory else { return nil }
    return max(target, UInt64(min(max(carriedAtCut, 0), 1e12)))
  }

  /// Whether the target stands at its lowest or highest value.
  var isBound: Bool {
    estimate <= minimum || estimate >= maximum || estimate == remoteMaximum
  }

  package mutating func setLimits(start: UInt64, maximum: UInt64, minimum: UInt64? = nil) {
    self.minimum =
      minimum.map { max(Double(min($0, 1 << 40)), AdaptiveBitrate.leastMinimum) }
      ?? AdaptiveBitrate.usefulMinimum
    self.maximum = max(Double(min(maximum, 1 << 40)), self.minimum)
    if !isEstimated { estimate = Double(min(start, 1 << 40)) }
    estimate = min(max(estimate, self.minimum), self.maximum)
  }

  package mutating func setEstimate(_ bitrate: UInt64) {
    estimate = min(max(Double(min(bitrate, 1 << 40)), minimum), maximum)
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
      measure(packet)
    }
    lossArrived += news.arrived.count
    lossMissing += news.lostCount
    if lossArrived + lossMissing >= 20 {
      lossFraction = Double(lossMissing) / Double(lossArrived + lossMissing)
      lossArrived = 0
      lossMissing = 0
    }
    update(at: now)
  }

  package mutating func receive(maximumBitrate: UInt64, at now: Instant) {
    remoteMaximum = Double(maximumBitrate)
    isEstimated = true
    if !hasFeedback { update(at: now) }
  }

  package mutating func receive(fractionLost: UInt8, at now: Instant) {
    guard !hasFeedback else { return }
    lossFraction = Double(fractionLost) / 256
    update(at: now)
  }

  /// The rate at which packets arrived of late, in bits per second; nil before enough of them did.
  var arrivalRate: Double? {
    guard let first = arrivals.first, newestArrival - first.ticks >= 600 else { return nil }
    return Double(arrivedBytes) * 8 / (Double(newestArrival - first.ticks) * 0.000_25)
  }

  private mutating func measure(_ packet: SentLog.Acknowledged) {
    newestArrival = max(newestArrival, packet.arrivalTicks)
    arrivals.append((packet.arrivalTicks, packet.bytes))
    arrivedBytes += packet.bytes
    while let first = arrivals.first,
      newestArrival - first.ticks > AdaptiveBitrate.rateWindowTicks
    {
      arrivals.removeFirst()
      arrivedBytes -= first.bytes
    }
  }

  private mutating func update(at now: Instant) {
    let elapsed = min((now - (updatedAt ?? now)).seconds, 1)
    updatedAt = now
    let mayCut = cutAt.map { now - $0 >= AdaptiveBitrate.cutSpacing } ?? true
    if hasFeedback, trend.signal == .growing {
      // What still arrives is what the path carries; the queue needs the rest to drain.
      if mayCut { cut(to: 0.85 * (arrivalRate ?? estimate), at: now) }
    } else if lossFraction > 0.1 {
      // What a full queue drops is no reason to go below what gets through.
      let through = min(arrivalRate.map { 0.85 * $0 } ?? 0, estimate)
      if mayCut { cut(to: max(estimate * (1 - 0.5 * lossFraction), through), at: now) }
    } else if lossFraction < 0.02, trend.signal == .steady {
      grow(over: elapsed, at: now)
    }
    if !hasFeedback, let remoteMaximum { estimate = min(estimate, remoteMaximum) }
    estimate = min(max(estimate, minimum), maximum)
  }

  private mutating func cut(to rate: Double, at now: Instant) {
    fullAt = min(arrivalRate ?? estimate, estimate)
    carriedAtCut = 0.85 * (arrivalRate ?? estimate)
    estimate = min(estimate, rate)
    cutAt = now
  }

  private mutating func grow(over elapsed: Double, at now: Instant) {
    guard let fullAt else {
      // Nothing is known yet: the rate doubles each second.
      estimate *= 1 + elapsed
      return
    }
    let isNear = estimate > 0.85 * fullAt && now - (cutAt ?? now) < AdaptiveBitrate.memory
    let grown = estimate * (1 + (isNear ? 0.04 : 0.25) * elapsed) + 1000 * elapsed
    // What is not being sent does not show that the path would carry more.
    let proven = arrivalRate.map { 1.5 * $0 + 10_000 } ?? grown
    estimate = max(estimate, min(grown, proven))
  }
}

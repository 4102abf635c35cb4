import DequeModule
package import RTP
package import Wire

/// Raises the bit rate gradually while the path is clean, and cuts it when delay or loss grows.
///
/// With transport-wide feedback, the rate follows the trends of delay and loss. Without such
/// feedback, the rate stays below the peer's own estimate (REMB) and reacts to loss in receiver
/// reports.
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

  /// The rate at which packets arrived recently, in bits per second; nil until the arrivals cover
  /// at least 150 ms.
  var arrivalRate: Double? { arrivals.bitrate }

  /// Returns the path's capacity in bits per second; nil unless the path is known to limit the
  /// rate.
  ///
  /// A path that has been full counts as the limit for at least 10 seconds, and until the estimate
  /// is back at its maximum. Without transport-wide feedback, the peer's own limit (REMB) counts as
  /// the capacity too.
  ///
  /// Video that arrives already encoded cannot be reduced, so it must stay below this capacity. The
  /// encoders' target would be too strict, because it starts low and is capped even if the path
  /// carries more.
  package func pathLimit(at now: Instant) -> UInt64? {
    guard let carried = capacity.carriedAtCut else {
      return bounds.isLimitedByPeer && !hasFeedback ? target : nil
    }
    guard estimate < bounds.maximum || capacity.isRecent(at: now) else { return nil }
    return max(target, UInt64(min(max(carried, 0), 1e12)))
  }

  /// Whether the target is at its minimum, its maximum or the peer's limit.
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
      // Even if a full queue drops packets, there is no reason to send less than the path delivers.
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
    // The estimate stays close to the arrival rate, because only capacity that was used is proven.
    let proven = arrivalRate.map { 1.5 * $0 + 10_000 } ?? grown
    estimate = max(estimate, min(grown, proven))
  }
}

/// Estimates a path's capacity from the peer's reports.
package protocol CongestionController: Sendable {
  /// The total rate that may be sent, in bits per second.
  var target: UInt64 { get }
  /// Whether the peer has sent transport-wide feedback or an estimate (REMB).
  var isEstimated: Bool { get }

  /// Sets the start, maximum and minimum rates in bits per second; the default minimum is the
  /// lowest useful rate for video.
  mutating func setLimits(start: UInt64, maximum: UInt64, minimum: UInt64?)
  /// Assumes this capacity, in bits per second, until reports say otherwise.
  mutating func setEstimate(_ bitrate: UInt64)
  /// Records a packet sent with a transport-wide sequence number (extended to 64 bits).
  mutating func packetSent(_ transportSequence: Int64, bytes: Int, at now: Instant)
  /// Handles feedback in which the peer reports when packets arrived.
  mutating func receive(_ feedback: TransportFeedback, at now: Instant)
  /// Handles the peer's own estimate (REMB), in bits per second.
  mutating func receive(maximumBitrate: UInt64, at now: Instant)
  /// Handles the fraction of packets lost since the last report, in 1/256.
  mutating func receive(fractionLost: UInt8, at now: Instant)
}

// MARK: - BitrateBounds

/// The range of bit rates to try and the peer's limit, in bits per second.
struct BitrateBounds: Sendable {
  /// The lowest rate, in bits per second, at which video is useful.
  private static let usefulMinimum = 50_000.0
  /// The lowest minimum that an application can set, because the pacer needs some rate.
  private static let leastMinimum = 5_000.0
  /// A limit far above any real rate, which prevents overflow in sums.
  private static let most: UInt64 = 1 << 40

  private(set) var minimum = BitrateBounds.usefulMinimum
  private(set) var maximum = 2_500_000.0
  /// The peer's own estimate (REMB); nil before the first.
  private(set) var remoteMaximum: Double?

  /// Whether the peer's limit is below the maximum.
  var isLimitedByPeer: Bool { remoteMaximum.map { $0 < maximum } ?? false }

  /// Sets the bounds; the default minimum is the lowest useful rate for video.
  mutating func set(maximum: UInt64, minimum: UInt64?) {
    self.minimum =
      minimum.map { max(BitrateBounds.bounded($0), BitrateBounds.leastMinimum) }
      ?? BitrateBounds.usefulMinimum
    self.maximum = max(BitrateBounds.bounded(maximum), self.minimum)
  }

  mutating func set(remoteMaximum: UInt64) { self.remoteMaximum = Double(remoteMaximum) }

  func clamp(_ rate: Double) -> Double { min(max(rate, minimum), maximum) }

  /// Clamps a rate to the peer's limit, if there is one.
  func clampToPeer(_ rate: Double) -> Double { remoteMaximum.map { min(rate, $0) } ?? rate }

  /// Returns whether a rate is at the minimum, the maximum or the peer's limit.
  func isBound(_ rate: Double) -> Bool {
    rate <= minimum || rate >= maximum || rate == remoteMaximum
  }

  /// Converts a requested rate, limiting it to the largest supported one.
  static func bounded(_ rate: UInt64) -> Double { Double(min(rate, most)) }
}

/// The rate at which packets recently arrived at the peer, by the peer's clock.
struct ArrivalRate: Sendable {
  /// The window over which the rate is measured, in units of 250 µs.
  private static let windowTicks: Int64 = 2000
  /// The shortest time from which a rate is computed, in units of 250 µs.
  private static let leastTicks: Int64 = 600

  private var arrivals = Deque<(ticks: Int64, bytes: Int)>()
  private var bytes = 0
  private var newest: Int64 = .min

  /// The rate in bits per second; nil until the arrivals cover at least 150 ms.
  var bitrate: Double? {
    guard let first = arrivals.first, newest - first.ticks >= ArrivalRate.leastTicks else {
      return nil
    }
    return Double(bytes) * 8 / (Double(newest - first.ticks) * 0.000_25)
  }

  mutating func receive(_ packet: SentLog.Acknowledged) {
    newest = max(newest, packet.arrivalTicks)
    arrivals.append((packet.arrivalTicks, packet.bytes))
    bytes += packet.bytes
    while let first = arrivals.first, newest - first.ticks > ArrivalRate.windowTicks {
      arrivals.removeFirst()
      bytes -= first.bytes
    }
  }
}

/// The fraction of packets recently lost on the path.
struct LossFraction: Sendable {
  /// The minimum number of packets from which the fraction is computed.
  private static let fewest = 20

  /// The fraction, 0 to 1.
  private(set) var value = 0.0
  private var arrived = 0
  private var missing = 0

  /// Counts packets reported by transport-wide feedback.
  mutating func receive(arrived: Int, missing: Int) {
    self.arrived += arrived
    self.missing += missing
    guard self.arrived + self.missing >= LossFraction.fewest else { return }
    value = Double(self.missing) / Double(self.arrived + self.missing)
    self.arrived = 0
    self.missing = 0
  }

  /// Handles the fraction in a receiver report, in 1/256 (RFC 3550 section 6.4.1).
  mutating func receive(_ fraction: UInt8) { value = Double(fraction) / 256 }
}

// MARK: - PathCapacity

/// The rate a path carried when it was last full, in bits per second.
struct PathCapacity: Sendable {
  /// The shortest time between cuts; it takes this long for a cut to have a visible effect.
  private static let cutSpacing = Interval.milliseconds(250)
  /// How long the rate that a full path carried is still assumed to be the path's capacity.
  private static let memory = Interval.seconds(10)
  /// The fraction of the arrival rate to send at so that the queue can drain.
  static let drainingShare = 0.85

  /// When the rate was last cut because the path was full; nil if it never was.
  private(set) var cutAt: Instant?
  /// The rate that the path carried when it was last full; nil if it never was full.
  private(set) var fullAt: Double?
  /// The rate at which packets arrived when the path was last full, reduced so that the queue can
  /// drain; nil if the path never was full.
  private(set) var carriedAtCut: Double?

  /// Returns whether the last cut has had time to take effect, so that another one may follow.
  func mayCut(at now: Instant) -> Bool {
    cutAt.map { now - $0 >= PathCapacity.cutSpacing } ?? true
  }

  /// Records that the path is full and the rate is cut.
  /// - Parameters:
  ///   - estimate: the assumed capacity.
  ///   - arrivalRate: the rate at which packets arrive at the peer; nil if unknown.
  mutating func cut(from estimate: Double, arrivalRate: Double?, at now: Instant) {
    fullAt = min(arrivalRate ?? estimate, estimate)
    carriedAtCut = PathCapacity.drainingShare * (arrivalRate ?? estimate)
    cutAt = now
  }

  /// Returns whether the path was full recently enough for its rate to count; true if it was never
  /// full.
  func isRecent(at now: Instant) -> Bool { now - (cutAt ?? now) < PathCapacity.memory }

  /// Returns the fraction by which a rate may grow per second.
  func growth(of rate: Double, at now: Instant) -> Double {
    // Before the first cut, the rate may double every second.
    guard let fullAt else { return 1 }
    return rate > PathCapacity.drainingShare * fullAt && isRecent(at: now) ? 0.04 : 0.25
  }
}

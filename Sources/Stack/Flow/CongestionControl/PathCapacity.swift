import Wire

/// The rate that a path carried when it was last full, in bits per second.
struct PathCapacity: Sendable {
  /// Another cut would come before the effect of the last one can be seen.
  private static let cutSpacing = Interval.milliseconds(250)
  /// How long a full path is assumed to stay near its capacity.
  private static let memory = Interval.seconds(10)
  /// The share of the arrival rate to send at, so that the queue can drain.
  static let drainingShare = 0.85

  /// When the path was last full; nil if it never was.
  private(set) var cutAt: Instant?
  /// The estimated rate at which it was last full.
  private(set) var fullAt: Double?
  /// The rate that arrived then, less what the queue needs to drain.
  private(set) var carriedAtCut: Double?

  /// Whether the effect of the last cut is visible, so that another one may follow.
  func mayCut(at now: Instant) -> Bool {
    cutAt.map { now - $0 >= PathCapacity.cutSpacing } ?? true
  }

  /// Records that the path is full.
  /// - Parameters:
  ///   - estimate: its assumed capacity.
  ///   - arrivalRate: the rate that arrives, if known.
  mutating func cut(from estimate: Double, arrivalRate: Double?, at now: Instant) {
    fullAt = min(arrivalRate ?? estimate, estimate)
    carriedAtCut = PathCapacity.drainingShare * (arrivalRate ?? estimate)
    cutAt = now
  }

  /// Whether the path was full so recently that its rate still counts.
  func isRecent(at now: Instant) -> Bool { now - (cutAt ?? now) < PathCapacity.memory }

  /// The factor by which a rate may grow in a second.
  func growth(of rate: Double, at now: Instant) -> Double {
    // Before the first cut the rate doubles each second.
    guard let fullAt else { return 1 }
    return rate > PathCapacity.drainingShare * fullAt && isRecent(at: now) ? 0.04 : 0.25
  }
}

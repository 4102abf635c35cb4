import Wire

/// What a path proved to carry when it was full, in bits per second, and when that was.
struct PathCapacity: Sendable {
  /// A cut is followed by no other one before its effect can be seen.
  private static let cutSpacing = Interval.milliseconds(250)
  /// For so long a path that proved to be full is taken to be near it.
  private static let memory = Interval.seconds(10)
  /// What still arrives is what the path carries; its queue needs the rest to drain.
  static let drainingShare = 0.85

  /// When the path last proved to be full; nil before that ever happened.
  private(set) var cutAt: Instant?
  /// The rate at which it last proved to be full.
  private(set) var fullAt: Double?
  /// What it carried then, less what its queue needs to drain.
  private(set) var carriedAtCut: Double?

  /// Whether the effect of the last cut can be seen, so that another one may follow.
  func mayCut(at now: Instant) -> Bool {
    cutAt.map { now - $0 >= PathCapacity.cutSpacing } ?? true
  }

  /// Records that the path is full.
  /// - Parameters:
  ///   - estimate: what it was taken to carry.
  ///   - arrivalRate: what arrives; nil if that is not known.
  mutating func cut(from estimate: Double, arrivalRate: Double?, at now: Instant) {
    fullAt = min(arrivalRate ?? estimate, estimate)
    carriedAtCut = PathCapacity.drainingShare * (arrivalRate ?? estimate)
    cutAt = now
  }

  /// Whether the path proved to be full so recently that it still counts.
  func isRecent(at now: Instant) -> Bool { now - (cutAt ?? now) < PathCapacity.memory }

  /// The share by which a rate may grow in a second.
  func growth(of rate: Double, at now: Instant) -> Double {
    // Nothing is known yet: the rate doubles each second.
    guard let fullAt else { return 1 }
    return rate > PathCapacity.drainingShare * fullAt && isRecent(at: now) ? 0.04 : 0.25
  }
}

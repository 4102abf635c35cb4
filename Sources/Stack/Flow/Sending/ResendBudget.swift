import Wire

/// Limits retransmissions to three quarters of the first-time traffic, so that a congested path is
/// not congested further by repairing its losses.
struct ResendBudget {
  /// A budget that is always available, in bits per second.
  private static let baseRate = 20_000.0
  private static let smallestLimit = 128_000.0

  private var credit = ResendBudget.smallestLimit
  private var creditedAt = Instant.zero
  /// Bits of retransmissions, decaying over a second.
  private var spent = 0.0
  private var spentAt = Instant.zero

  /// Adds a share of a packet sent for the first time.
  mutating func earn(bytes: Int) { credit += Double(bytes) * 6 }

  /// Whether a retransmission may be sent; up to half a second of the target bit rate can be saved.
  mutating func mayResend(at now: Instant, targetBitrate: UInt64) -> Bool {
    credit += ResendBudget.baseRate * (now - creditedAt).seconds
    credit = min(credit, max(Double(targetBitrate) / 2, ResendBudget.smallestLimit))
    creditedAt = now
    return credit > 0
  }

  /// Deducts a retransmission.
  mutating func spend(bytes: Int, at now: Instant) {
    credit -= Double(bytes) * 8
    spent = rate(at: now) + Double(bytes) * 8
    spentAt = now
  }

  /// Bit rate of recent retransmissions, in bits per second.
  func rate(at now: Instant) -> Double { spent * max(0, 1 - (now - spentAt).seconds) }
}

import Wire

/// Keeps retransmissions to three quarters of what is sent for the first time, so that a path that
/// is already too full is not filled further with what got lost there.
struct ResendBudget {
  /// What is earned in any case, in bits per second.
  private static let baseRate = 20_000.0
  private static let smallestLimit = 128_000.0

  private var credit = ResendBudget.smallestLimit
  private var creditedAt = Instant.zero
  /// Bits of retransmissions, of which what is older than a second fades away.
  private var spent = 0.0
  private var spentAt = Instant.zero

  /// Earns a part of a packet that is sent for the first time.
  mutating func earn(bytes: Int) { credit += Double(bytes) * 6 }

  /// Whether a retransmission may be sent; half a second of the target bit rate can be saved up.
  mutating func mayResend(at now: Instant, targetBitrate: UInt64) -> Bool {
    credit += ResendBudget.baseRate * (now - creditedAt).seconds
    credit = min(credit, max(Double(targetBitrate) / 2, ResendBudget.smallestLimit))
    creditedAt = now
    return credit > 0
  }

  /// Takes a retransmission that was sent out of the budget.
  mutating func spend(bytes: Int, at now: Instant) {
    credit -= Double(bytes) * 8
    spent = rate(at: now) + Double(bytes) * 8
    spentAt = now
  }

  /// What retransmissions took recently, in bits per second.
  func rate(at now: Instant) -> Double { spent * max(0, 1 - (now - spentAt).seconds) }
}

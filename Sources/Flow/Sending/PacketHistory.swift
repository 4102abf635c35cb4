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

  /// What retransmissions took of late, in bits per second.
  func rate(at now: Instant) -> Double { spent * max(0, 1 - (now - spentAt).seconds) }
}

/// The newest packets of a stream, for retransmission.
struct PacketHistory {
  /// A packet that was sent.
  struct Entry {
    var sequence: UInt16
    var part: PayloadPart
    /// The packet as it was sent; only kept where it has to be repeated byte for byte.
    var packet: [UInt8]?
    /// When it was asked for again the last time.
    var resentAt: Instant?
  }

  /// How many packets are kept.
  static let capacity = 2048
  private var entries: [Entry?] = []

  /// Keeps a packet and forgets the one that is `capacity` older.
  mutating func append(_ entry: Entry) {
    if entries.isEmpty { entries = [Entry?](repeating: nil, count: PacketHistory.capacity) }
    entries[place(entry.sequence)] = entry
  }

  /// The packet with a sequence number.
  func entry(_ sequence: UInt16) -> Entry? {
    guard !entries.isEmpty, let entry = entries[place(sequence)], entry.sequence == sequence
    else { return nil }
    return entry
  }

  /// Whether a packet may be sent again now: it is known, and the last time is long enough ago.
  mutating func mayResend(_ sequence: UInt16, at now: Instant, spacing: Interval) -> Bool {
    guard let entry = entry(sequence) else { return false }
    if let resentAt = entry.resentAt, now - resentAt < spacing { return false }
    entries[place(sequence)]?.resentAt = now
    return true
  }

  private func place(_ sequence: UInt16) -> Int { Int(sequence) & (PacketHistory.capacity - 1) }
}

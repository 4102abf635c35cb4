import Wire

/// The newest packets of a stream, for retransmission (RFC 4588).
struct PacketHistory {
  /// A packet that was sent.
  struct Entry {
    var sequence: UInt16
    var part: PayloadPart
    /// The whole packet, kept only if it has to be repeated byte for byte.
    var packet: [UInt8]?
    /// When it was last retransmitted.
    var resentAt: Instant?
  }

  static let capacity = 2048
  private var entries: [Entry?] = []

  /// Adds a packet, overwriting the one `capacity` before it.
  mutating func append(_ entry: Entry) {
    if entries.isEmpty { entries = [Entry?](repeating: nil, count: PacketHistory.capacity) }
    entries[place(entry.sequence)] = entry
  }

  func entry(_ sequence: UInt16) -> Entry? {
    guard !entries.isEmpty, let entry = entries[place(sequence)], entry.sequence == sequence
    else { return nil }
    return entry
  }

  /// Whether a packet may be retransmitted now: it is known, and the last time is long enough ago.
  mutating func mayResend(_ sequence: UInt16, at now: Instant, spacing: Interval) -> Bool {
    guard let entry = entry(sequence) else { return false }
    if let resentAt = entry.resentAt, now - resentAt < spacing { return false }
    entries[place(sequence)]?.resentAt = now
    return true
  }

  private func place(_ sequence: UInt16) -> Int { Int(sequence) & (PacketHistory.capacity - 1) }
}

import Wire

/// Decides which of the peer's key frame requests reach the encoder.
struct KeyframeDemands {
  /// The kind of a request.
  enum Verdict {
    /// A repetition in case the first was lost (RFC 5104 section 4.3.1.2).
    case repeated
    /// So soon after the last one that the same key frame serves both.
    case served
    case passedOn
  }

  /// The minimum time between requests passed on.
  private static let spacing = Interval.milliseconds(300)

  /// When a key frame was last requested from the encoder.
  private(set) var passedOnAt: Instant?
  private var lastNumber: UInt8?

  /// Classifies a request: FIR has a number (RFC 5104 section 4.3.1), PLI has none (RFC 4585
  /// section 6.3.1).
  mutating func classify(_ number: UInt8?, at now: Instant) -> Verdict {
    if let number {
      guard lastNumber != number else { return .repeated }
      lastNumber = number
    }
    if let passedOnAt, now - passedOnAt < Self.spacing { return .served }
    passedOnAt = now
    return .passedOn
  }
}

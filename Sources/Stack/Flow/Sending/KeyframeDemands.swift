import Wire

/// Owns which of the peer's demands for key frames of a stream are passed on to the encoder.
struct KeyframeDemands {
  /// What a demand is.
  enum Taking {
    /// The same one again, in case it was lost (RFC 5104 section 4.3.1.2).
    case repeated
    /// It comes so soon after the last one that the answer to that serves both.
    case served
    case passedOn
  }

  /// Demands are passed on at most so often.
  private static let spacing = Interval.milliseconds(300)

  /// When a key frame was last asked for.
  private(set) var passedOnAt: Instant?
  private var lastNumber: UInt8?

  /// Handles a demand: with its number when it is a full intra request (RFC 5104 section 4.3.1),
  /// and without one when it is a picture loss (RFC 4585 section 6.3.1).
  mutating func take(_ number: UInt8?, at now: Instant) -> Taking {
    if let number {
      guard lastNumber != number else { return .repeated }
      lastNumber = number
    }
    if let passedOnAt, now - passedOnAt < Self.spacing { return .served }
    passedOnAt = now
    return .passedOn
  }
}

import Wire

/// Owns the pair in use: since when it is, whether it is heard, when it is asked for consent, and
/// when that has expired (RFC 7675).
struct Consent {
  /// What became of the pair in use.
  enum Finding {
    case nothing
    /// Nothing may be sent any more (RFC 7675 section 5.1).
    case expired
    /// It was not heard for long.
    case silent
    case heardAgain
  }

  /// How long the pair in use may not be heard before it counts as silent.
  private let silence: Interval
  /// The number of the pair in use.
  private(set) var pairID: UInt32?
  /// Whether the pair in use has not been heard for long.
  private(set) var isSilent = false
  /// When the next check in a row is due.
  private(set) var nextCheckAt: Instant?
  private var since = Instant.zero
  /// When a check went out that was not answered yet.
  private var askedAt: Instant?

  init(silence: Interval? = nil) { self.silence = silence ?? ICETiming.silence }

  // MARK: Selection

  /// Puts another pair, or none, into use; it begins with `begin`.
  mutating func select(_ id: UInt32?) {
    pairID = id
    isSilent = false
    askedAt = nil
    nextCheckAt = nil
  }

  /// Begins with the pair that was put into use.
  mutating func begin(_ pair: CandidatePair, _ entropy: EntropyStream, at now: Instant) {
    since = now
    // Right after a check that was answered, the next one is only due in its time.
    if let answeredAt = pair.traffic.answeredAt, now - answeredAt < .seconds(1) {
      nextCheckAt = answeredAt + interval(entropy)
    } else {
      nextCheckAt = now
    }
  }

  // MARK: Checks

  /// Whether the pair in use is to be asked for consent now: when it is time, and more often while
  /// it is not heard.
  func isDue(_ pair: CandidatePair, at now: Instant) -> Bool {
    checkDue(pair).map { $0 <= now } ?? false
  }

  /// Notes that the pair in use was asked.
  mutating func noteAsked(_ entropy: EntropyStream, at now: Instant) {
    askedAt = now
    if let next = nextCheckAt, next <= now { nextCheckAt = now + interval(entropy) }
  }

  /// Notes that a pair answered a check.
  mutating func noteAnswer(of id: UInt32) {
    if id == pairID { askedAt = nil }
  }

  /// Draws the time to the next check (RFC 7675 section 5.1).
  private func interval(_ entropy: EntropyStream) -> Interval {
    let spread = UInt64(ICETiming.consentIntervalSpread.nanoseconds)
    let extra = Int64(truncatingIfNeeded: entropy.integer(below: spread))
    let usual = ICETiming.consentIntervalMinimum + Interval(nanoseconds: extra)
    // A peer that sends nothing else is asked twice before it counts as silent.
    return silence < ICETiming.silence
      ? min(usual, Interval(nanoseconds: silence.nanoseconds / 2)) : usual
  }

  // MARK: Life

  /// Looks whether the pair in use fell silent, was heard again, or lost consent.
  mutating func judge(_ pair: CandidatePair, at now: Instant) -> Finding {
    if end(pair) <= now { return .expired }
    let silent = silenceBegin(pair) <= now
    guard silent != isSilent else { return .nothing }
    isSilent = silent
    return silent ? .silent : .heardAgain
  }

  /// When a silent pair in use may be replaced.
  func graceEnd(_ pair: CandidatePair) -> Instant { silenceBegin(pair) + ICETiming.silenceGrace }

  /// When the pair in use wants attention next.
  func deadline(_ pair: CandidatePair, at now: Instant) -> Instant? {
    let next = earliest(checkDue(pair), end(pair))
    guard isSilent else { return earliest(next, silenceBegin(pair)) }
    let grace = graceEnd(pair)
    return grace > now ? earliest(next, grace) : next
  }

  private func checkDue(_ pair: CandidatePair) -> Instant? {
    guard let asked = askedAt else { return nextCheckAt }
    let heard = pair.traffic.heardAt ?? asked
    return earliest(nextCheckAt, max(asked, heard) + ICETiming.probeInterval)
  }

  private func silenceBegin(_ pair: CandidatePair) -> Instant {
    max(pair.traffic.heardAt ?? since, since) + silence
  }

  private func end(_ pair: CandidatePair) -> Instant {
    max(pair.traffic.consentedAt ?? since, since) + ICETiming.consentLifetime
  }
}

import Wire

/// The progress of the checks, how long they may continue, and the W3C state that follows
/// (webrtc-pc section 5.6.4).
struct CheckProgress {
  /// The selected pair, as far as it matters for the state.
  struct Path {
    /// Whether it belongs to the present ICE generation.
    let isPresent: Bool
    let isSilent: Bool
  }

  private(set) var state = ICEConnectionState.new
  /// When checks of this generation began, or began again after failure.
  private(set) var checkingSince: Instant?
  /// When the first pair of this generation was found to work.
  private(set) var firstSuccessAt: Instant?
  /// Whether a pair of this generation was in use since checks began, or began again after failure.
  private(set) var hadPath = false
  /// Whether checks of this generation led to nothing and stopped.
  private(set) var hasFailed = false
  private(set) var isCompleted = false
  /// The selected pair that was reported last.
  private var reportedPath: UInt32?

  /// Begins checking, unless it has begun.
  mutating func begin(at now: Instant) { checkingSince = checkingSince ?? now }

  /// Restarts checking after it failed, because there is a new pair to check.
  mutating func revive(at now: Instant) {
    guard hasFailed else { return }
    hasFailed = false
    checkingSince = now
  }

  /// Restarts the time limit of the checks; false when they have stopped.
  mutating func beginAnew(at now: Instant) -> Bool {
    guard !hasFailed else { return false }
    checkingSince = now
    return true
  }

  /// Records the first pair that works.
  mutating func recordSuccess(at now: Instant) { firstSuccessAt = firstSuccessAt ?? now }

  /// Records that a pair of this generation is in use.
  mutating func recordPath() { hadPath = true }

  /// Records that the selected pair fell silent: the state is no longer completed.
  mutating func recordSilence() { isCompleted = false }

  /// Stops checking: nothing works, until something new turns up.
  mutating func fail() {
    hasFailed = true
    hadPath = false
  }

  /// Begins another generation.
  mutating func restart() {
    checkingSince = nil
    firstSuccessAt = nil
    hasFailed = false
    hadPath = false
    isCompleted = false
  }

  /// When checks without any success are given up.
  var patienceEnd: Instant? { checkingSince.map { $0 + ICETiming.checkingPatience } }

  /// Whether the selected pair differs from the one reported last; remembers it as reported.
  mutating func isNew(_ path: UInt32?) -> Bool {
    defer { reportedPath = path }
    return path != nil && path != reportedPath
  }

  /// The states that are entered now, in order.
  ///
  /// - Parameters:
  /// - path: the selected pair.
  ///   - isDone: whether nothing is left to do.
  mutating func settle(_ path: Path?, isDone: Bool) -> [ICEConnectionState] {
    if isDone { isCompleted = true }
    let target = target(path)
    guard target != state else { return [] }
    // Completed is reached by way of connected, as applications expect.
    let isByWay = target == .completed && state != .connected
    state = target
    return isByWay ? [.connected, .completed] : [target]
  }

  /// Ends everything.
  mutating func close() { state = .closed }

  private func target(_ path: Path?) -> ICEConnectionState {
    if let path {
      guard path.isSilent else { return isCompleted ? .completed : .connected }
      // After a restart, lost connectivity no longer counts.
      return path.isPresent ? .disconnected : .checking
    }
    if hasFailed { return .failed }
    // A path that was there and is gone may still be replaced.
    if checkingSince != nil { return hadPath ? .disconnected : .checking }
    switch state {
    case .new, .failed: return state
    case .checking, .connected, .completed, .disconnected, .closed: return .checking
    }
  }
}

// MARK: - Consent

/// The selected pair: since when it is selected, whether anything is received on it, when the next
/// consent check is due, and when consent has expired (RFC 7675).
struct Consent {
  /// The result of judging the selected pair.
  enum Finding {
    case nothing
    /// Nothing may be sent any more (RFC 7675 section 5.1).
    case expired
    /// Nothing was received for a while.
    case silent
    case resumed
  }

  /// How long nothing may be received on the selected pair before it counts as silent.
  private let silence: Interval
  /// The number of the selected pair.
  private(set) var pairID: UInt32?
  /// Whether nothing was received on the selected pair for long.
  private(set) var isSilent = false
  /// When the next check in a row is due.
  private(set) var nextCheckAt: Instant?
  private var since = Instant.zero
  /// When the unanswered check was sent.
  private var askedAt: Instant?

  init(silence: Interval? = nil) { self.silence = silence ?? ICETiming.silence }

  // MARK: Selection

  /// Selects another pair, or none; it starts with `begin`.
  mutating func select(_ id: UInt32?) {
    pairID = id
    isSilent = false
    askedAt = nil
    nextCheckAt = nil
  }

  /// Starts with the pair that was selected.
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

  /// Whether a consent check is due on the selected pair: in its time, and more often while the
  /// peer is silent.
  func isDue(_ pair: CandidatePair, at now: Instant) -> Bool {
    checkDue(pair).map { $0 <= now } ?? false
  }

  /// Records a consent check on the selected pair.
  mutating func recordRequest(_ entropy: EntropyStream, at now: Instant) {
    askedAt = now
    if let next = nextCheckAt, next <= now { nextCheckAt = now + interval(entropy) }
  }

  /// Records that a pair answered a check.
  mutating func recordResponse(of id: UInt32) {
    if id == pairID { askedAt = nil }
  }

  /// Draws the time to the next check (RFC 7675 section 5.1).
  private func interval(_ entropy: EntropyStream) -> Interval {
    let spread = UInt64(ICETiming.consentIntervalSpread.nanoseconds)
    let extra = Int64(truncatingIfNeeded: entropy.integer(below: spread))
    let usual = ICETiming.consentIntervalMinimum + Interval(nanoseconds: extra)
    // A peer that sends nothing else gets two checks before it counts as silent.
    return silence < ICETiming.silence
      ? min(usual, Interval(nanoseconds: silence.nanoseconds / 2)) : usual
  }

  // MARK: Life

  /// Judges whether the selected pair fell silent, recovered, or lost consent.
  mutating func judge(_ pair: CandidatePair, at now: Instant) -> Finding {
    if end(pair) <= now { return .expired }
    let silent = silenceBegin(pair) <= now
    guard silent != isSilent else { return .nothing }
    isSilent = silent
    return silent ? .silent : .resumed
  }

  /// When a silent selected pair may be replaced.
  func graceEnd(_ pair: CandidatePair) -> Instant { silenceBegin(pair) + ICETiming.silenceGrace }

  /// When the selected pair has to be judged next.
  func deadline(_ pair: CandidatePair, at now: Instant) -> Instant? {
    let next = earliest(checkDue(pair), end(pair))
    guard isSilent else { return earliest(next, silenceBegin(pair)) }
    let grace = graceEnd(pair)
    return grace > now ? earliest(next, grace) : next
  }

  private func checkDue(_ pair: CandidatePair) -> Instant? {
    guard let asked = askedAt else { return nextCheckAt }
    let heard = pair.traffic.receivedAt ?? asked
    return earliest(nextCheckAt, max(asked, heard) + ICETiming.probeInterval)
  }

  private func silenceBegin(_ pair: CandidatePair) -> Instant {
    max(pair.traffic.receivedAt ?? since, since) + silence
  }

  private func end(_ pair: CandidatePair) -> Instant {
    max(pair.traffic.consentedAt ?? since, since) + ICETiming.consentLifetime
  }
}

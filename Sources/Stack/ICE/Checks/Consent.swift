import Wire

/// The checks' progress, their time limit, and the resulting W3C state (webrtc-pc section 5.6.4).
struct CheckProgress {
  /// The properties of the selected pair that determine the state.
  struct Path {
    /// Whether the path belongs to the current ICE generation.
    let isPresent: Bool
    let isSilent: Bool
  }

  private(set) var state = ICEConnectionState.new
  /// When this generation's checks started, or restarted after failure.
  private(set) var checkingSince: Instant?
  /// When a pair of this generation first worked.
  private(set) var firstSuccessAt: Instant?
  /// Whether a pair of this generation has been in use since checks started or restarted.
  private(set) var hadPath = false
  /// Whether this generation's checks ended without a working pair.
  private(set) var hasFailed = false
  private(set) var isCompleted = false
  /// The id of the pair that was last reported as selected.
  private var reportedPath: UInt32?

  /// Starts checking, unless it has already started.
  mutating func begin(at now: Instant) { checkingSince = checkingSince ?? now }

  /// Restarts checking after failure, because there is a new pair to check.
  mutating func revive(at now: Instant) {
    guard hasFailed else { return }
    hasFailed = false
    checkingSince = now
  }

  /// Restarts the checks' time limit; returns false if checking has stopped.
  mutating func beginAnew(at now: Instant) -> Bool {
    guard !hasFailed else { return false }
    checkingSince = now
    return true
  }

  /// Records the time of the first working pair.
  mutating func recordSuccess(at now: Instant) { firstSuccessAt = firstSuccessAt ?? now }

  /// Records that a pair of this generation is in use.
  mutating func recordPath() { hadPath = true }

  /// Records that the selected pair is silent, so the state is no longer completed.
  mutating func recordSilence() { isCompleted = false }

  /// Stops checking until something new to check appears.
  mutating func fail() {
    hasFailed = true
    hadPath = false
  }

  /// Resets the progress for another generation.
  mutating func restart() {
    checkingSince = nil
    firstSuccessAt = nil
    hasFailed = false
    hadPath = false
    isCompleted = false
  }

  /// When checks without any success are given up.
  var patienceEnd: Instant? { checkingSince.map { $0 + ICETiming.checkingPatience } }

  /// Returns whether the selected pair differs from the pair last reported, and records it as
  /// reported.
  mutating func isNew(_ path: UInt32?) -> Bool {
    defer { reportedPath = path }
    return path != nil && path != reportedPath
  }

  /// Returns the states entered now, in order.
  ///
  /// - Parameters:
  ///   - path: the selected pair.
  ///   - isDone: whether checking is complete.
  mutating func settle(_ path: Path?, isDone: Bool) -> [ICEConnectionState] {
    if isDone { isCompleted = true }
    let target = target(path)
    guard target != state else { return [] }
    // Applications expect connected before completed.
    let isByWay = target == .completed && state != .connected
    state = target
    return isByWay ? [.connected, .completed] : [target]
  }

  mutating func close() { state = .closed }

  private func target(_ path: Path?) -> ICEConnectionState {
    if let path {
      guard path.isSilent else { return isCompleted ? .completed : .connected }
      // A silent path from before a restart leaves the state at checking.
      return path.isPresent ? .disconnected : .checking
    }
    if hasFailed { return .failed }
    // A lost path may still be replaced.
    if checkingSince != nil { return hadPath ? .disconnected : .checking }
    switch state {
    case .new, .failed: return state
    case .checking, .connected, .completed, .disconnected, .closed: return .checking
    }
  }
}

// MARK: - Consent

/// Consent on the selected pair: when it was selected, whether it is silent, when the next consent
/// check is due, and when consent expires (RFC 7675).
struct Consent {
  /// What `judge` found out about the selected pair.
  enum Finding {
    case nothing
    /// Nothing may be sent any more (RFC 7675 section 5.1).
    case expired
    /// Nothing has been received for a while.
    case silent
    case resumed
  }

  /// The time without received packets after which the selected pair counts as silent.
  private let silence: Interval
  /// The selected pair's id; nil if no pair is selected.
  private(set) var pairID: UInt32?
  /// Whether the selected pair is silent.
  private(set) var isSilent = false
  /// When the next regular check is due.
  private(set) var nextCheckAt: Instant?
  private var since = Instant.zero
  /// When the last check was sent; nil once a check has been answered.
  private var askedAt: Instant?

  init(silence: Interval? = nil) { self.silence = silence ?? ICETiming.silence }

  // MARK: Selection

  /// Selects another pair or none; `begin` starts its checks.
  mutating func select(_ id: UInt32?) {
    pairID = id
    isSilent = false
    askedAt = nil
    nextCheckAt = nil
  }

  /// Starts consent checks on the selected pair.
  mutating func begin(_ pair: CandidatePair, _ entropy: EntropyStream, at now: Instant) {
    since = now
    // If a check was answered within the last second, the next one follows a regular interval after
    // that answer.
    if let answeredAt = pair.traffic.answeredAt, now - answeredAt < .seconds(1) {
      nextCheckAt = answeredAt + interval(entropy)
    } else {
      nextCheckAt = now
    }
  }

  // MARK: Checks

  /// Returns whether a consent check is due on the selected pair.
  ///
  /// Checks are due regularly, and more often while the peer is silent.
  func isDue(_ pair: CandidatePair, at now: Instant) -> Bool {
    checkDue(pair).map { $0 <= now } ?? false
  }

  /// Records that a consent check was sent now, and schedules the next regular one if it was due.
  mutating func recordRequest(_ entropy: EntropyStream, at now: Instant) {
    askedAt = now
    if let next = nextCheckAt, next <= now { nextCheckAt = now + interval(entropy) }
  }

  /// Records that a pair's check was answered.
  mutating func recordResponse(of id: UInt32) {
    if id == pairID { askedAt = nil }
  }

  /// Draws the time until the next check (RFC 7675 section 5.1).
  private func interval(_ entropy: EntropyStream) -> Interval {
    let spread = UInt64(ICETiming.consentIntervalSpread.nanoseconds)
    let extra = Int64(truncatingIfNeeded: entropy.integer(below: spread))
    let usual = ICETiming.consentIntervalMinimum + Interval(nanoseconds: extra)
    // A peer that sends nothing else gets two checks before it counts as silent.
    return silence < ICETiming.silence
      ? min(usual, Interval(nanoseconds: silence.nanoseconds / 2)) : usual
  }

  // MARK: Liveness

  /// Determines whether the selected pair has just lost consent, become silent or recovered.
  mutating func judge(_ pair: CandidatePair, at now: Instant) -> Finding {
    if end(pair) <= now { return .expired }
    let silent = silenceBegin(pair) <= now
    guard silent != isSilent else { return .nothing }
    isSilent = silent
    return silent ? .silent : .resumed
  }

  /// Returns when a silent selected pair may be replaced.
  func graceEnd(_ pair: CandidatePair) -> Instant { silenceBegin(pair) + ICETiming.silenceGrace }

  /// Returns when the selected pair must next be checked or judged.
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

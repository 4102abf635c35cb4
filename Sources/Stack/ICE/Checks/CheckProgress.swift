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

  /// Begins checking again after it led to nothing, because there is something new to check.
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
      // A restart forgets that connectivity was lost.
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

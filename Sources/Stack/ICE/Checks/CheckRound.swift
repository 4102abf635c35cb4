import Wire

/// The checks of a pair that may still be answered, and the round of requests, or the attempt at a
/// connection, that is under way (RFC 8445 section 7.2.4).
struct CheckRound {
  /// A request that was sent and may still be answered.
  struct Check {
    let transaction: STUNTransactionID
    let sentAt: Instant
    /// Whether it carried USE-CANDIDATE.
    let nominates: Bool
    /// The role that it claimed.
    let role: ICERole
  }

  /// How many unanswered requests are remembered; a response to an older one is dropped.
  static let checksMaximum = 16
  /// How many sends in a row the system may refuse.
  private static let refusalsMaximum = 3

  /// Requests without a response that are still remembered, oldest first.
  private(set) var checks: [Check] = []
  /// How many requests of the current round were sent; a round ends with a response or in failure.
  private(set) var attempts = 0
  /// When the next request of the round goes out, or the round ends in failure.
  private(set) var nextAttempt: Instant?
  /// The number under which a connection was asked for.
  private(set) var connectionID: UInt32?
  /// Refused sends since the last response.
  private var refusals = 0

  /// Remembers a request that went out.
  mutating func remember(_ check: Check) {
    if checks.count == Self.checksMaximum { checks.removeFirst() }
    checks.append(check)
  }

  /// Removes the request that a response answers.
  mutating func remove(_ place: Int) -> Check { checks.remove(at: place) }

  /// Counts a request; the next one is due at `next`.
  mutating func goOn(at next: Instant) {
    attempts += 1
    nextAttempt = next
  }

  /// Begins from the start, at once.
  mutating func begin() { attempts = 0 }

  /// Ends with a response.
  mutating func finish() {
    attempts = 0
    nextAttempt = nil
  }

  /// Waits for a turn as if nothing had been tried.
  mutating func restart() {
    finish()
    refusals = 0
    connectionID = nil
  }

  /// Ends without success.
  mutating func fail() {
    nextAttempt = nil
    connectionID = nil
  }

  /// Asks for nothing more.
  mutating func stop() { nextAttempt = nil }

  /// Waits until an instant for the connection that was asked for.
  mutating func connect(_ id: UInt32, until end: Instant) {
    connectionID = id
    attempts = 1
    nextAttempt = end
  }

  /// Begins the checks: the connection is open.
  mutating func connected() {
    connectionID = nil
    attempts = 0
  }

  /// Counts a send that the system refused; true at the third in a row.
  mutating func isRefusedTooOften() -> Bool {
    refusals += 1
    return refusals >= Self.refusalsMaximum
  }

  /// Records a valid response to a check.
  mutating func forgetRefusals() { refusals = 0 }
}

import Wire

/// A local base and a remote address that are checked together (RFC 8445 section 6.1.2).
struct CandidatePair {
  let id: UInt32
  /// The number of the credentials that its checks use.
  let generation: UInt32
  /// The local endpoint; its port is 0 while a pair that makes its connection has none.
  private(set) var base: SocketAddress
  /// The peer's endpoint.
  let target: SocketAddress
  /// Equal for pairs that share fate in the frozen algorithm (RFC 8445 section 6.1.2.6).
  let foundation: String
  /// The priority that checks state (RFC 8445 section 7.1.1).
  let reflexivePriority: UInt32
  /// Whether this side makes the connection that carries it.
  let isActive: Bool
  private(set) var local: ICECandidate
  private(set) var remote: ICECandidate
  private(set) var priority: UInt64 = 0
  private(set) var state = ICEPairReport.State.frozen
  var round = CheckRound()
  var nomination = PairNomination()
  var traffic = PairTraffic()
  /// Whether something to report changed in this step.
  private(set) var hasChanges = true

  init(
    id: UInt32, generation: UInt32, base: SocketAddress, target: SocketAddress, local: ICECandidate,
    remote: ICECandidate
  ) {
    self.id = id
    self.generation = generation
    self.base = base
    self.target = target
    foundation = "\(local.foundation):\(remote.foundation)"
    self.local = local
    self.remote = remote
    isActive = local.tcpType == .active
    // The local preference is that of the base (bits 8 to 23).
    let preference = UInt16(truncatingIfNeeded: local.priority >> 8)
    reflexivePriority = ICEPriority.candidate(
      .peerReflexive, isTCP: local.isTCP, localPreference: preference)
  }

  /// Whether the outcome of the pair is open.
  var isUndecided: Bool {
    switch state {
    case .frozen, .waiting, .inProgress: true
    case .succeeded, .failed: false
    }
  }

  /// Whether it must get its connection before it can be checked.
  var needsConnection: Bool { isActive && base.port == 0 }

  /// The lower type preference of both ends: the main criterion for a much better path.
  var directness: UInt32 { min(local.typePreference, remote.typePreference) }

  // MARK: State

  mutating func change(to new: ICEPairReport.State) {
    guard state != new else { return }
    state = new
    hasChanges = true
  }

  /// Begins checking from the start: waits for its turn with no attempts made.
  mutating func restartChecks() {
    round.restart()
    change(to: .waiting)
  }

  /// Ends checking without success.
  mutating func fail() {
    round.fail()
    nomination.end()
    change(to: .failed)
  }

  /// Sets the priority.
  mutating func rank(_ new: UInt64) { priority = new }

  /// Replaces a peer-reflexive candidate by the one that was signaled for it.
  mutating func rename(remote new: ICECandidate) {
    remote = new
    hasChanges = true
  }

  /// Sets the local candidate that the peer saw.
  mutating func rename(local new: ICECandidate) { local = new }

  /// Marks the pair for a report, because its selection changed.
  mutating func selectionChanged() { hasChanges = true }

  /// Whether something changed since the last report; clears the mark.
  mutating func removeChanges() -> Bool {
    defer { hasChanges = false }
    return hasChanges
  }

  // MARK: Checks

  /// Remembers a sent check until its response, and counts it.
  mutating func remember(_ check: CheckRound.Check, atMost maximum: Int) {
    round.remember(check, atMost: maximum)
    traffic.countRequest()
  }

  /// Removes the check that a response answers, and counts the response.
  mutating func removeCheck(_ place: Int, at now: Instant) -> CheckRound.Check {
    let check = round.remove(place)
    traffic.receiveResponse(to: check.sentAt, at: now)
    return check
  }

  /// Records a valid response to a check.
  mutating func recordResponse(at now: Instant) {
    traffic.answer(at: now)
    round.forgetRefusals()
  }

  /// Records that the system refused a send: three in a row without success end the checks.
  ///
  /// A pair that worked is judged by silence: a full queue or a flapping interface may pass.
  mutating func recordRefusedSend() {
    if round.isRefusedTooOften(), isUndecided { fail() }
  }

  // MARK: Nomination

  mutating func setNominated() {
    if nomination.setNominated() { hasChanges = true }
  }

  /// Makes checks carry USE-CANDIDATE, beginning with a new round.
  mutating func beginNominating() {
    nomination.begin()
    round.begin()
  }

  /// Records that the peer chose it.
  mutating func recordChoice(at now: Instant) {
    nomination.choose(at: now, works: state == .succeeded)
  }

  // MARK: Connections and restarts

  /// Begins the checks: the connection is open.
  mutating func connected(at local: SocketAddress) {
    round.connected()
    base = local
  }

  /// Clears the port of a lost connection.
  mutating func disconnect() {
    if isActive { base.port = 0 }
  }

  /// Stops checks and nomination, because another generation begins.
  mutating func outlive() {
    round.stop()
    nomination.end()
  }

  func report(isSelected: Bool) -> ICEPairReport {
    var report = ICEPairReport(
      id: id, local: local, remote: remote, base: base, state: state,
      nominated: nomination.isNominated, selected: isSelected, priority: priority)
    traffic.count(in: &report)
    return report
  }
}

// MARK: - PairNomination

/// Which side has chosen a pair (RFC 8445 section 8.1).
struct PairNomination {
  private(set) var isNominated = false
  /// Whether checks carry USE-CANDIDATE because this side chose the pair.
  private(set) var isNominating = false
  /// Whether the peer chose the pair before it was known to work.
  private var wasChosenEarly = false
  /// When the peer last sent USE-CANDIDATE here, and how often since it did so anywhere else.
  private(set) var chosenAt: Instant?
  private(set) var timesChosen = 0

  /// Marks the pair as nominated; false when it was before.
  mutating func setNominated() -> Bool {
    defer { isNominated = true }
    return !isNominated
  }

  mutating func begin() { isNominating = true }

  mutating func end() { isNominating = false }

  /// Records that the peer chose the pair, which is known to work or not.
  mutating func choose(at now: Instant, works: Bool) {
    timesChosen += 1
    chosenAt = now
    if !works { wasChosenEarly = true }
  }

  /// Records that the peer chose another one.
  mutating func chooseOther() { timesChosen = 0 }

  /// Whether the peer chose the pair before it was known to work; true once.
  mutating func removeEarlyChoice() -> Bool {
    defer { wasChosenEarly = false }
    return wasChosenEarly
  }

  /// Clears the choices, because the sides changed their roles.
  mutating func forgetChoices() {
    isNominating = false
    wasChosenEarly = false
  }
}

// MARK: - PairTraffic

/// Counters of a pair (W3C candidate-pair), its round-trip times, and when something was last
/// received on it.
struct PairTraffic {
  /// When anything valid was last received: a response, a check or other traffic.
  private(set) var receivedAt: Instant?
  /// When the peer last consented to receive here: by a response or a check (RFC 7675).
  private(set) var consentedAt: Instant?
  /// When the last response arrived.
  private(set) var answeredAt: Instant?

  private(set) var requestsSent: UInt64 = 0
  private(set) var requestsReceived: UInt64 = 0
  private(set) var responsesSent: UInt64 = 0
  private(set) var responsesReceived: UInt64 = 0
  private(set) var consentRequestsSent: UInt64 = 0
  private(set) var roundTrip: Interval?
  private(set) var totalRoundTrip = Interval.zero

  mutating func countRequest() { requestsSent += 1 }

  mutating func countConsentRequest() { consentRequestsSent += 1 }

  /// Records a response to a request sent at `sentAt`.
  mutating func receiveResponse(to sentAt: Instant, at now: Instant) {
    responsesReceived += 1
    receivedAt = now
    roundTrip = now - sentAt
    totalRoundTrip = totalRoundTrip + (now - sentAt)
  }

  /// Records a valid response to a check.
  mutating func answer(at now: Instant) {
    answeredAt = now
    consentedAt = now
  }

  /// Counts checks of the peer and the responses to them.
  mutating func receiveRequests(_ count: UInt64, at now: Instant) {
    requestsReceived += count
    responsesSent += count
    receivedAt = now
    consentedAt = now
  }

  /// Records other traffic.
  mutating func receiveData(at now: Instant) { receivedAt = now }

  /// Puts the counts into a report.
  func count(in report: inout ICEPairReport) {
    report.requestsSent = requestsSent
    report.requestsReceived = requestsReceived
    report.responsesSent = responsesSent
    report.responsesReceived = responsesReceived
    report.consentRequestsSent = consentRequestsSent
    report.currentRoundTrip = roundTrip
    report.totalRoundTrip = totalRoundTrip
  }
}

// MARK: - CheckRound

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
  ///
  /// Each request of the peer causes another, so both send up to 30 a second.
  static let checksMaximum = 128
  /// In takes whose agents do not await slow paths.
  static let fewChecksMaximum = 16
  /// How many sends in a row the system may refuse.
  private static let refusalsMaximum = 3

  /// Requests without a response that are still remembered, oldest first.
  private(set) var checks: [Check] = []
  /// How many requests of the current round were sent; a round ends with a response or in failure.
  private(set) var attempts = 0
  /// When the next request of the round is sent, or the round fails.
  private(set) var nextAttempt: Instant?
  /// The number of the requested connection.
  private(set) var connectionID: UInt32?
  /// Refused sends since the last response.
  private var refusals = 0

  /// Remembers a request that went out.
  mutating func remember(_ check: Check, atMost maximum: Int) {
    if checks.count >= maximum { checks.removeFirst() }
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

  /// Stops sending requests.
  mutating func stop() { nextAttempt = nil }

  /// Waits until an instant for the requested connection.
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

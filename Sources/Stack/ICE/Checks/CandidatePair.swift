import Wire

/// A local base and a remote address that are checked together (RFC 8445 section 6.1.2).
struct CandidatePair {
  let id: UInt32
  /// The number of the ICE generation whose credentials the pair's checks use.
  let generation: UInt32
  /// The local address; its port is 0 while an active TCP pair has no connection.
  private(set) var base: SocketAddress
  let target: SocketAddress
  /// The foundation; pairs with equal foundations unfreeze together (RFC 8445 section 6.1.2.6).
  let foundation: String
  /// The PRIORITY value in checks (RFC 8445 section 7.1.1).
  let reflexivePriority: UInt32
  /// Whether the local agent opens the pair's TCP connection.
  let isActive: Bool
  private(set) var local: ICECandidate
  private(set) var remote: ICECandidate
  private(set) var priority: UInt64 = 0
  private(set) var state = ICEPairReport.State.frozen
  var round = CheckRound()
  var nomination = PairNomination()
  var traffic = PairTraffic()
  /// Whether the pair has changed since it was last reported.
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
    // The base's local preference is in bits 8 to 23.
    let preference = UInt16(truncatingIfNeeded: local.priority >> 8)
    reflexivePriority = ICEPriority.candidate(
      .peerReflexive, isTCP: local.isTCP, localPreference: preference)
  }

  /// Whether the pair's checks have neither succeeded nor failed yet.
  var isUndecided: Bool {
    switch state {
    case .frozen, .waiting, .inProgress: true
    case .succeeded, .failed: false
    }
  }

  /// Whether the pair's connection must be opened before the pair can be checked.
  var needsConnection: Bool { isActive && base.port == 0 }

  /// The lower of the two candidates' type preferences.
  ///
  /// A pair counts as much better than the nominated pair if this value is higher.
  var directness: UInt32 { min(local.typePreference, remote.typePreference) }

  // MARK: State

  mutating func change(to new: ICEPairReport.State) {
    guard state != new else { return }
    state = new
    hasChanges = true
  }

  /// Queues the pair for checking as if it had never been tried.
  mutating func restartChecks() {
    round.restart()
    change(to: .waiting)
  }

  /// Ends the pair's checks without success.
  mutating func fail() {
    round.fail()
    nomination.end()
    change(to: .failed)
  }

  mutating func rank(_ new: UInt64) { priority = new }

  /// Replaces a peer-reflexive remote candidate with the signaled one.
  mutating func rename(remote new: ICECandidate) {
    remote = new
    hasChanges = true
  }

  /// Sets the local candidate to the candidate whose address the peer saw.
  mutating func rename(local new: ICECandidate) { local = new }

  /// Marks the pair for reporting because it was selected or is no longer selected.
  mutating func selectionChanged() { hasChanges = true }

  /// Returns whether anything has changed since the last report, and clears the flag.
  mutating func removeChanges() -> Bool {
    defer { hasChanges = false }
    return hasChanges
  }

  // MARK: Checks

  /// Remembers a sent check until its response arrives, and counts it.
  mutating func remember(_ check: CheckRound.Check, atMost maximum: Int) {
    round.remember(check, atMost: maximum)
    traffic.countRequest()
  }

  /// Removes the check a response answers, and counts the response.
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

  /// Records a send that the system refused; the third in a row fails a pair whose checks have not
  /// succeeded yet.
  ///
  /// A pair that has worked fails only after silence, because a full queue or a flapping interface
  /// may recover.
  mutating func recordRefusedSend() {
    if round.isRefusedTooOften(), isUndecided { fail() }
  }

  // MARK: Nomination

  mutating func setNominated() {
    if nomination.setNominated() { hasChanges = true }
  }

  /// Sends USE-CANDIDATE in further checks, starting a new round.
  mutating func beginNominating() {
    nomination.begin()
    round.begin()
  }

  /// Records that the peer nominated the pair.
  mutating func recordChoice(at now: Instant) {
    nomination.choose(at: now, works: state == .succeeded)
  }

  // MARK: Connections and restarts

  /// Records that the connection is open, so checks can start.
  mutating func connected(at local: SocketAddress) {
    round.connected()
    base = local
  }

  /// Clears the port after the connection is lost.
  mutating func disconnect() {
    if isActive { base.port = 0 }
  }

  /// Stops checks and nomination because another generation starts.
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

/// A pair's nomination: whether the local agent or the peer has nominated it (RFC 8445 section
/// 8.1).
struct PairNomination {
  private(set) var isNominated = false
  /// Whether checks include USE-CANDIDATE because the local agent chose the pair.
  private(set) var isNominating = false
  /// Whether the peer nominated the pair before a check on it succeeded.
  private var wasChosenEarly = false
  /// When the peer last sent USE-CANDIDATE on this pair, and how many times since it last nominated
  /// another pair.
  private(set) var chosenAt: Instant?
  private(set) var timesChosen = 0

  /// Marks the pair as nominated; returns false if it already was.
  mutating func setNominated() -> Bool {
    defer { isNominated = true }
    return !isNominated
  }

  mutating func begin() { isNominating = true }

  mutating func end() { isNominating = false }

  /// Records that the peer nominated the pair, whether or not it already works.
  mutating func choose(at now: Instant, works: Bool) {
    timesChosen += 1
    chosenAt = now
    if !works { wasChosenEarly = true }
  }

  /// Records that the peer nominated another pair.
  mutating func chooseOther() { timesChosen = 0 }

  /// Returns whether the peer nominated the pair before it worked, and clears that flag.
  mutating func removeEarlyChoice() -> Bool {
    defer { wasChosenEarly = false }
    return wasChosenEarly
  }

  /// Clears the local nomination in progress and the peer's early nomination after a role change.
  mutating func forgetChoices() {
    isNominating = false
    wasChosenEarly = false
  }
}

// MARK: - PairTraffic

/// A pair's counters (W3C candidate-pair), its round-trip times, and the instants at which traffic
/// last arrived.
struct PairTraffic {
  /// When anything valid last arrived: a response, a check or other traffic.
  private(set) var receivedAt: Instant?
  /// When the peer last consented to receive on this pair, by a response or a check (RFC 7675).
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

  /// Counts a response, and measures the round trip from `sentAt`.
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

  /// Counts checks from the peer and the responses to them.
  mutating func receiveRequests(_ count: UInt64, at now: Instant) {
    requestsReceived += count
    responsesSent += count
    receivedAt = now
    consentedAt = now
  }

  /// Records received traffic other than STUN.
  mutating func receiveData(at now: Instant) { receivedAt = now }

  /// Copies the counters into a report.
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

/// A pair's unanswered checks, and its current round of requests or attempt to connect (RFC 8445
/// section 7.2.4).
struct CheckRound {
  /// A sent request that may still be answered.
  struct Check {
    let transaction: STUNTransactionID
    let sentAt: Instant
    /// Whether the request included USE-CANDIDATE.
    let nominates: Bool
    /// The role that the request claimed.
    let role: ICERole
  }

  /// The maximum number of unanswered requests kept; a response to an older one is dropped.
  ///
  /// Each request from the peer triggers one from the local agent, so each of them may send up to
  /// 30 a second.
  static let checksMaximum = 128
  /// The maximum number of unanswered requests kept if `awaitsSlowPaths` is false.
  static let fewChecksMaximum = 16
  /// The number of refused sends in a row that ends the checks of a pair that never worked.
  private static let refusalsMaximum = 3

  /// Unanswered requests, oldest first.
  private(set) var checks: [Check] = []
  /// The number of requests sent in the current round, which ends with a response or a failure.
  private(set) var attempts = 0
  /// When the round sends its next request or fails.
  private(set) var nextAttempt: Instant?
  /// The request id of the connection being opened; nil if none is being opened.
  private(set) var connectionID: UInt32?
  /// Refused sends since the last response.
  private var refusals = 0

  /// Remembers a sent request until its response arrives, dropping the oldest if there are too
  /// many.
  mutating func remember(_ check: Check, atMost maximum: Int) {
    if checks.count >= maximum { checks.removeFirst() }
    checks.append(check)
  }

  /// Removes the request that a response answers, and returns it.
  mutating func remove(_ place: Int) -> Check { checks.remove(at: place) }

  /// Counts a request; the next one is due at `next`.
  mutating func goOn(at next: Instant) {
    attempts += 1
    nextAttempt = next
  }

  /// Starts counting the requests of a new round.
  mutating func begin() { attempts = 0 }

  /// Ends the round after a response.
  mutating func finish() {
    attempts = 0
    nextAttempt = nil
  }

  /// Resets the round as if nothing had been tried.
  mutating func restart() {
    finish()
    refusals = 0
    connectionID = nil
  }

  /// Ends the round without success.
  mutating func fail() {
    nextAttempt = nil
    connectionID = nil
  }

  /// Stops sending requests; requests already sent may still be answered.
  mutating func stop() { nextAttempt = nil }

  /// Starts waiting for the pair's TCP connection; the round fails at `end`.
  mutating func connect(_ id: UInt32, until end: Instant) {
    connectionID = id
    attempts = 1
    nextAttempt = end
  }

  /// Records that the connection is open, so checks can start.
  mutating func connected() {
    connectionID = nil
    attempts = 0
  }

  /// Counts a refused send; returns true from the third in a row on.
  mutating func isRefusedTooOften() -> Bool {
    refusals += 1
    return refusals >= Self.refusalsMaximum
  }

  mutating func forgetRefusals() { refusals = 0 }
}

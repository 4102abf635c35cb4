import STUN
import Wire

/// A local base and a remote address that are checked together (RFC 8445 section 6.1.2).
struct CandidatePair {
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

  let id: UInt32
  /// The number of the credentials that its checks use.
  let generation: UInt32
  /// The own end point; its port is 0 while a pair that makes its connection has none.
  private(set) var base: SocketAddress
  /// The peer's end point.
  let target: SocketAddress
  /// Equal for pairs that share fate in the frozen algorithm (RFC 8445 section 6.1.2.6).
  let foundation: String
  /// The priority that checks state (RFC 8445 section 7.1.1).
  let reflexivePriority: UInt32
  /// Whether this side makes the connection that carries it.
  let isActive: Bool
  /// The number under which the connection was asked for.
  private(set) var connectionID: UInt32?
  private(set) var local: ICECandidate
  private(set) var remote: ICECandidate
  private(set) var priority: UInt64 = 0
  private(set) var state = ICEPairReport.State.frozen
  private(set) var isNominated = false

  /// Requests without a response that are still remembered, oldest first.
  private(set) var checks: [Check] = []
  /// How many requests of the present round were sent; a round ends with a response or in failure.
  private(set) var attempts = 0
  /// When the next request of the round goes out, or the round ends in failure.
  private(set) var nextAttempt: Instant?
  /// Whether checks carry USE-CANDIDATE because this side chose the pair.
  private(set) var isNominating = false
  /// Whether the peer chose the pair before it was known to work.
  private(set) var wasChosenEarly = false
  /// When the peer last sent USE-CANDIDATE here, and how often since it did so anywhere else.
  private(set) var chosenAt: Instant?
  private(set) var timesChosen = 0
  /// Refused sends since the last response.
  private(set) var sendFailures = 0

  /// When anything valid last came in: a response, a check or other traffic.
  private(set) var heardAt: Instant?
  /// When the peer last showed that it wants to receive here: a response or a check (RFC 7675).
  private(set) var consentedAt: Instant?
  /// When the last response came in.
  private(set) var answeredAt: Instant?

  private(set) var requestsSent: UInt64 = 0
  private(set) var requestsReceived: UInt64 = 0
  private(set) var responsesSent: UInt64 = 0
  private(set) var responsesReceived: UInt64 = 0
  private(set) var consentRequestsSent: UInt64 = 0
  private(set) var roundTrip: Interval?
  private(set) var totalRoundTrip = Interval.zero

  /// Whether something worth a report changed in this step.
  private(set) var hasNews = true

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

  /// The lower type preference of both ends: what makes a path much better than another.
  var directness: UInt32 { min(local.typePreference, remote.typePreference) }

  // MARK: State

  mutating func change(to new: ICEPairReport.State) {
    guard state != new else { return }
    state = new
    hasNews = true
  }

  /// Begins checking from the start: waits for its turn with no attempts made.
  mutating func restartChecks() {
    attempts = 0
    nextAttempt = nil
    sendFailures = 0
    connectionID = nil
    change(to: .waiting)
  }

  /// Ends checking without success.
  mutating func fail() {
    nextAttempt = nil
    isNominating = false
    connectionID = nil
    change(to: .failed)
  }

  /// Takes a priority.
  mutating func rank(_ new: UInt64) { priority = new }

  /// Takes the candidate that was signaled for a peer-reflexive one.
  mutating func rename(remote new: ICECandidate) {
    remote = new
    hasNews = true
  }

  /// Takes the own candidate that the peer saw.
  mutating func rename(local new: ICECandidate) { local = new }

  /// Notes that it came into use or went out of it.
  mutating func noteSelection() { hasNews = true }

  /// Whether something changed that is worth a report, from now on no more.
  mutating func takeNews() -> Bool {
    defer { hasNews = false }
    return hasNews
  }

  // MARK: Checks

  /// Notes that a check went out.
  mutating func remember(_ check: Check) {
    if checks.count == CandidatePair.checksMaximum { checks.removeFirst() }
    checks.append(check)
    requestsSent += 1
  }

  /// Notes that the check asked for consent.
  mutating func noteConsentRequest() { consentRequestsSent += 1 }

  /// Notes that the check belongs to a round, which goes on at an instant.
  mutating func noteAttempt(next: Instant) {
    attempts += 1
    nextAttempt = next
  }

  /// Ends a round that was answered.
  mutating func finishRound() {
    attempts = 0
    nextAttempt = nil
  }

  /// Takes a check off the remembered ones because a response to it came.
  mutating func takeCheck(_ place: Int, at now: Instant) -> Check {
    let check = checks.remove(at: place)
    responsesReceived += 1
    heardAt = now
    roundTrip = now - check.sentAt
    totalRoundTrip = totalRoundTrip + (now - check.sentAt)
    return check
  }

  /// Notes that a check was answered as it should be.
  mutating func noteAnswer(at now: Instant) {
    answeredAt = now
    consentedAt = now
    sendFailures = 0
  }

  /// Notes checks of the peer, which were answered.
  mutating func noteRequests(_ count: UInt64, at now: Instant) {
    requestsReceived += count
    responsesSent += count
    heardAt = now
    consentedAt = now
  }

  /// Notes other traffic.
  mutating func noteTraffic(at now: Instant) { heardAt = now }

  /// Notes that the system refused a send: three in a row without success end the checks.
  ///
  /// A pair that worked is judged by silence: a full queue or a flapping interface may pass.
  mutating func noteRefusal() {
    sendFailures += 1
    if sendFailures >= 3, isUndecided { fail() }
  }

  // MARK: Nomination

  mutating func setNominated() {
    guard !isNominated else { return }
    isNominated = true
    hasNews = true
  }

  /// Lets checks carry USE-CANDIDATE, beginning with a new round.
  mutating func beginNominating() {
    isNominating = true
    attempts = 0
  }

  mutating func endNominating() { isNominating = false }

  /// Notes that the peer chose it.
  mutating func noteChoice(at now: Instant) {
    timesChosen += 1
    chosenAt = now
    if state != .succeeded { wasChosenEarly = true }
  }

  /// Notes that the peer chose another one.
  mutating func noteOtherChoice() { timesChosen = 0 }

  /// Whether the peer chose it before it was known to work; told once.
  mutating func takeEarlyChoice() -> Bool {
    defer { wasChosenEarly = false }
    return wasChosenEarly
  }

  /// Forgets who wanted it, because the sides changed their roles.
  mutating func forgetChoices() {
    isNominating = false
    wasChosenEarly = false
  }

  // MARK: Connections and restarts

  /// Waits until an instant for the connection that was asked for.
  mutating func connect(_ id: UInt32, until end: Instant) {
    connectionID = id
    attempts = 1
    nextAttempt = end
  }

  /// Takes the connection that was asked for.
  mutating func connected(at local: SocketAddress) {
    connectionID = nil
    base = local
    attempts = 0
  }

  /// Forgets the port of a connection that is gone.
  mutating func disconnect() {
    if isActive { base.port = 0 }
  }

  /// Stops checks and nomination, because another generation begins.
  mutating func outlive() {
    nextAttempt = nil
    isNominating = false
  }

  func report(isSelected: Bool) -> ICEPairReport {
    var report = ICEPairReport(
      id: id, local: local, remote: remote, base: base, state: state, nominated: isNominated,
      selected: isSelected, priority: priority)
    report.requestsSent = requestsSent
    report.requestsReceived = requestsReceived
    report.responsesSent = responsesSent
    report.responsesReceived = responsesReceived
    report.consentRequestsSent = consentRequestsSent
    report.currentRoundTrip = roundTrip
    report.totalRoundTrip = totalRoundTrip
    return report
  }
}

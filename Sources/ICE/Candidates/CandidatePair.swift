import Wire

/// A local base and a remote address that are checked together (RFC 8445 section 6.1.2).
struct CandidatePair {
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
  private(set) var local: ICECandidate
  private(set) var remote: ICECandidate
  private(set) var priority: UInt64 = 0
  private(set) var state = ICEPairReport.State.frozen
  private(set) var round = CheckRound()
  private(set) var nomination = PairNomination()
  private(set) var traffic = PairTraffic()
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
    round.restart()
    change(to: .waiting)
  }

  /// Ends checking without success.
  mutating func fail() {
    round.fail()
    nomination.end()
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
  mutating func remember(_ check: CheckRound.Check) {
    round.remember(check)
    traffic.countRequest()
  }

  /// Notes that the check asked for consent.
  mutating func noteConsentRequest() { traffic.countConsentRequest() }

  /// Notes that the check belongs to a round, which goes on at an instant.
  mutating func noteAttempt(next: Instant) { round.goOn(at: next) }

  /// Ends a round that was answered.
  mutating func finishRound() { round.finish() }

  /// Takes a check off the remembered ones because a response to it came.
  mutating func takeCheck(_ place: Int, at now: Instant) -> CheckRound.Check {
    let check = round.take(place)
    traffic.receiveResponse(to: check.sentAt, at: now)
    return check
  }

  /// Notes that a check was answered as it should be.
  mutating func noteAnswer(at now: Instant) {
    traffic.answer(at: now)
    round.forgetRefusals()
  }

  /// Notes checks of the peer, which were answered.
  mutating func noteRequests(_ count: UInt64, at now: Instant) {
    traffic.receiveRequests(count, at: now)
  }

  /// Notes other traffic.
  mutating func noteTraffic(at now: Instant) { traffic.hear(at: now) }

  /// Notes that the system refused a send: three in a row without success end the checks.
  ///
  /// A pair that worked is judged by silence: a full queue or a flapping interface may pass.
  mutating func noteRefusal() {
    if round.isRefusedTooOften(), isUndecided { fail() }
  }

  // MARK: Nomination

  mutating func setNominated() {
    if nomination.setNominated() { hasNews = true }
  }

  /// Lets checks carry USE-CANDIDATE, beginning with a new round.
  mutating func beginNominating() {
    nomination.begin()
    round.begin()
  }

  mutating func endNominating() { nomination.end() }

  /// Notes that the peer chose it.
  mutating func noteChoice(at now: Instant) {
    nomination.choose(at: now, works: state == .succeeded)
  }

  /// Notes that the peer chose another one.
  mutating func noteOtherChoice() { nomination.chooseOther() }

  /// Whether the peer chose it before it was known to work; told once.
  mutating func takeEarlyChoice() -> Bool { nomination.takeEarlyChoice() }

  /// Forgets who wanted it, because the sides changed their roles.
  mutating func forgetChoices() { nomination.forgetChoices() }

  // MARK: Connections and restarts

  /// Waits until an instant for the connection that was asked for.
  mutating func connect(_ id: UInt32, until end: Instant) { round.connect(id, until: end) }

  /// Takes the connection that was asked for.
  mutating func connected(at local: SocketAddress) {
    round.connected()
    base = local
  }

  /// Forgets the port of a connection that is gone.
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

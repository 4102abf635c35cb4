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

  /// The lower type preference of both ends: what makes a path much better than another.
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
  mutating func remember(_ check: CheckRound.Check) {
    round.remember(check)
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

  /// Lets checks carry USE-CANDIDATE, beginning with a new round.
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

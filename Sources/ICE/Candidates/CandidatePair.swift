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
  let epoch: UInt32
  /// The own end point; its port is 0 while a pair that makes its connection has none.
  var base: SocketAddress
  /// The peer's end point.
  let target: SocketAddress
  /// Equal for pairs that share fate in the frozen algorithm (RFC 8445 section 6.1.2.6).
  let foundation: String
  /// The priority that checks state (RFC 8445 section 7.1.1).
  let reflexivePriority: UInt32
  /// Whether this side makes the connection that carries it.
  let isActive: Bool
  /// The number under which the connection was asked for.
  var connectionID: UInt32?
  var local: ICECandidate
  var remote: ICECandidate
  var priority: UInt64 = 0
  var state = ICEPairReport.State.frozen
  var isNominated = false

  /// Requests without a response that are still remembered, oldest first.
  var checks: [Check] = []
  /// How many requests of the present round were sent; a round ends with a response or in failure.
  var attempts = 0
  /// When the next request of the round goes out, or the round ends in failure.
  var nextAttempt: Instant?
  /// Whether checks carry USE-CANDIDATE because this side chose the pair.
  var isNominating = false
  /// Whether the peer chose the pair before it was known to work.
  var wasChosenEarly = false
  /// When the peer last sent USE-CANDIDATE here, and how often since it did so anywhere else.
  var chosenAt: Instant?
  var timesChosen = 0
  /// Refused sends since the last response.
  var sendFailures = 0

  /// When anything valid last came in: a response, a check or other traffic.
  var heardAt: Instant?
  /// When the peer last showed that it wants to receive here: a response or a check (RFC 7675).
  var consentedAt: Instant?
  /// When the last response came in.
  var answeredAt: Instant?

  var requestsSent: UInt64 = 0
  var requestsReceived: UInt64 = 0
  var responsesSent: UInt64 = 0
  var responsesReceived: UInt64 = 0
  var consentRequestsSent: UInt64 = 0
  var roundTrip: Interval?
  var totalRoundTrip = Interval.zero

  /// Whether something worth a report changed in this step.
  var hasNews = true

  init(
    id: UInt32, epoch: UInt32, base: SocketAddress, target: SocketAddress, local: ICECandidate,
    remote: ICECandidate
  ) {
    self.id = id
    self.epoch = epoch
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

  mutating func change(to new: ICEPairReport.State) {
    guard state != new else { return }
    state = new
    hasNews = true
  }

  mutating func setNominated() {
    guard !isNominated else { return }
    isNominated = true
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

  mutating func remember(_ check: Check) {
    if checks.count == CandidatePair.checksMaximum { checks.removeFirst() }
    checks.append(check)
    requestsSent += 1
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

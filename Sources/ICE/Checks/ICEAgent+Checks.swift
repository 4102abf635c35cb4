import STUN
import Wire

extension ICEAgent {
  /// Sends the checks that are due: the next ones of pairs under way, then a new one at its pace.
  mutating func runChecks() {
    guard epoch.remote != nil, !hasFailed else { return }
    for index in checklist.indices {
      guard let due = checklist[index].nextAttempt, due <= now else { continue }
      // Nothing gets lost on a connection, so that silence is an answer.
      if !checklist[index].local.isTCP, checklist[index].attempts < ICETiming.checkWaits.count {
        sendCheck(on: index)
      } else {
        checklist[index].fail()
      }
    }
    guard nextPacedAt <= now, hasUncheckedPairs else { return }
    let isSmall = checklist.count <= ICETiming.smallChecklist
    nextPacedAt = now + (isSmall ? ICETiming.paceSmall : ICETiming.paceLarge)
    guard let index = nextToCheck() else { return }
    checklist[index].change(to: .inProgress)
    if checklist[index].needsConnection { connect(index) } else { sendCheck(on: index) }
  }

  /// Sends a Binding request on a pair (RFC 8445 section 7.2.4); each one is a transaction.
  mutating func sendCheck(on index: Int, isConsent: Bool = false) {
    let pair = checklist[index]
    guard let epoch = epochs(pair.epoch), let remote = epoch.remote else { return }
    let transaction = STUNTransactionID(from: entropy)
    let nominates = pair.isNominating && role == .controlling
    var writer = STUNWriter(.request, transactionID: transaction)
    writer.username("\(remote.usernameFragment):\(epoch.local.usernameFragment)")
    writer.priority(pair.reflexivePriority)
    switch role {
    case .controlling: writer.iceControlling(tieBreaker)
    case .controlled: writer.iceControlled(tieBreaker)
    }
    if nominates { writer.useCandidate() }
    let bytes = writer.finish(key: epoch.remoteKey)

    checklist[index].remember(
      CandidatePair.Check(transaction: transaction, sentAt: now, nominates: nominates, role: role))
    if isConsent {
      checklist[index].consentRequestsSent += 1
    } else {
      checklist[index].attempts += 1
      let wait = pair.local.isTCP ? ICETiming.connectWait : checkWait(after: pair.attempts + 1)
      checklist[index].nextAttempt = now + wait
    }
    transmit(bytes, from: pair.base, to: pair.target)
  }

  /// Takes a response: of a peer to a check, or of a STUN server.
  mutating func takeResponse(
    _ message: STUNMessage, _ local: SocketAddress, _ remote: SocketAddress
  ) {
    guard let (index, place) = findCheck(message.transactionID) else {
      if !takeServerResponse(message, local, remote) { counters.unmatchedResponses += 1 }
      return
    }
    let pair = checklist[index]
    guard pair.base == local, pair.target == remote else {
      counters.asymmetricResponses += 1
      return
    }
    guard let epoch = epochs(pair.epoch), message.verifiesIntegrity(key: epoch.remoteKey) else {
      // Errors without integrity are not believed either; the check is repeated in its time.
      counters.badIntegrity += 1
      return
    }
    guard message.notUnderstood.isEmpty else {
      counters.notUnderstood += 1
      return
    }
    let check = pair.checks[place]
    checklist[index].checks.remove(at: place)
    checklist[index].responsesReceived += 1
    checklist[index].heardAt = now
    checklist[index].roundTrip = now - check.sentAt
    checklist[index].totalRoundTrip = pair.totalRoundTrip + (now - check.sentAt)
    if message.messageClass == .success {
      succeed(index, check, mapped: message.mappedAddress)
    } else {
      takeError(message.errorCode?.code ?? 0, index, check)
    }
  }

  /// The system refused a send: three times in a row without success end the checks of a pair.
  mutating func sendFailed(_ local: SocketAddress, _ remote: SocketAddress) {
    counters.sendFailures += 1
    queryRefused(local, remote)
    relayRefused(local, remote)
    if streamLost(local, remote) { return }
    guard let index = pairIndex(local, remote) else { return }
    checklist[index].sendFailures += 1
    // A pair that worked is judged by silence: a full queue or a flapping interface may pass.
    if checklist[index].sendFailures >= 3, checklist[index].isUndecided { checklist[index].fail() }
  }

  /// Takes a role from the application, which knows it best before checks tell of a conflict.
  mutating func setRole(_ new: ICERole) {
    let hasChecked = checklist.contains { $0.epoch == epoch.number && $0.requestsSent > 0 }
    guard !epoch.remoteIsLite, !hasChecked else { return }
    changeRole(to: new)
  }

  mutating func changeRole(to new: ICERole) {
    guard role != new else { return }
    role = new
    for index in checklist.indices where checklist[index].epoch == epoch.number {
      checklist[index].isNominating = false
      checklist[index].wasChosenEarly = false
      checklist[index].priority = pairPriority(checklist[index])
    }
  }

  func epochs(_ number: UInt32) -> ICEEpoch? {
    number == epoch.number ? epoch : earlierEpoch?.number == number ? earlierEpoch : nil
  }

  private func findCheck(_ transaction: STUNTransactionID) -> (pair: Int, place: Int)? {
    for index in checklist.indices {
      for place in checklist[index].checks.indices
      where checklist[index].checks[place].transaction == transaction { return (index, place) }
    }
    return nil
  }

  /// How long to wait after so many requests; longer when many pairs are under way, so that they
  /// do not exceed the pace together (RFC 8445 section 14.3).
  private func checkWait(after attempts: Int) -> Interval {
    let wait = ICETiming.checkWaits[min(attempts, ICETiming.checkWaits.count) - 1]
    let busy = checklist.reduce(into: 0) { $0 += $1.state == .inProgress ? 1 : 0 }
    return max(wait, ICETiming.paceSmall * Int64(busy))
  }

  /// A check got through: the pair works (RFC 8445 section 7.2.5.3).
  private mutating func succeed(
    _ index: Int, _ check: CandidatePair.Check, mapped: SocketAddress?
  ) {
    checklist[index].answeredAt = now
    checklist[index].consentedAt = now
    checklist[index].sendFailures = 0
    let id = checklist[index].id
    if id == selectedID { consentAskedAt = nil }
    if checklist[index].epoch != epoch.number { return }
    if checklist[index].state != .succeeded {
      reviveAfterFailure()
      checklist[index].change(to: .succeeded)
      triggered.removeAll { $0 == id }
      if let mapped { nameLocal(index, mapped) }
      thawAll(foundation: checklist[index].foundation)
      firstSuccessAt = firstSuccessAt ?? now
    }
    let isNominated = check.nominates && checklist[index].isNominating && role == .controlling
    // A nomination is repeated until a request that carried it was answered.
    if isNominated || !checklist[index].isNominating {
      checklist[index].attempts = 0
      checklist[index].nextAttempt = nil
    }
    if isNominated {
      checklist[index].isNominating = false
      nominate(index)
    } else if checklist[index].wasChosenEarly, role == .controlled {
      checklist[index].wasChosenEarly = false
      followChoice(index)
    }
  }

  private mutating func takeError(_ code: UInt16, _ index: Int, _ check: CandidatePair.Check) {
    counters.errorResponses += 1
    guard checklist[index].epoch == epoch.number else { return }
    guard code == 487 else {
      if checklist[index].isUndecided { checklist[index].fail() }
      return
    }
    // Another conflict may have changed the role since (RFC 8445 section 7.2.5.1).
    if check.role == role, !epoch.remoteIsLite {
      tieBreaker = entropy.integer(UInt64.self)
      changeRole(to: role == .controlling ? .controlled : .controlling)
      emit(.role(role))
    }
    if checklist[index].state != .succeeded { trigger(index) }
  }

  /// Finds the own candidate that the peer saw; one nobody knew is peer-reflexive
  /// (RFC 8445 section 7.2.5.3.1).
  private mutating func nameLocal(_ index: Int, _ mapped: SocketAddress) {
    let base = checklist[index].base
    guard mapped != base, mapped.port != 0, mapped.ip.isIPv4 == base.ip.isIPv4 else { return }
    for local in gathering.candidates
    where local.base == base && local.candidate.address == mapped {
      checklist[index].local = local.candidate
      return
    }
    guard gathering.candidates.count < ICEGathering.localCandidatesMaximum else { return }
    let pair = checklist[index]
    let foundation = gathering.foundation(
      ICEGathering.FoundationKey(
        kind: .peerReflexive, base: base.ip, server: nil, isTCP: pair.local.isTCP))
    let candidate = ICECandidate(
      foundation: foundation, transport: pair.local.transport, priority: pair.reflexivePriority,
      host: .address(mapped.ip), port: mapped.port, kind: .peerReflexive, related: base,
      extensions: pair.local.tcpType.map { [ICECandidate.tcpType($0)] } ?? [])
    gathering.candidates.append(ICEGathering.LocalCandidate(candidate: candidate, base: base))
    checklist[index].local = candidate
  }
}

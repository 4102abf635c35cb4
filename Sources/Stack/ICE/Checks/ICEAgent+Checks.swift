import Wire

extension ICEAgent {
  /// Sends the checks that are due: the next ones of pairs under way, then a new one at its pace.
  mutating func runChecks() {
    guard generations.present.remote != nil, !progress.hasFailed else { return }
    for index in checklist.indices {
      guard let due = checklist[index].round.nextAttempt, due <= now else { continue }
      // Nothing gets lost on a connection, so that silence is an answer.
      if !checklist[index].local.isTCP, checklist[index].round.attempts < ICETiming.checkWaits.count
      {
        sendCheck(on: index)
      } else {
        checklist.change(index) { $0.fail() }
      }
    }
    guard checklist.useTurn(at: now), let index = checklist.next() else { return }
    checklist.change(index) { $0.change(to: .inProgress) }
    if checklist[index].needsConnection { connect(index) } else { sendCheck(on: index) }
  }

  /// Sends a Binding request on a pair (RFC 8445 section 7.2.4); each one is a transaction.
  mutating func sendCheck(on index: Int, isConsent: Bool = false) {
    let pair = checklist[index]
    guard let generation = generations.generation(pair.generation), let remote = generation.remote
    else {
      return
    }
    let transaction = STUNTransactionID(from: entropy)
    let role = roles.role
    let nominates = pair.nomination.isNominating && role == .controlling
    var writer = STUNWriter(.request, transactionID: transaction)
    writer.username("\(remote.usernameFragment):\(generation.local.usernameFragment)")
    writer.priority(pair.reflexivePriority)
    switch role {
    case .controlling: writer.iceControlling(roles.tieBreaker)
    case .controlled: writer.iceControlled(roles.tieBreaker)
    }
    if nominates { writer.useCandidate() }
    let bytes = writer.finish(key: generation.remoteKey)

    let check = CheckRound.Check(
      transaction: transaction, sentAt: now, nominates: nominates, role: role)
    checklist.change(index) { $0.remember(check) }
    if isConsent {
      checklist.change(index) { $0.traffic.countConsentRequest() }
    } else {
      let wait =
        pair.local.isTCP ? ICETiming.connectWait : checklist.wait(after: pair.round.attempts + 1)
      let next = now + wait
      checklist.change(index) { $0.round.goOn(at: next) }
    }
    transmit(bytes, from: pair.base, to: pair.target)
  }

  /// Handles a response of the peer to a check, or of a STUN server.
  mutating func handleResponse(
    _ message: STUNMessage, _ local: SocketAddress, _ remote: SocketAddress
  ) {
    guard let (index, place) = checklist.check(message.transactionID) else {
      if !receiveServerResponse(message, local, remote) { counters.count(.unmatchedResponses) }
      return
    }
    let pair = checklist[index]
    guard pair.base == local, pair.target == remote else {
      counters.count(.asymmetricResponses)
      return
    }
    guard let generation = generations.generation(pair.generation),
      message.verifiesIntegrity(key: generation.remoteKey)
    else {
      // Errors without integrity are not believed either; the check is repeated in its time.
      counters.count(.badIntegrity)
      return
    }
    guard message.notUnderstood.isEmpty else {
      counters.count(.notUnderstood)
      return
    }
    let now = now
    let check = checklist.change(index) { $0.removeCheck(place, at: now) }
    if message.messageClass == .success {
      succeed(index, check, mapped: message.mappedAddress)
    } else {
      handleError(message.errorCode?.code ?? 0, index, check)
    }
  }

  /// The system refused a send: three times in a row without success end the checks of a pair.
  mutating func sendFailed(_ local: SocketAddress, _ remote: SocketAddress) {
    counters.count(.sendFailures)
    if gatherer.queries.refuse(local, remote) {
      reportFailure(
        of: gatherer.servers.server(at: remote), reason: "the system cannot send to the server",
        base: local)
    }
    relayRefused(local, remote)
    if streamLost(local, remote) { return }
    guard let index = checklist.index(local, remote) else { return }
    checklist.change(index) { $0.recordRefusedSend() }
  }

  /// Sets the role that the application names; it knows best until checks show a conflict.
  mutating func setRole(_ new: ICERole) {
    guard !generations.present.remoteIsLite,
      !checklist.contains(where: { $0.traffic.requestsSent > 0 })
    else { return }
    changeRole(to: new)
  }

  mutating func changeRole(to new: ICERole) {
    if roles.setRole(new) { rankForRole() }
  }

  /// Ranks the pairs for a role that is new.
  mutating func rankForRole() {
    let candidates = gatherer.candidates
    checklist.rank(for: roles.role) { candidates.priority(of: $0) }
  }

  /// A check got through: the pair works (RFC 8445 section 7.2.5.3).
  private mutating func succeed(
    _ index: Int, _ check: CheckRound.Check, mapped: SocketAddress?
  ) {
    let now = now
    checklist.change(index) { $0.recordResponse(at: now) }
    consent.recordResponse(of: checklist[index].id)
    guard checklist.isPresent(index) else { return }
    if checklist[index].state != .succeeded {
      progress.revive(at: now)
      checklist.succeed(index)
      if let mapped { nameLocal(index, mapped) }
      checklist.thawAll(foundation: checklist[index].foundation)
      progress.recordSuccess(at: now)
    }
    let isNominating = checklist[index].nomination.isNominating
    let isNominated = check.nominates && isNominating && roles.role == .controlling
    // A nomination is repeated until a request that carried it was answered.
    if isNominated || !isNominating { checklist.change(index) { $0.round.finish() } }
    if isNominated {
      checklist.change(index) { $0.nomination.end() }
      nominate(index)
    } else if roles.role == .controlled,
      checklist.change(index, { $0.nomination.removeEarlyChoice() })
    {
      followChoice(index)
    }
  }

  private mutating func handleError(_ code: UInt16, _ index: Int, _ check: CheckRound.Check) {
    counters.count(.errorResponses)
    guard checklist.isPresent(index) else { return }
    guard code == 487 else {
      if checklist[index].isUndecided { checklist.change(index) { $0.fail() } }
      return
    }
    // Another conflict may have changed the role since (RFC 8445 section 7.2.5.1).
    if !generations.present.remoteIsLite, roles.concede(check.role, entropy) {
      rankForRole()
      emit(.role(roles.role))
    }
    if checklist[index].state != .succeeded { trigger(index) }
  }

  /// Finds the local candidate that the peer saw; one nobody knew is peer-reflexive (RFC 8445
  /// section 7.2.5.3.1).
  private mutating func nameLocal(_ index: Int, _ mapped: SocketAddress) {
    let base = checklist[index].base
    guard mapped != base, mapped.port != 0, mapped.ip.isIPv4 == base.ip.isIPv4 else { return }
    if let known = gatherer.candidates.candidate(base, seenAt: mapped) {
      return checklist.change(index) { $0.rename(local: known) }
    }
    guard !gatherer.candidates.isFull else { return }
    let pair = checklist[index]
    let foundation = gatherer.candidates.foundation(
      .init(
        kind: .peerReflexive, base: base.ip, server: nil, isTCP: pair.local.isTCP))
    let candidate = ICECandidate(
      foundation: foundation, transport: pair.local.transport, priority: pair.reflexivePriority,
      host: .address(mapped.ip), port: mapped.port, kind: .peerReflexive, related: base,
      extensions: pair.local.tcpType.map { [ICECandidate.tcpType($0)] } ?? [])
    gatherer.candidates.add(candidate, base: base)
    checklist.change(index) { $0.rename(local: candidate) }
  }
}

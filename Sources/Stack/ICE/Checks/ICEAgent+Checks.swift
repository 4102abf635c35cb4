import Wire

extension ICEAgent {
  /// Sends the checks that are due: the next check in each round under way and then, if the pace
  /// for new checks allows it, the first check of another round.
  mutating func runChecks() {
    guard generations.present.remote != nil, !progress.hasFailed else { return }
    for index in checklist.indices {
      guard let due = checklist[index].round.nextAttempt, due <= now else { continue }
      // TCP loses nothing, so missing responses mean that the pair has failed.
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

  /// Sends a Binding request on a pair (RFC 8445 section 7.2.4), each in its own transaction.
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
    let maximum =
      settings.awaitsSlowPaths ? CheckRound.checksMaximum : CheckRound.fewChecksMaximum
    checklist.change(index) { $0.remember(check, atMost: maximum) }
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

  /// Handles a response from the peer or from a STUN server.
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
      // An error response with a wrong MESSAGE-INTEGRITY is not trusted either, so the connectivity
      // check is repeated on schedule.
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

  /// Handles a send that the system refused; the third in a row fails a pair whose checks have not
  /// succeeded yet.
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

  /// Sets the role that the application names, unless a check has been sent or the peer is known to
  /// be lite.
  mutating func setRole(_ new: ICERole) {
    guard !generations.present.remoteIsLite,
      !checklist.contains(where: { $0.traffic.requestsSent > 0 })
    else { return }
    changeRole(to: new)
  }

  mutating func changeRole(to new: ICERole) {
    if roles.setRole(new) { rankForRole() }
  }

  /// Recomputes all priorities for a new role.
  mutating func rankForRole() {
    let candidates = gatherer.candidates
    checklist.rank(for: roles.role) { candidates.priority(of: $0) }
  }

  /// Handles a successful check: the pair works (RFC 8445 section 7.2.5.3).
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
    // A nomination is repeated until a request with USE-CANDIDATE is answered.
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
    // Another conflict may have changed the role meanwhile (RFC 8445 section 7.2.5.1).
    if !generations.present.remoteIsLite, roles.concede(check.role, entropy) {
      rankForRole()
      emit(.role(roles.role))
    }
    if checklist[index].state != .succeeded { trigger(index) }
  }

  /// Sets a pair's local candidate to the candidate with the address that the peer saw; an unknown
  /// address becomes a new peer-reflexive candidate (RFC 8445 section 7.2.5.3.1).
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

// MARK: - Requests

extension ICEAgent {
  /// Handles a datagram that looks like STUN, or that a TURN server sent.
  mutating func handleDatagram(_ local: SocketAddress, _ remote: SocketAddress, _ bytes: [UInt8]) {
    if !receiveRelayMessage(local, remote, bytes) { handleSTUN(local, remote, bytes) }
  }

  /// Handles a datagram that looks like STUN, relayed or not.
  mutating func handleSTUN(_ local: SocketAddress, _ remote: SocketAddress, _ bytes: [UInt8]) {
    guard isBase(local, remote) else {
      counters.count(.unknownSocket)
      return
    }
    let message: STUNMessage
    do {
      message = try STUNMessage(bytes)
    } catch {
      counters.count(.malformed)
      return
    }
    guard message.hasValidFingerprint != false else {
      counters.count(.malformed)
      return
    }
    guard message.method == .binding else {
      counters.count(.unexpected)
      return
    }
    switch message.messageClass {
    case .request: handleRequest(message, local, remote)
    case .success, .error: handleResponse(message, local, remote)
    // An indication keeps mappings alive and is not answered (RFC 8445 section 11).
    default: break
    }
  }

  /// Returns whether a datagram is a check whose sender knows the local credentials.
  ///
  /// Changes nothing, so it can be called before a datagram becomes an input.
  package func recognizes(_ bytes: [UInt8]) -> Bool {
    guard let message = try? STUNMessage(bytes), message.method == .binding,
      message.messageClass == .request, message.hasIntegrity, let username = message.username,
      let colon = username.firstIndex(of: ":"),
      let addressed = generations.generation(ofFragment: username[..<colon])
    else { return false }
    return message.verifiesIntegrity(key: addressed.localKey)
  }

  /// Acts on a check from the peer after answering it (RFC 8445 section 7.3.1).
  mutating func recordCheck(
    _ local: SocketAddress, _ remote: SocketAddress, priority: UInt32, usesCandidate: Bool,
    count: UInt64 = 1
  ) {
    let isTCP = gatherer.connections.contains(local, remote)
    // A connection opened locally already belongs to a pair, or is about to be closed.
    if checklist.index(local, remote) == nil, !isTCP || gatherer.sockets.socket(at: local) != nil {
      let candidate = remoteSide.reflexive(remote, priority: priority, isTCP: isTCP)
      // The candidate is paired only with the socket that the check reached (section 7.3.1.4).
      if learnRemote(candidate) == .full {
        counters.count(.overflows)
      } else {
        // The candidate may have been signaled before there was a socket to pair it with.
        let signaled = isTCP ? nil : remoteSide.candidate(at: remote)
        addPair(base: local, remote: signaled ?? candidate)
      }
    }
    guard let index = checklist.index(local, remote) else { return }
    let now = now
    checklist.change(index) { $0.traffic.receiveRequests(count, at: now) }
    if usesCandidate, roles.role == .controlled { peerChose(index) }
    if checklist[index].state != .succeeded { trigger(index) }
  }

  /// Handles USE-CANDIDATE: selects the pair if it works, or as soon as it does (section 7.3.1.5).
  private mutating func peerChose(_ index: Int) {
    checklist.recordChoice(index, at: now)
    if checklist[index].state == .succeeded { followChoice(index) }
  }

  private mutating func handleRequest(
    _ message: STUNMessage, _ local: SocketAddress, _ remote: SocketAddress
  ) {
    guard let username = message.username, message.hasIntegrity,
      let colon = username.firstIndex(of: ":")
    else {
      counters.count(.unauthenticated)
      return
    }
    guard let addressed = generations.generation(ofFragment: username[..<colon]) else {
      counters.count(.unknownUsername)
      return
    }
    guard message.verifiesIntegrity(key: addressed.localKey) else {
      counters.count(.badIntegrity)
      respond(to: message, local, remote, .unauthenticated, key: nil)
      return
    }
    let notUnderstood = message.notUnderstood
    guard notUnderstood.isEmpty else {
      counters.count(.notUnderstood)
      respond(
        to: message, local, remote, .unknownAttribute, key: addressed.localKey,
        unknown: notUnderstood)
      return
    }
    let fragment = username[username.index(after: colon)...]
    guard isExpected(fragment, in: addressed) else {
      counters.count(.foreignFragment)
      return
    }
    guard addressed.number != generations.present.number || settlesRoles(message) else {
      respond(to: message, local, remote, .roleConflict, key: addressed.localKey)
      return
    }
    respond(to: message, local, remote, nil, key: addressed.localKey)
    admit(message, local, remote, fragment: String(fragment), in: addressed)
  }

  /// Handles an authenticated check: counts it if it belongs to an earlier generation, stores it if
  /// it arrived before the peer's credentials, and otherwise acts on it.
  private mutating func admit(
    _ message: STUNMessage, _ local: SocketAddress, _ remote: SocketAddress, fragment: String,
    in addressed: ICEGeneration
  ) {
    if addressed.number != generations.present.number {
      guard let index = checklist.index(local, remote) else { return }
      let now = now
      checklist.change(index) { $0.traffic.receiveRequests(1, at: now) }
      return
    }
    let priority =
      message.priority ?? ICEPriority.candidate(.peerReflexive, localPreference: 0)
    let usesCandidate = message.usesCandidate
    // A known fragment was compared above, so a difference means that the peer's credentials have
    // not arrived yet.
    guard fragment == generations.present.remote?.usernameFragment else {
      let check = RemoteSide.EarlyCheck(
        local: local, remote: remote, fragment: fragment, priority: priority,
        usesCandidate: usesCandidate)
      if !remoteSide.hold(check) { counters.count(.overflows) }
      return
    }
    recordCheck(local, remote, priority: priority, usesCandidate: usesCandidate)
  }

  /// Compares roles (RFC 8445 section 7.3.1.1); returns false if the peer has to change its role.
  private mutating func settlesRoles(_ message: STUNMessage) -> Bool {
    if generations.present.remoteIsLite { return true }
    let verdict = roles.settle(
      controlling: message.iceControlling, controlled: message.iceControlled)
    if verdict == .agreed { return true }
    counters.count(.roleConflicts)
    if verdict == .refused { return false }
    rankForRole()
    emit(.role(roles.role))
    return true
  }

  /// Returns whether the peer's username fragment in a check is the signaled one; true if none has
  /// been signaled yet.
  private func isExpected(_ fragment: Substring, in addressed: ICEGeneration) -> Bool {
    guard let known = addressed.remote?.usernameFragment else { return true }
    return fragment == known
  }

  private mutating func respond(
    to request: STUNMessage, _ local: SocketAddress, _ remote: SocketAddress,
    _ error: STUNErrorCode?, key: [UInt8]?, unknown: [STUNAttributeType] = []
  ) {
    var writer = STUNWriter(
      error == nil ? .success : .error, transactionID: request.transactionID)
    if let error { writer.errorCode(error) } else { writer.xorMappedAddress(remote) }
    if !unknown.isEmpty { writer.unknownAttributes(unknown) }
    transmit(writer.finish(key: key), from: local, to: remote)
  }
}

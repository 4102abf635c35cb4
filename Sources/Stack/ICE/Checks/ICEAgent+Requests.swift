import Wire

extension ICEAgent {
  /// Handles a datagram that looks like STUN, or comes from a TURN server.
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
    // An indication keeps mappings alive and wants nothing (RFC 8445 section 11).
    default: break
    }
  }

  /// Whether a datagram is a check by somebody who knows the credentials of this side.
  ///
  /// Changes nothing, so that it may be asked before a datagram becomes an input.
  package func recognizes(_ bytes: [UInt8]) -> Bool {
    guard let message = try? STUNMessage(bytes), message.method == .binding,
      message.messageClass == .request, message.hasIntegrity, let username = message.username,
      let colon = username.firstIndex(of: ":"),
      let addressed = generations.generation(ofFragment: username[..<colon])
    else { return false }
    return message.verifiesIntegrity(key: addressed.localKey)
  }

  /// Acts on a check of the peer that was answered (RFC 8445 section 7.3.1).
  mutating func recordCheck(
    _ local: SocketAddress, _ remote: SocketAddress, priority: UInt32, usesCandidate: Bool,
    count: UInt64 = 1
  ) {
    let isTCP = gatherer.connections.contains(local, remote)
    // A connection that this side made belongs to a pair, or is about to be closed.
    if checklist.index(local, remote) == nil, !isTCP || gatherer.sockets.socket(at: local) != nil {
      let candidate = remoteSide.reflexive(remote, priority: priority, isTCP: isTCP)
      // It is paired only with the socket that it reached (section 7.3.1.4).
      if learnRemote(candidate) == .full {
        counters.count(.overflows)
      } else {
        // It may have been signaled before there was a socket that it could be paired with.
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

  /// The peer wants this pair: follow at once if it works, or as soon as it does (section 7.3.1.5).
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

  /// Sorts an answered check: of an earlier generation, too early, or one to act on.
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
    // The fragment was compared before when it could be, save for a restart yet to be made.
    guard fragment == generations.present.remote?.usernameFragment else {
      let check = RemoteSide.EarlyCheck(
        local: local, remote: remote, fragment: fragment, priority: priority,
        usesCandidate: usesCandidate)
      if !remoteSide.hold(check) { counters.count(.overflows) }
      return
    }
    recordCheck(local, remote, priority: priority, usesCandidate: usesCandidate)
  }

  /// Compares roles (RFC 8445 section 7.3.1.1); false when the peer has to change its role.
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

  /// Whether a check may come from this fragment of the peer's, as far as it is known.
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

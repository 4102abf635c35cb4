import STUN
import Wire

extension ICEAgent {
  /// Takes a datagram that claims to be STUN, or what a TURN server sends.
  mutating func takeDatagram(_ local: SocketAddress, _ remote: SocketAddress, _ bytes: [UInt8]) {
    if !takeRelayMessage(local, remote, bytes) { takeSTUN(local, remote, bytes) }
  }

  /// Takes a datagram that claims to be STUN, on its way through a relay or not.
  mutating func takeSTUN(_ local: SocketAddress, _ remote: SocketAddress, _ bytes: [UInt8]) {
    guard isBase(local, remote) else {
      counters.unknownSocket += 1
      return
    }
    let message: STUNMessage
    do {
      message = try STUNMessage(bytes)
    } catch {
      counters.malformed += 1
      return
    }
    guard message.hasValidFingerprint != false else {
      counters.malformed += 1
      return
    }
    guard message.method == .binding else {
      counters.unexpected += 1
      return
    }
    switch message.messageClass {
    case .request: takeRequest(message, local, remote)
    case .success, .error: takeResponse(message, local, remote)
    // An indication keeps mappings alive and wants nothing (RFC 8445 section 11).
    default: break
    }
  }

  /// Takes up a check of the peer whose answer went out (RFC 8445 section 7.3.1).
  mutating func noteCheck(
    _ local: SocketAddress, _ remote: SocketAddress, priority: UInt32, usesCandidate: Bool,
    count: UInt64 = 1
  ) {
    let isTCP = gathering.connectionIndex(local, remote) != nil
    // A connection that this side made belongs to a pair, or is about to be closed.
    if checklist.index(local, remote) == nil, !isTCP || gathering.socket(at: local) != nil {
      remoteSide.reflexiveCount += 1
      let candidate = ICECandidate(
        foundation: "prflx\(remoteSide.reflexiveCount)", transport: isTCP ? "tcp" : "udp",
        priority: priority, host: .address(remote.ip), port: remote.port, kind: .peerReflexive,
        // Whoever connected here is the active side (RFC 6544 section 7.2).
        extensions: isTCP ? [ICECandidate.tcpType(.active)] : [])
      // It is paired only with the socket that it reached (section 7.3.1.4).
      if learnRemote(candidate) == nil {
        counters.overflows += 1
      } else {
        addPair(base: local, remote: isTCP ? candidate : signaled(at: remote) ?? candidate)
      }
    }
    guard let index = checklist.index(local, remote) else { return }
    let now = now
    checklist.change(index) { $0.noteRequests(count, at: now) }
    if usesCandidate, roles.role == .controlled { peerChose(index) }
    if checklist[index].state != .succeeded { trigger(index) }
  }

  /// The remote candidate at an address, which may have been signaled before there was a socket
  /// that it could be paired with.
  private func signaled(at address: SocketAddress) -> ICECandidate? {
    for candidate in remoteSide.candidates
    where candidate.transport == "udp" && candidate.address == address { return candidate }
    return nil
  }

  /// The peer wants this pair: follow at once if it works, or as soon as it does (section 7.3.1.5).
  private mutating func peerChose(_ index: Int) {
    checklist.noteChoice(index, at: now)
    if checklist[index].state == .succeeded { followChoice(index) }
  }

  private mutating func takeRequest(
    _ message: STUNMessage, _ local: SocketAddress, _ remote: SocketAddress
  ) {
    guard let username = message.username, message.hasIntegrity,
      let colon = username.firstIndex(of: ":")
    else {
      counters.unauthenticated += 1
      return
    }
    guard let addressed = epoch(ofFragment: username[..<colon]) else {
      counters.unknownUsername += 1
      return
    }
    guard message.verifiesIntegrity(key: addressed.localKey) else {
      counters.badIntegrity += 1
      respond(to: message, local, remote, .unauthenticated, key: nil)
      return
    }
    let notUnderstood = message.notUnderstood
    guard notUnderstood.isEmpty else {
      counters.notUnderstood += 1
      respond(
        to: message, local, remote, .unknownAttribute, key: addressed.localKey,
        unknown: notUnderstood)
      return
    }
    let fragment = username[username.index(after: colon)...]
    guard isExpected(fragment, in: addressed) else {
      counters.foreignFragment += 1
      return
    }
    guard addressed.number != epoch.number || settlesRoles(message) else {
      respond(to: message, local, remote, .roleConflict, key: addressed.localKey)
      return
    }
    respond(to: message, local, remote, nil, key: addressed.localKey)
    admit(message, local, remote, fragment: String(fragment), in: addressed)
  }

  /// Sorts an answered check: of an earlier epoch, too early, or one to act on.
  private mutating func admit(
    _ message: STUNMessage, _ local: SocketAddress, _ remote: SocketAddress, fragment: String,
    in addressed: ICEEpoch
  ) {
    if addressed.number != epoch.number {
      guard let index = checklist.index(local, remote) else { return }
      let now = now
      checklist.change(index) { $0.noteRequests(1, at: now) }
      return
    }
    let priority =
      message.priority ?? ICEPriority.candidate(.peerReflexive, localPreference: 0)
    let usesCandidate = message.usesCandidate
    // The fragment was compared before when it could be, save for a restart yet to be made.
    guard fragment == epoch.remote?.usernameFragment else {
      rememberEarly(
        ICERemoteSide.EarlyCheck(
          local: local, remote: remote, fragment: fragment, priority: priority,
          usesCandidate: usesCandidate, count: 1))
      return
    }
    noteCheck(local, remote, priority: priority, usesCandidate: usesCandidate)
  }

  /// Compares roles (RFC 8445 section 7.3.1.1); false when the peer has to change its role.
  private mutating func settlesRoles(_ message: STUNMessage) -> Bool {
    if epoch.remoteIsLite { return true }
    let verdict = roles.settle(
      controlling: message.iceControlling, controlled: message.iceControlled)
    if verdict == .agreed { return true }
    counters.roleConflicts += 1
    if verdict == .refused { return false }
    rankForRole()
    emit(.role(roles.role))
    return true
  }

  private func epoch(ofFragment fragment: Substring) -> ICEEpoch? {
    if epoch.local.usernameFragment == fragment { return epoch }
    if let earlierEpoch, earlierEpoch.local.usernameFragment == fragment { return earlierEpoch }
    return nil
  }

  /// Whether a check may come from this fragment of the peer's, as far as it is known.
  private func isExpected(_ fragment: Substring, in addressed: ICEEpoch) -> Bool {
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

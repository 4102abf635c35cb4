package import Wire

// Handles relayed candidates. To the rest of the agent, data that passes through a TURN server
// looks as if it was sent from, or received at, the relayed address.
extension ICEAgent {
  /// Returns whether a path starts at a socket, connection or relayed address of this agent that
  /// may be used with the peer.
  func isBase(_ local: SocketAddress, _ remote: SocketAddress) -> Bool {
    if relays.index(at: local) != nil { return true }
    guard !settings.relayOnly else { return false }
    if let socket = gatherer.sockets.socket(at: local), !socket.isListener { return true }
    return gatherer.connections.contains(local, remote)
  }

  /// Passes a message from a TURN server, other than a Binding message, to the client that uses the
  /// server.
  ///
  /// Returns false if no client uses the server, or if the message is not for that client.
  mutating func receiveRelayMessage(
    _ local: SocketAddress, _ server: SocketAddress, _ bytes: [UInt8]
  ) -> Bool {
    guard let index = relays.index(from: local, to: server) else { return false }
    let span = bytes.span.bytes
    guard ChannelData.matches(span) || STUNMessage.matches(span) && !STUNMessage.isBinding(span)
    else { return false }
    drive(relay: index, .received(bytes))
    return true
  }

  /// Requests permission for a peer if the base is a relayed address.
  mutating func permit(_ ip: IPAddress, at base: SocketAddress) {
    if let relay = relays.index(at: base) { drive(relay: relay, .permit(ip)) }
  }

  /// Requests a channel for the media to a peer if the base is a relayed address.
  mutating func bindChannel(to target: SocketAddress, at base: SocketAddress) {
    if let relay = relays.index(at: base) { drive(relay: relay, .bind(target)) }
  }

  /// Asks the TURN server of a silent path whether the allocation still exists, if the base is a
  /// relayed address.
  mutating func verifyRelay(at base: SocketAddress) {
    if let relay = relays.index(at: base) { drive(relay: relay, .verify) }
  }

  /// Returns whether bytes are channel data that carries something other than STUN; such data
  /// changes only counters.
  func isRelayedMedia(_ bytes: [UInt8]) -> Bool {
    bytes.count > ChannelData.headerLength && (0x40...0x4f).contains(bytes[0])
      && bytes[ChannelData.headerLength] > 3
  }

  /// Sends bytes from a base, through the TURN server if the base is a relayed address.
  mutating func transmit(_ bytes: [UInt8], from base: SocketAddress, to target: SocketAddress) {
    guard !relays.isEmpty, let index = relays.index(at: base) else {
      return emit(.datagram(local: base, remote: target, bytes: bytes))
    }
    drive(relay: index, .send(bytes, to: target))
    deadline = earliest(deadline, relays[index].clientDeadline)
  }

  /// Returns whether a path starts at a relayed address.
  package func isRelayed(_ local: SocketAddress) -> Bool { relays.index(at: local) != nil }

  // MARK: Gathering

  /// Schedules a request for an allocation; returns false if it was already made or there are too
  /// many relays.
  mutating func addRelay(
    _ server: ICEServer, at address: SocketAddress, _ credentials: TURNCredentials,
    from base: SocketAddress, due: Instant
  ) -> Bool {
    let number = generations.present.number
    guard let socket = gatherer.sockets.socket(at: base),
      !relays.isKnown(server, at: address, from: base, of: number)
    else { return false }
    guard !relays.isFull else {
      counters.count(.overflows)
      return false
    }
    relays.add(
      numbers.next(), server, at: address, credentials, from: base, of: number,
      localPreference: socket.localPreference, due: due, entropy)
    return true
  }

  /// Performs the relays' due actions and removes relays that have ended.
  mutating func runRelays() {
    for index in relays.indices {
      switch relays.removeDue(index, at: now) {
      case .nothing: break
      case .begin: begin(index)
      case .abandon: abandon(relay: index, "the server does not answer")
      case .deadline: drive(relay: index, .deadline)
      }
    }
    for relay in relays.removeOver() { hangUp(relay) }
  }

  private mutating func begin(_ index: Int) {
    let relay = relays[index]
    guard relay.isStream else { return drive(relay: index, .begin) }
    relays.connect(index, at: now)
    emit(
      .request(
        .openStream(
          id: relay.id,
          StreamTarget(from: relay.base.ip, to: relay.address, server: relay.server))))
  }

  /// Handles an open connection to a server; returns false if no relay requested it.
  mutating func connected(_ id: UInt32, _ address: SocketAddress) -> Bool {
    guard let index = relays.connected(id, at: address) else { return false }
    drive(relay: index, .begin)
    return true
  }

  mutating func connectionFailed(_ id: UInt32) {
    if let index = relays.index(connection: id) {
      abandon(relay: index, "the connection cannot be made")
    }
  }

  private mutating func abandon(relay index: Int, _ reason: String) {
    relays.abandonConnecting(index)
    let address = relays[index].address
    if let relayed = relays[index].relayed { failBase(relayed) }
    drive(relay: index, .close)
    emit(.serverFailed(address, code: 0, reason: reason))
    reportFailure(of: relays[index].server, reason: reason, base: relays[index].base)
  }

  private mutating func loseStream(of index: Int) {
    let relay = relays[index]
    guard let relayed = relay.relayed else {
      return abandon(relay: index, "the connection is lost")
    }
    emit(.serverFailed(relay.address, code: 0, reason: "the connection is lost"))
    hangUp(relay)
    renew(index, lost: relayed)
  }

  /// Closes a relay's connection.
  private mutating func hangUp(_ relay: Relays.Relay) {
    if relay.isStream, relay.base.port != 0 { emit(.request(.closeSocket(relay.base))) }
  }

  /// Handles a refused send to a server: a connection counts as lost, and a pending allocation over
  /// UDP is given up after the third refusal.
  mutating func relayRefused(_ local: SocketAddress, _ remote: SocketAddress) {
    guard let index = relays.index(from: local, to: remote) else { return }
    switch relays.refuse(index) {
    case .nothing: break
    case .lost: loseStream(of: index)
    case .unreachable:
      drive(relay: index, .close)
      let reason = "the system cannot send to the server"
      emit(.serverFailed(remote, code: 0, reason: reason))
      reportFailure(of: relays[index].server, reason: reason, base: local)
    }
  }

  // MARK: Closing

  /// Ends the matching relays' allocations, informing their servers.
  mutating func closeRelays(where isOver: (Relays.Relay) -> Bool) {
    for index in relays.indices where isOver(relays[index]) {
      drive(relay: index, .close)
      hangUp(relays[index])
    }
    relays.remove(where: isOver)
  }

  /// Drops relays whose local address is gone.
  mutating func loseRelays(where isLost: (Relays.Relay) -> Bool) {
    for relay in relays.all where isLost(relay) {
      if let relayed = relay.relayed { failBase(relayed) }
      hangUp(relay)
    }
    relays.remove(where: isLost)
  }

  mutating func failBase(_ base: SocketAddress) {
    reportRemoved(gatherer.candidates.remove(base: base))
    checklist.fail { $0.base == base }
  }

  // MARK: Clients

  /// Steps a relay's client and applies its outputs.
  mutating func drive(relay index: Int, _ input: TURNClient.Input) {
    let before = relays[index].relayed
    var outputs = relays.step(index, input, at: now)
    while let output = outputs.next() { handle(output, of: index, before: before) }
    relays.recycle(outputs)
  }

  private mutating func handle(
    _ output: TURNClient.Output, of index: Int, before: SocketAddress?
  ) {
    let relay = relays[index]
    switch output {
    case .send(let bytes): emit(.datagram(local: relay.base, remote: relay.address, bytes: bytes))
    case .allocated(let relayed, let mapped): allocated(relay, relayed, mapped)
    case .received(let bytes, let peer):
      guard let local = relay.relayed else { return }
      if STUNMessage.matches(bytes.span.bytes) {
        handleSTUN(local, peer, bytes)
      } else {
        emit(.relayed(local: local, remote: peer, bytes: bytes))
      }
    case .refused(let ip):
      guard let local = relay.relayed else { return }
      checklist.fail { $0.base == local && $0.target.ip == ip }
    case .redirected(let server): redirect(index, to: server)
    case .failed(let code, let reason):
      emit(.serverFailed(relay.address, code: code, reason: reason))
      reportFailure(of: relay.server, code: code, reason: reason, base: relay.base)
      if let before { renew(index, lost: before) }
    }
  }

  /// Requests another allocation after one was lost because the server restarted, stopped answering
  /// for a while, or closed the connection.
  ///
  /// Once gathering is complete, the new address is not signaled; the peer learns it from checks.
  private mutating func renew(_ index: Int, lost relayed: SocketAddress) {
    failBase(relayed)
    relays.renew(index, of: generations.present.number, &numbers, entropy, at: now)
  }

  private mutating func redirect(_ index: Int, to server: SocketAddress) {
    let relay = relays[index]
    guard relays.mayRedirect(index, to: server) else {
      let reason = "the redirection leads nowhere"
      emit(.serverFailed(relay.address, code: 300, reason: reason))
      return reportFailure(of: relay.server, code: 300, reason: reason, base: relay.base)
    }
    hangUp(relay)
    relays.redirect(index, to: server, &numbers, entropy, at: now)
  }

  private mutating func allocated(
    _ relay: Relays.Relay, _ relayed: SocketAddress, _ mapped: SocketAddress?
  ) {
    if !settings.relayOnly, !relay.isStream, let mapped, mapped.port != 0,
      mapped.ip.isIPv4 == relay.base.ip.isIPv4, !mapped.ip.isUnspecified
    {
      addReflexive(mapped, base: relay.base, server: relay.address)
    }
    let foundation = gatherer.candidates.foundation(
      .init(kind: .relayed, base: relay.base.ip, server: relay.address.ip))
    let hidden = SocketAddress.hidden(isIPv4: relayed.ip.isIPv4)
    // The related address would reveal the mapped address (RFC 8828 section 5.2).
    let isSecret = settings.relayOnly || settings.hidesAddresses
    let priority = ICEPriority.candidate(.relayed, localPreference: relay.localPreference)
    addLocal(
      ICECandidate(
        foundation: foundation, priority: priority, host: .address(relayed.ip), port: relayed.port,
        kind: .relayed, related: isSecret ? hidden : mapped ?? hidden,
        extensions: [fragmentExtension]),
      base: relayed, server: relay.server)
    for remote in remoteSide.candidates { addPair(base: relayed, remote: remote) }
  }
}

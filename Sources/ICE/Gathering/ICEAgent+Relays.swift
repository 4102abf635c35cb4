import STUN
import TURN
package import Wire

// Relayed candidates: what TURN servers carry looks to the rest of the agent as if it were sent
// from, and came to, the relayed address.
extension ICEAgent {
  private static let redirectionsMaximum = 3
  private static let renewalsMaximum = 5

  /// Whether a path begins at this agent and may be used by peers.
  func isBase(_ local: SocketAddress, _ remote: SocketAddress) -> Bool {
    if gathering.relayIndex(at: local) != nil { return true }
    guard !settings.relayOnly else { return false }
    if let socket = gathering.socket(at: local), !socket.isListener { return true }
    return gathering.connectionIndex(local, remote) != nil
  }

  /// Hands what a TURN server sends to its client: anything but Binding messages.
  ///
  /// Returns false when it is not for a client.
  mutating func takeRelayMessage(
    _ local: SocketAddress, _ server: SocketAddress, _ bytes: [UInt8]
  ) -> Bool {
    guard let index = gathering.relayIndex(from: local, to: server) else { return false }
    let span = bytes.span.bytes
    guard ChannelData.matches(span) || STUNMessage.matches(span) && !STUNMessage.isBinding(span)
    else { return false }
    drive(relay: index, .received(bytes))
    return true
  }

  /// Lets a peer in where a base is a relayed address.
  mutating func letIn(_ ip: IPAddress, at base: SocketAddress) {
    if let relay = gathering.relayIndex(at: base) { drive(relay: relay, .permit(ip)) }
  }

  /// Wants a channel where a base is a relayed address, because media goes this way.
  mutating func bindChannel(to target: SocketAddress, at base: SocketAddress) {
    if let relay = gathering.relayIndex(at: base) { drive(relay: relay, .bind(target)) }
  }

  /// Whether bytes are channel data around anything but STUN: what touches no state but counters.
  func isRelayedMedia(_ bytes: [UInt8]) -> Bool {
    bytes.count > ChannelData.headerLength && (0x40...0x4f).contains(bytes[0])
      && bytes[ChannelData.headerLength] > 3
  }

  /// Sends from a base: through its server when it is a relayed address.
  mutating func transmit(_ bytes: [UInt8], from base: SocketAddress, to target: SocketAddress) {
    guard !gathering.relays.isEmpty, let index = gathering.relayIndex(at: base) else {
      emit(.datagram(local: base, remote: target, bytes: bytes))
      return
    }
    drive(relay: index, .send(bytes, to: target))
    deadline = earliest(deadline, gathering.relays[index].client.deadline)
  }

  /// Whether a path begins at a relayed address.
  package func isRelayed(_ local: SocketAddress) -> Bool {
    gathering.relayIndex(at: local) != nil
  }

  // MARK: Gathering

  /// Prepares to ask a TURN server; false when that was done already, or there are too many.
  mutating func addRelay(
    _ server: ICEServer, at address: SocketAddress, _ credentials: TURNCredentials,
    from base: SocketAddress, due: Instant
  ) -> Bool {
    let isStream = server.transport != .udp
    let isKnown = gathering.relays.contains {
      $0.epoch == generations.present.number && $0.address == address
        && $0.server.transport == server.transport
        && (isStream ? $0.base.ip == base.ip : $0.base == base)
    }
    guard let socket = gathering.socket(at: base), !isKnown else { return false }
    guard gathering.relays.count < ICEGathering.relaysMaximum else {
      counters.count(.overflows)
      return false
    }
    let client = TURNClient(
      credentials: credentials, isReliable: isStream, wantsIPv6: !base.ip.isIPv4, entropy: entropy)
    gathering.relays.append(
      ICEGathering.Relay(
        id: numbers.next(), epoch: generations.present.number, server: server, address: address,
        base: isStream ? SocketAddress(base.ip, port: 0) : base,
        localPreference: socket.localPreference - server.transport.drawback, client: client,
        beginAt: due))
    return true
  }

  /// Does what is due for relays, and forgets those that are over.
  mutating func runRelays() {
    for index in gathering.relays.indices {
      if let due = gathering.relays[index].beginAt {
        guard due <= now else { continue }
        gathering.relays[index].beginAt = nil
        begin(index)
      } else if let due = gathering.relays[index].connectBy {
        if due <= now { giveUp(relay: index, "the server does not answer") }
      } else if let due = gathering.relays[index].client.deadline, due <= now {
        drive(relay: index, .deadline)
      }
    }
    for relay in gathering.relays where relay.isOver { hangUp(relay) }
    gathering.relays.removeAll(where: \.isOver)
  }

  private mutating func begin(_ index: Int) {
    let relay = gathering.relays[index]
    guard relay.isStream else {
      drive(relay: index, .begin)
      return
    }
    gathering.relays[index].connectBy = now + ICETiming.connectWait
    emit(
      .openStream(id: relay.id, from: relay.base.ip, to: relay.address, server: relay.server))
  }

  /// Takes a connection to a server into use; false when it is not one.
  mutating func connected(_ id: UInt32, _ address: SocketAddress) -> Bool {
    guard
      let index = gathering.relays.firstIndex(where: {
        $0.isStream && $0.id == id && $0.connectBy != nil
      })
    else { return false }
    gathering.relays[index].connectBy = nil
    gathering.relays[index].base = address
    drive(relay: index, .begin)
    return true
  }

  mutating func connectionFailed(_ id: UInt32) {
    guard let index = gathering.relays.firstIndex(where: { $0.isStream && $0.id == id }) else {
      return
    }
    giveUp(relay: index, "the connection cannot be made")
  }

  private mutating func giveUp(relay index: Int, _ reason: String) {
    gathering.relays[index].connectBy = nil
    let address = gathering.relays[index].address
    if let relayed = gathering.relays[index].client.relayed { failBase(relayed) }
    drive(relay: index, .close)
    emit(.serverFailed(address, code: 0, reason: reason))
  }

  private mutating func loseStream(of index: Int) {
    let relay = gathering.relays[index]
    guard let relayed = relay.client.relayed else {
      return giveUp(relay: index, "the connection is lost")
    }
    emit(.serverFailed(relay.address, code: 0, reason: "the connection is lost"))
    hangUp(relay)
    renew(index, lost: relayed)
  }

  /// Ends the connection that a relay has of its own.
  private mutating func hangUp(_ relay: ICEGathering.Relay) {
    if relay.isStream, relay.base.port != 0 { emit(.closeSocket(relay.base)) }
  }

  /// The system refused to send to a server: it cannot be reached from here.
  mutating func relayRefused(_ local: SocketAddress, _ remote: SocketAddress) {
    guard let index = gathering.relayIndex(from: local, to: remote) else { return }
    // A connection that does not take anything any more is gone.
    if gathering.relays[index].isStream { return loseStream(of: index) }
    gathering.relays[index].sendFailures += 1
    guard gathering.relays[index].sendFailures >= 3, gathering.relays[index].client.isAllocating
    else { return }
    drive(relay: index, .close)
    emit(.serverFailed(remote, code: 0, reason: "the system cannot send to the server"))
  }

  // MARK: Ends

  /// Ends allocations in order.
  mutating func closeRelays(where isOver: (ICEGathering.Relay) -> Bool) {
    for index in gathering.relays.indices where isOver(gathering.relays[index]) {
      drive(relay: index, .close)
      hangUp(gathering.relays[index])
    }
    gathering.relays.removeAll(where: isOver)
  }

  /// Gives up relays whose own end is gone.
  mutating func loseRelays(where isLost: (ICEGathering.Relay) -> Bool) {
    for relay in gathering.relays where isLost(relay) {
      if let relayed = relay.client.relayed { failBase(relayed) }
      hangUp(relay)
    }
    gathering.relays.removeAll(where: isLost)
  }

  mutating func failBase(_ base: SocketAddress) {
    gathering.candidates.removeAll { $0.base == base }
    checklist.fail { $0.base == base }
  }

  // MARK: Clients

  /// Steps the client of a relay and does what it wants.
  mutating func drive(relay index: Int, _ input: TURNClient.Input) {
    var outputs = Outbox<TURNClient.Output>()
    swap(&outputs, &relayOutbox)
    let before = gathering.relays[index].client.relayed
    gathering.relays[index].client.step(input, at: now, into: &outputs)
    while let output = outputs.next() { handle(output, of: index, before: before) }
    swap(&outputs, &relayOutbox)
  }

  private mutating func handle(
    _ output: TURNClient.Output, of index: Int, before: SocketAddress?
  ) {
    let relay = gathering.relays[index]
    switch output {
    case .send(let bytes): emit(.datagram(local: relay.base, remote: relay.address, bytes: bytes))
    case .allocated(let relayed, let mapped): allocated(relay, relayed, mapped)
    case .received(let bytes, let peer):
      guard let local = relay.client.relayed else { return }
      if STUNMessage.matches(bytes.span.bytes) {
        takeSTUN(local, peer, bytes)
      } else {
        emit(.relayed(local: local, remote: peer, bytes: bytes))
      }
    case .refused(let ip):
      guard let local = relay.client.relayed else { return }
      checklist.fail { $0.base == local && $0.target.ip == ip }
    case .redirected(let server): redirect(index, to: server)
    case .failed(let code, let reason):
      emit(.serverFailed(relay.address, code: code, reason: reason))
      if let before { renew(index, lost: before) }
    }
  }

  /// Asks for another allocation where one was lost: the server was started anew, or did not answer
  /// for a while.
  ///
  /// The new address is not signaled; the peer learns it from checks.
  private mutating func renew(_ index: Int, lost relayed: SocketAddress) {
    failBase(relayed)
    let relay = gathering.relays[index]
    guard relay.epoch == generations.present.number, relay.renewals < ICEAgent.renewalsMaximum,
      let credentials = relay.server.credentials
    else { return }
    if relay.isStream { gathering.relays[index].base.port = 0 }
    gathering.relays[index].id = numbers.next()
    gathering.relays[index].renewals += 1
    gathering.relays[index].client = TURNClient(
      credentials: credentials, isReliable: relay.isStream, wantsIPv6: !relay.base.ip.isIPv4,
      entropy: entropy)
    // At once the first time, later ones after a while that doubles.
    let wait = relay.renewals == 0 ? Interval.zero : .seconds(1 << Int64(relay.renewals - 1))
    gathering.relays[index].beginAt = now + wait
  }

  /// Makes sure of the allocation behind a silent path.
  mutating func verifyRelay(at base: SocketAddress) {
    if let relay = gathering.relayIndex(at: base) { drive(relay: relay, .verify) }
  }

  private mutating func allocated(
    _ relay: ICEGathering.Relay, _ relayed: SocketAddress, _ mapped: SocketAddress?
  ) {
    if !settings.relayOnly, !relay.isStream, let mapped, mapped.port != 0,
      mapped.ip.isIPv4 == relay.base.ip.isIPv4, !mapped.ip.isUnspecified
    {
      addReflexive(mapped, base: relay.base, server: relay.address)
    }
    let foundation = gathering.foundation(
      ICEGathering.FoundationKey(kind: .relayed, base: relay.base.ip, server: relay.address.ip))
    let hidden = SocketAddress.hidden(isIPv4: relayed.ip.isIPv4)
    let isSecret = settings.relayOnly || settings.hidesAddresses
    let priority = ICEPriority.candidate(.relayed, localPreference: relay.localPreference)
    // Who wants relays only does not want to tell the own address (RFC 8828 section 5.2).
    addLocal(
      ICECandidate(
        foundation: foundation, priority: priority, host: .address(relayed.ip), port: relayed.port,
        kind: .relayed, related: isSecret ? hidden : mapped ?? hidden,
        extensions: [fragmentExtension]),
      base: relayed, server: relay.server)
    for remote in remoteSide.candidates { addPair(base: relayed, remote: remote) }
  }

  private mutating func redirect(_ index: Int, to server: SocketAddress) {
    let relay = gathering.relays[index]
    guard relay.redirections < ICEAgent.redirectionsMaximum,
      server.ip.isIPv4 == relay.address.ip.isIPv4, server != relay.address,
      let credentials = relay.server.credentials
    else {
      emit(.serverFailed(relay.address, code: 300, reason: "the redirection leads nowhere"))
      return
    }
    hangUp(relay)
    gathering.relays[index].id = numbers.next()
    if relay.isStream { gathering.relays[index].base.port = 0 }
    gathering.relays[index].address = server
    gathering.relays[index].redirections += 1
    gathering.relays[index].client = TURNClient(
      credentials: credentials, isReliable: relay.isStream, wantsIPv6: !relay.base.ip.isIPv4,
      entropy: entropy)
    gathering.relays[index].beginAt = now
  }
}

extension ICEGathering.Relay {
  /// Whether the server is reached over a connection of its own.
  var isStream: Bool { server.transport != .udp }

  var isOver: Bool { !client.isAllocating && !client.isAllocated }

  /// When it wants attention by itself.
  var wakeAt: Instant? { beginAt ?? connectBy ?? client.deadline }
}

extension ICEServer.Transport {
  /// How much less preferred a relay is that is reached this way: connections stall on loss.
  var drawback: UInt16 {
    switch self {
    case .udp: 0
    case .tcp: 0x4000
    case .tls: 0x8000 - 0x1000
    }
  }
}

import STUN
import TURN
import Wire

extension ICEAgent {
  /// Asks for one socket per address, best address first, and for the addresses of server names.
  mutating func gather(_ addresses: [IPAddress]) {
    changeGathering(to: .gathering)
    openSockets(on: addresses)
    for index in gathering.servers.indices {
      guard case .name(let name) = gathering.servers[index].server.host,
        gathering.servers[index].addresses == nil, gathering.servers[index].nameID == nil
      else { continue }
      let id = numbers.next()
      gathering.servers[index].nameID = id
      emit(.resolveName(id: id, name))
    }
    gathering.namesUntil = now + ICETiming.nameWait
  }

  /// Asks for the sockets of the addresses that have none yet.
  mutating func openSockets(on addresses: [IPAddress]) {
    for address in ICEPriority.ordered(addresses) where !address.isUnspecified {
      let isAsked = gathering.sockets.contains {
        $0.epoch == generations.present.number && $0.asked == address
      }
      guard !isAsked else { continue }
      guard gathering.sockets.count < ICEGathering.socketsMaximum else {
        counters.count(.overflows)
        continue
      }
      open(on: address)
    }
  }

  /// Asks for the sockets of one address.
  private mutating func open(on address: IPAddress) {
    let localPreference = 65535 - gathering.socketsAsked
    gathering.socketsAsked += 1
    if settings.usesUDP {
      let id = numbers.next()
      gathering.sockets.append(
        ICEGathering.Socket(
          id: id, epoch: generations.present.number, asked: address,
          localPreference: localPreference))
      emit(.bindSocket(id: id, address))
    }
    guard settings.usesTCP, !settings.relayOnly else { return }
    let id = numbers.next()
    gathering.sockets.append(
      ICEGathering.Socket(
        id: id, epoch: generations.present.number, asked: address, localPreference: localPreference,
        isListener: true))
    emit(.listen(id: id, address))
    gatherTCP(address, localPreference: localPreference)
  }

  /// Takes a socket into use: a host candidate, pairs with all that is known, questions to servers.
  mutating func socketBound(_ id: UInt32, _ address: SocketAddress) {
    if connected(id, address) || peerConnected(id, address) { return }
    guard let index = gathering.sockets.firstIndex(where: { $0.id == id }),
      gathering.sockets[index].address == nil
    else {
      // A restart or a failure was faster.
      emit(.closeSocket(address))
      return
    }
    gathering.sockets[index].address = address
    let socket = gathering.sockets[index]
    if socket.isListener {
      return addTCP(
        .passive, address, port: address.port, localPreference: socket.localPreference)
    }
    for server in gathering.servers { ask(server, from: address) }
    // With relays only, nothing is sent from the address itself (RFC 8828 section 5.2, mode 4).
    guard !settings.relayOnly else { return }
    let foundation = gathering.foundation(
      ICEGathering.FoundationKey(kind: .host, base: address.ip, server: nil))
    addLocal(
      ICECandidate(
        foundation: foundation,
        priority: ICEPriority.candidate(.host, localPreference: socket.localPreference),
        host: shown(address.ip), port: address.port, kind: .host,
        extensions: [fragmentExtension]),
      base: address)
    for remote in remoteSide.candidates { addPair(base: address, remote: remote) }
  }

  /// Drops a socket that did not open or died, with its pairs.
  mutating func socketFailed(_ id: UInt32) {
    connectionFailed(id)
    peerConnectionFailed(id)
    guard let index = gathering.sockets.firstIndex(where: { $0.id == id }) else { return }
    let socket = gathering.sockets.remove(at: index)
    if let address = socket.address { lose(address) }
  }

  /// Drops all that began at the end point of a socket.
  mutating func lose(_ address: SocketAddress) {
    gathering.queries.removeAll { $0.base == address }
    loseRelays { $0.base == address }
    failBase(address)
  }

  mutating func serverResolved(_ index: Int, _ addresses: [IPAddress]) {
    gathering.servers[index].nameID = nil
    gathering.servers[index].addresses = Array(addresses.prefix(2))
    for socket in gathering.sockets
    where socket.epoch == generations.present.number && !socket.isListener {
      if let address = socket.address { ask(gathering.servers[index], from: address) }
    }
  }

  /// Sends what is due to servers, and tells when gathering is over.
  mutating func runGathering() {
    for index in gathering.queries.indices { runQuery(at: index) }
    runRelays()
    gathering.queries.removeAll { $0.nextAttempt == nil && $0.keepAliveAt == nil }
    guard gatheringState == .gathering else { return }
    let waitsForSocket = gathering.sockets.contains {
      $0.epoch == generations.present.number && $0.address == nil
    }
    let waitsForServer =
      gathering.queries.contains { $0.nextAttempt != nil }
      || gathering.relays.contains { $0.client.isAllocating }
    if let until = gathering.namesUntil, until <= now || !waitsForNames {
      gathering.namesUntil = nil
    }
    guard !waitsForSocket, !waitsForServer, gathering.namesUntil == nil else { return }
    emit(.localCandidate(nil))
    changeGathering(to: .complete)
  }

  /// Takes the response of a STUN server; false when no question was asked with this transaction.
  mutating func takeServerResponse(
    _ message: STUNMessage, _ local: SocketAddress, _ remote: SocketAddress
  ) -> Bool {
    guard
      let index = gathering.queries.firstIndex(where: {
        $0.transaction == message.transactionID && $0.base == local && $0.server == remote
      })
    else { return false }
    guard gathering.queries[index].nextAttempt != nil else { return true }
    gathering.queries[index].nextAttempt = nil
    guard message.messageClass == .success, let mapped = message.mappedAddress,
      mapped.ip.isIPv4 == local.ip.isIPv4, mapped.port != 0, !mapped.ip.isUnspecified
    else {
      counters.count(.errorResponses)
      return true
    }
    addReflexive(mapped, base: local, server: remote)
    return true
  }

  mutating func queryRefused(_ local: SocketAddress, _ remote: SocketAddress) {
    for index in gathering.queries.indices
    where gathering.queries[index].base == local && gathering.queries[index].server == remote {
      gathering.queries[index].sendFailures += 1
      if gathering.queries[index].sendFailures >= 3 { gathering.queries[index].nextAttempt = nil }
    }
  }

  /// When gathering wants to go on by itself.
  var gatheringDeadline: Instant? {
    var next = gatheringState == .gathering ? gathering.namesUntil : nil
    for query in gathering.queries {
      next = earliest(next, query.nextAttempt ?? keepAliveTime(query))
    }
    for relay in gathering.relays { next = earliest(next, relay.wakeAt) }
    return next
  }

  var fragmentExtension: ICECandidate.Extension {
    ICECandidate.Extension(name: "ufrag", value: generations.present.local.usernameFragment)
  }

  /// What a candidate shows of an own address: the address, or a name that only hosts of the same
  /// link can resolve.
  mutating func shown(_ ip: IPAddress) -> ICECandidate.Host {
    guard settings.hidesAddresses else { return .address(ip) }
    let (name, isNew) = names.name(of: ip, entropy)
    if isNew { emit(.publishName(name, ip)) }
    return .name(name)
  }

  private var waitsForNames: Bool { gathering.servers.contains { $0.nameID != nil } }

  private mutating func changeGathering(to state: ICEGatheringState) {
    guard gatheringState != state else { return }
    gatheringState = state
    emit(.gatheringState(state))
  }

  mutating func addLocal(
    _ candidate: ICECandidate, base: SocketAddress, server: ICEServer? = nil
  ) {
    gathering.candidates.append(
      ICEGathering.LocalCandidate(candidate: candidate, base: base, server: server))
    // After the end of candidates was told, there are none until a restart (W3C webrtc-pc section
    // 5.6.1): the peer learns such a path from the checks that come over it.
    emit(
      gatheringState == .complete ? .unsignaledCandidate(candidate) : .localCandidate(candidate))
  }

  mutating func addReflexive(
    _ mapped: SocketAddress, base: SocketAddress, server: SocketAddress
  ) {
    // A mapping that changes nothing, or that another server told already, is redundant
    // (RFC 8445 section 5.1.3). It is never paired itself: its base sends for it.
    let isKnown = gathering.candidates.contains {
      $0.base == base && $0.candidate.address == mapped && $0.candidate.kind != .peerReflexive
    }
    guard !isKnown, let socket = gathering.socket(at: base) else { return }
    for index in gathering.queries.indices
    where gathering.queries[index].base == base && gathering.queries[index].server == server {
      gathering.queries[index].keepAliveAt = now + ICETiming.keepAlive
    }
    let foundation = gathering.foundation(
      ICEGathering.FoundationKey(kind: .serverReflexive, base: base.ip, server: server.ip))
    addLocal(
      ICECandidate(
        foundation: foundation,
        priority: ICEPriority.candidate(.serverReflexive, localPreference: socket.localPreference),
        host: .address(mapped.ip), port: mapped.port, kind: .serverReflexive,
        related: settings.hidesAddresses ? .hidden(isIPv4: base.ip.isIPv4) : base,
        extensions: [fragmentExtension]),
      base: base, server: gathering.server(at: server))
  }

  private mutating func ask(_ server: ICEGathering.Server, from base: SocketAddress) {
    for ip in server.addresses ?? [] {
      // A server is not reached from loopback, or over link-local, unless it is there itself.
      guard ip.isIPv4 == base.ip.isIPv4, ip.isLoopback == base.ip.isLoopback,
        ip.isLinkLocal == base.ip.isLinkLocal
      else { continue }
      let due = max(now, gathering.nextQueryAt)
      let address = SocketAddress(ip, port: server.server.port)
      if let credentials = server.server.credentials {
        guard addRelay(server.server, at: address, credentials, from: base, due: due) else {
          continue
        }
      }
      gathering.nextQueryAt = due + ICETiming.paceSmall
      guard server.server.credentials == nil, !settings.relayOnly else { continue }
      gathering.queries.append(
        ICEGathering.Query(
          base: base, server: address,
          transaction: STUNTransactionID(from: entropy), nextAttempt: due))
    }
  }

  private mutating func runQuery(at index: Int) {
    let query = gathering.queries[index]
    if let due = query.nextAttempt, due <= now {
      guard query.attempts < TURNTiming.queryWaits.count else {
        gathering.queries[index].nextAttempt = nil
        return
      }
      gathering.queries[index].nextAttempt = now + TURNTiming.queryWaits[query.attempts]
      gathering.queries[index].attempts += 1
      let message = STUNWriter(.request, transactionID: query.transaction).finish()
      emit(.datagram(local: query.base, remote: query.server, bytes: message))
    } else if let due = keepAliveTime(query), due <= now {
      gathering.queries[index].keepAliveAt = now + ICETiming.keepAlive
      let message = STUNWriter(.indication, transactionID: STUNTransactionID(from: entropy))
        .finish()
      emit(.datagram(local: query.base, remote: query.server, bytes: message))
    }
  }

  /// When to keep a mapping alive; consent checks do so once a pair is nominated.
  private func keepAliveTime(_ query: ICEGathering.Query) -> Instant? {
    nomination.pairID == nil ? query.keepAliveAt : nil
  }
}

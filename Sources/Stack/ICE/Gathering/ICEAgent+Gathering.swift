import Wire

// Gathers local candidates from the system and from servers.
extension ICEAgent {
  /// Requests sockets for each address, best address first, and resolves the server names.
  mutating func gather(_ addresses: [IPAddress]) {
    changeGathering(to: .gathering)
    openSockets(on: addresses)
    for (id, name) in gatherer.servers.namesToResolve(&numbers, at: now) {
      emit(.request(.resolveName(id: id, name)))
    }
  }

  /// Drops addresses that are gone and adds new ones, once gathering has started.
  mutating func learnInterfaces(_ addresses: [IPAddress]) {
    guard gatheringState != .new else { return }
    for address in gatherer.sockets.remove(where: { !addresses.contains($0.asked) }) {
      lose(address)
      emit(.request(.closeSocket(address)))
    }
    // Connections to TURN servers have ports of their own, so only the IP address is compared.
    loseRelays { $0.isStream && !addresses.contains($0.base.ip) }
    checklist.fail { $0.isActive && !addresses.contains($0.base.ip) }
    reportRemoved(gatherer.candidates.removeActive { !addresses.contains($0) })
    openSockets(on: addresses)
  }

  /// Requests sockets for the addresses that have none yet.
  private mutating func openSockets(on addresses: [IPAddress]) {
    for address in ICEPriority.ordered(addresses) where !address.isUnspecified {
      guard !gatherer.sockets.isAsked(address, of: generations.present.number) else { continue }
      guard !gatherer.sockets.isFull else {
        counters.count(.overflows)
        continue
      }
      open(on: address)
    }
  }

  /// Requests the sockets for one address.
  private mutating func open(on address: IPAddress) {
    let localPreference = gatherer.sockets.nextPreference()
    if settings.usesUDP {
      let id = ask(for: address, localPreference: localPreference, isListener: false)
      emit(.request(.bindSocket(id: id, address)))
    }
    guard settings.usesTCP, !settings.relayOnly else { return }
    let id = ask(for: address, localPreference: localPreference, isListener: true)
    emit(.request(.listen(id: id, address)))
    gatherTCP(address, localPreference: localPreference)
  }

  private mutating func ask(
    for address: IPAddress, localPreference: UInt16, isListener: Bool
  ) -> UInt32 {
    let id = numbers.next()
    gatherer.sockets.ask(
      id, address, of: generations.present.number, localPreference: localPreference,
      isListener: isListener)
    return id
  }

  /// Handles an open socket: adds a host candidate, pairs it, and queues requests to servers.
  mutating func socketBound(_ id: UInt32, _ address: SocketAddress) {
    if connected(id, address) || peerConnected(id, address) { return }
    guard let socket = gatherer.sockets.bind(id, address) else {
      // A restart or failure removed the socket in the meantime.
      return emit(.request(.closeSocket(address)))
    }
    if socket.isListener {
      return addTCP(
        .passive, address, port: address.port, localPreference: socket.localPreference)
    }
    for server in gatherer.servers.all { ask(server, from: address) }
    // With relays only, nothing is sent to the peer from the address itself (RFC 8828 section 5.2,
    // mode 4).
    guard !settings.relayOnly else { return }
    let foundation = gatherer.candidates.foundation(
      .init(kind: .host, base: address.ip, server: nil))
    addLocal(
      ICECandidate(
        foundation: foundation,
        priority: ICEPriority.candidate(.host, localPreference: socket.localPreference),
        host: shown(address.ip), port: address.port, kind: .host,
        extensions: [fragmentExtension]),
      base: address)
    for remote in remoteSide.candidates { addPair(base: address, remote: remote) }
  }

  /// Drops a socket that did not open or that failed, with its pairs.
  mutating func socketFailed(_ id: UInt32) {
    connectionFailed(id)
    peerConnectionFailed(id)
    if let address = gatherer.sockets.remove(id)?.address { lose(address) }
  }

  mutating func closeSockets(where isOver: (LocalSockets.Socket) -> Bool) {
    for address in gatherer.sockets.remove(where: isOver) { emit(.request(.closeSocket(address))) }
  }

  /// Drops the queries, relays and pairs that use a socket's address.
  private mutating func lose(_ address: SocketAddress) {
    gatherer.queries.drop(from: address)
    loseRelays { $0.base == address }
    failBase(address)
  }

  /// Stores a server's resolved addresses and queues requests to it; returns false if no server
  /// waits for them.
  mutating func serverResolved(_ id: UInt32, _ addresses: [IPAddress]) -> Bool {
    guard let server = gatherer.servers.resolve(id, addresses) else { return false }
    if addresses.isEmpty {
      reportFailure(of: server.server, reason: "the name of the server is not known", base: nil)
    }
    for socket in gatherer.sockets.all
    where socket.generation == generations.present.number && !socket.isListener {
      if let address = socket.address { ask(server, from: address) }
    }
    return true
  }

  /// Sends due requests to servers; reports when gathering is complete.
  mutating func runGathering() {
    for index in gatherer.queries.all.indices { runQuery(at: index) }
    runRelays()
    gatherer.queries.removeFinished()
    guard gatheringState == .gathering else { return }
    let waitsForName = gatherer.servers.isWaiting(at: now)
    let waitsForSocket = gatherer.sockets.isWaiting(of: generations.present.number)
    let waitsForServer = gatherer.queries.isWaiting || relays.isAllocating
    guard !waitsForSocket, !waitsForServer, !waitsForName else { return }
    emit(.localCandidate(nil))
    changeGathering(to: .complete)
  }

  /// Handles a STUN server's response; returns false if no request has this transaction.
  mutating func receiveServerResponse(
    _ message: STUNMessage, _ local: SocketAddress, _ remote: SocketAddress
  ) -> Bool {
    guard let isFirst = gatherer.queries.receive(message.transactionID, local, remote) else {
      return false
    }
    guard isFirst else { return true }
    guard message.messageClass == .success, let mapped = message.mappedAddress,
      mapped.ip.isIPv4 == local.ip.isIPv4, mapped.port != 0, !mapped.ip.isUnspecified
    else {
      counters.count(.errorResponses)
      let error = message.errorCode
      reportFailure(
        of: gatherer.servers.server(at: remote), code: error?.code ?? 0,
        reason: error?.reason ?? "the server's answer has no address", base: local)
      return true
    }
    addReflexive(mapped, base: local, server: remote)
    return true
  }

  /// Reports that a server provided no candidate; only during gathering.
  mutating func reportFailure(
    of server: ICEServer?, code: UInt16 = 0, reason: String, base: SocketAddress?
  ) {
    guard gatheringState == .gathering else { return }
    emit(
      .gatheringFailed(
        ICEServerFailure(server: server, code: code, reason: reason, base: base)))
  }

  /// Reports the local candidates that are gone.
  mutating func reportRemoved(_ candidates: [ICECandidate]) {
    if !candidates.isEmpty { emit(.candidatesRemoved(candidates)) }
  }

  /// When gathering needs its next step.
  var gatheringDeadline: Instant? {
    let names = gatheringState == .gathering ? gatherer.servers.namesUntil : nil
    let queries = gatherer.queries.deadline(keepsAlive: keepsAlive)
    return earliest(earliest(names, queries), relays.deadline)
  }

  /// Whether to keep mappings alive; consent checks do so once a pair is nominated.
  private var keepsAlive: Bool { nomination.pairID == nil }

  var fragmentExtension: ICECandidate.Extension {
    ICECandidate.Extension(name: "ufrag", value: generations.present.local.usernameFragment)
  }

  /// Returns a candidate's host for a local address: the address, or a name that hides it.
  mutating func shown(_ ip: IPAddress) -> ICECandidate.Host {
    let (host, published) = gatherer.shown(ip, entropy)
    if let published { emit(.request(.publishName(published, ip))) }
    return host
  }

  private mutating func changeGathering(to state: ICEGatheringState) {
    if gatherer.enter(state) { emit(.gatheringState(state)) }
  }

  mutating func addLocal(
    _ candidate: ICECandidate, base: SocketAddress, server: ICEServer? = nil
  ) {
    gatherer.candidates.add(candidate, base: base, server: server)
    // After end-of-candidates, no candidate is signaled until a restart (W3C webrtc-pc
    // section 5.6.3): the peer learns the candidate from checks.
    emit(
      gatheringState == .complete ? .unsignaledCandidate(candidate) : .localCandidate(candidate))
  }

  mutating func addReflexive(
    _ mapped: SocketAddress, base: SocketAddress, server: SocketAddress
  ) {
    guard !gatherer.candidates.isRedundant(mapped, base: base),
      let socket = gatherer.sockets.socket(at: base)
    else { return }
    gatherer.queries.keepAlive(base, server, at: now)
    let foundation = gatherer.candidates.foundation(
      .init(kind: .serverReflexive, base: base.ip, server: server.ip))
    // A reflexive candidate is never paired itself; its base is paired instead.
    addLocal(
      ICECandidate(
        foundation: foundation,
        priority: ICEPriority.candidate(.serverReflexive, localPreference: socket.localPreference),
        host: .address(mapped.ip), port: mapped.port, kind: .serverReflexive,
        related: settings.hidesAddresses ? .hidden(isIPv4: base.ip.isIPv4) : base,
        extensions: [fragmentExtension]),
      base: base, server: gatherer.servers.server(at: server))
  }

  private mutating func ask(_ server: ServerList.Server, from base: SocketAddress) {
    for ip in server.addresses ?? [] {
      // A loopback or link-local address can only reach a server whose address is of the same kind.
      guard ip.isIPv4 == base.ip.isIPv4, ip.isLoopback == base.ip.isLoopback,
        ip.isLinkLocal == base.ip.isLinkLocal
      else { continue }
      let due = gatherer.queries.turn(at: now)
      let address = SocketAddress(ip, port: server.server.port)
      if let credentials = server.server.credentials {
        guard addRelay(server.server, at: address, credentials, from: base, due: due) else {
          continue
        }
      }
      gatherer.queries.useTurn(at: due)
      guard server.server.credentials == nil, !settings.relayOnly else { continue }
      gatherer.queries.add(base, address, STUNTransactionID(from: entropy), at: due)
    }
  }

  private mutating func runQuery(at index: Int) {
    let query = gatherer.queries.all[index]
    let message: [UInt8]
    switch gatherer.queries.removeDue(index, keepsAlive: keepsAlive, at: now) {
    case .nothing: return
    case .givenUp:
      return reportFailure(
        of: gatherer.servers.server(at: query.server), reason: "the server does not answer",
        base: query.base)
    case .request: message = STUNWriter(.request, transactionID: query.transaction).finish()
    case .keepAlive:
      message = STUNWriter(.indication, transactionID: STUNTransactionID(from: entropy)).finish()
    }
    emit(.datagram(local: query.base, remote: query.server, bytes: message))
  }
}

extension SocketAddress {
  /// The placeholder for a hidden address (RFC 8839 section 5.1).
  static func hidden(isIPv4: Bool) -> SocketAddress {
    SocketAddress(isIPv4 ? IPAddress(ipv4: 0) : IPAddress(ipv6High: 0, low: 0), port: 0)
  }
}

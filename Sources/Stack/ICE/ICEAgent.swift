package import Wire

/// A full ICE agent for one component (RFC 8445, 8838, 7675), without I/O.
///
/// Handling an input only records what happened; every step ends with `settle`, which does what is
/// due, selects a pair and reports changes. Media packets are the exception: the step for one
/// updates a single field and returns.
package struct ICEAgent: Machine {
  /// Returns the ordinal, modulo 256, of the agent that issued a request id.
  package static func ordinal(ofRequest id: UInt32) -> Int { RequestNumbers.ordinal(of: id) }

  package internal(set) var counters = ICECounters()
  package internal(set) var deadline: Instant?

  /// The current step's instant and outputs.
  private struct Step {
    var now = Instant.zero
    var outbox = Outbox<Output>()
  }

  let entropy: EntropyStream
  private var current = Step()
  var numbers: RequestNumbers
  var gatherer: Gatherer
  var relays = Relays()
  var generations: Generations
  var remoteSide = RemoteSide()
  var roles: RoleSettlement
  var checklist: Checklist
  var progress = CheckProgress()
  var nomination = Nomination()
  var consent: Consent

  /// Creates an agent that waits for `gather`; credentials and tie-breaker are drawn from the
  /// entropy.
  ///
  /// - Parameter ordinal: a number that distinguishes the agents of one peer, so that no two use
  ///   the same id for a socket, name or pair (up to 16 million ids per agent).
  package init(
    _ settings: ICESettings = ICESettings(), entropy: EntropyStream, ordinal: Int = 0
  ) {
    numbers = RequestNumbers(ordinal: ordinal)
    checklist = Checklist(after: numbers.last)
    self.entropy = entropy
    generations = Generations(ICECredentials(from: entropy))
    roles = RoleSettlement(tieBreaker: entropy.integer(UInt64.self))
    gatherer = Gatherer(settings)
    consent = Consent(silence: settings.silence)
  }

  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    if connectionState == .closed {
      // A socket requested before closing may still be opened.
      if case .answer(.socketBound(_, let address)) = input {
        outbox.append(.request(.closeSocket(address)))
      }
      return
    }
    switch input {
    case .trafficSent: return
    case .trafficReceived(let local, let remote):
      recordTraffic(local, remote, at: now)
      // Traffic matters only if it ends a silence. Otherwise the old deadline stays; it may be too
      // early but is never too late.
      if !consent.isSilent { return }
    case .datagram(let local, let remote, let bytes) where isRelayedMedia(bytes):
      current.now = now
      swap(&current.outbox, &outbox)
      handleDatagram(local, remote, bytes)
      swap(&current.outbox, &outbox)
      return
    case .relay(let local, let remote, let bytes):
      current.now = now
      swap(&current.outbox, &outbox)
      transmit(bytes, from: local, to: remote)
      swap(&current.outbox, &outbox)
      return
    default: break
    }
    current.now = now
    swap(&current.outbox, &outbox)
    handle(input)
    if connectionState != .closed { settle() }
    swap(&current.outbox, &outbox)
  }

  /// The current step's instant.
  var now: Instant { current.now }
  package var settings: ICESettings { gatherer.settings }
  package var nextSettings: ICESettings { gatherer.nextSettings }
  package var gatheringState: ICEGatheringState { gatherer.state }
  package var localCredentials: ICECredentials { generations.present.local }
  package var role: ICERole { roles.role }
  package var connectionState: ICEConnectionState { progress.state }

  /// Every pair of the current checklist, oldest first.
  package var pairs: [ICEPairReport] {
    checklist.pairs.map { $0.report(isSelected: $0.id == consent.pairID) }
  }

  package var selectedPair: ICEPairReport? {
    selectedIndex.map { checklist[$0].report(isSelected: true) }
  }

  /// Returns the server that provided a local reflexive or relayed candidate; nil for other
  /// candidates.
  package func server(of candidate: ICECandidate) -> ICEServer? {
    gatherer.candidates.all.first { $0.candidate == candidate }?.server
  }

  /// The current generation's local candidates, in the order they became known.
  package var localCandidates: [ICECandidate] { gatherer.candidates.all.map(\.candidate) }

  private mutating func handle(_ input: Input) {
    switch input {
    case .use(let servers, let relayOnly): gatherer.use(servers, relayOnly: relayOnly)
    case .gather(let addresses): gather(addresses)
    case .interfaces(let addresses): learnInterfaces(addresses)
    case .answer(.socketBound(let id, let address)): socketBound(id, address)
    case .answer(.socketFailed(let id, _)): socketFailed(id)
    case .answer(.nameResolved(let id, let addresses)): nameResolved(id, addresses)
    case .role(let role): setRole(role)
    case .remoteCredentials(let credentials, let lite): setRemote(credentials, lite: lite)
    case .remoteCandidate(let candidate): receiveRemoteCandidate(candidate)
    case .removedRemoteCandidate(let candidate): removeRemote(candidate)
    case .remoteEndOfCandidates: endRemoteCandidates()
    case .restart(let credentials): restart(credentials)
    case .answer(.streamAccepted(let local, let remote)): streamAccepted(local, remote)
    case .datagram(let local, let remote, let bytes): handleDatagram(local, remote, bytes)
    case .sendFailed(let local, let remote): sendFailed(local, remote)
    case .trafficSent, .trafficReceived, .relay, .deadline: break
    case .close: close()
    }
  }

  mutating func emit(_ output: Output) { current.outbox.append(output) }

  private mutating func recordTraffic(
    _ local: SocketAddress, _ remote: SocketAddress, at now: Instant
  ) {
    guard let index = checklist.index(local, remote) else { return }
    checklist.change(index) { $0.traffic.receiveData(at: now) }
  }

  private mutating func close() {
    closeRelays { _ in true }
    closeSockets { _ in true }
    for connection in gatherer.connections.removeAll() {
      emit(.request(.closeStream(local: connection.local, remote: connection.remote)))
    }
    gatherer.queries.removeAll()
    deadline = nil
    progress.close()
    emit(.connectionState(.closed))
  }
}

// MARK: - Interface

/// One peer's username fragment and password (RFC 8445 section 5.3).
package struct ICECredentials: Hashable, Sendable {
  package var usernameFragment: String
  package var password: String

  package init(usernameFragment: String, password: String) {
    self.usernameFragment = usernameFragment
    self.password = password
  }

  /// Draws fresh credentials: 8 and 24 ice-chars, above the minima of RFC 8839 section 5.4.
  package init(from entropy: EntropyStream) {
    self.init(usernameFragment: entropy.iceString(8), password: entropy.iceString(24))
  }
}

/// The connection state of ICE (W3C RTCIceConnectionState).
public enum ICEConnectionState: String, Hashable, Sendable {
  /// Nothing to check yet.
  case new
  /// Checks are under way.
  case checking
  /// A pair works; checks may continue.
  case connected
  /// Checks are over and a pair works.
  case completed
  /// The selected pair no longer answers; it may recover.
  case disconnected
  /// No pair works, or consent expired.
  case failed
  /// The connection was closed.
  case closed
}

/// The gathering state of ICE (W3C RTCIceGatheringState).
public enum ICEGatheringState: String, Hashable, Sendable {
  /// Gathering has not begun.
  case new
  /// Candidates are being gathered.
  case gathering
  /// All candidates are known.
  case complete
}

/// An agent's role: the controlling agent nominates the pair (RFC 8445 section 6.1.1).
package enum ICERole: String, Sendable {
  case controlling, controlled
}

/// A STUN or TURN server by address or name.
package struct ICEServer: Hashable, Sendable {
  /// How the agent reaches the server: `stun:` and `turn:` URLs over UDP or TCP, `turns:` over TLS.
  package enum Transport: String, Hashable, Sendable {
    case udp, tcp, tls
  }

  package var host: ICECandidate.Host
  package var port: UInt16
  package var transport: Transport
  /// The client's credentials on a TURN server; nil for a STUN server.
  package var credentials: TURNCredentials?

  package init(
    host: ICECandidate.Host, port: UInt16, transport: Transport = .udp,
    credentials: TURNCredentials? = nil
  ) {
    self.host = host
    self.port = port
    self.transport = transport
    self.credentials = credentials
  }

  /// The server's URI (RFC 7064 section 3.1, RFC 7065 section 3.1), with default values spelled
  /// out.
  package var url: String {
    var text = "\(host)"
    if case .address(let address) = host, !address.isIPv4 { text = "[\(text)]" }
    guard credentials != nil else { return "stun:\(text):\(port)" }
    let scheme = transport == .tls ? "turns" : "turn"
    return "\(scheme):\(text):\(port)?transport=\(transport == .udp ? "udp" : "tcp")"
  }
}

/// The reason that a server provided no candidate.
package struct ICEServerFailure: Hashable, Sendable {
  package var server: ICEServer?
  /// The server's error code; 0 if the server sent none.
  package var code: UInt16
  package var reason: String
  /// The local address that sent the request; nil if nothing was sent.
  package var base: SocketAddress?

  package init(server: ICEServer?, code: UInt16, reason: String, base: SocketAddress?) {
    self.server = server
    self.code = code
    self.reason = reason
    self.base = base
  }
}

/// A candidate pair's state for events, stats and the take.
package struct ICEPairReport: Hashable, Sendable {
  /// The states in RFC 8445 section 6.1.2.6, spelled as in W3C stats.
  package enum State: String, Sendable {
    case frozen, waiting
    case inProgress = "in-progress"
    case failed, succeeded
  }

  /// Identifies the pair within its agent; never reused.
  package var id: UInt32
  package var local: ICECandidate
  package var remote: ICECandidate
  /// The address of the socket, or the relayed address, that the pair sends from.
  package var base: SocketAddress
  package var state: State
  package var nominated: Bool
  package var selected: Bool
  package var priority: UInt64
  package var requestsSent: UInt64 = 0
  package var requestsReceived: UInt64 = 0
  package var responsesSent: UInt64 = 0
  package var responsesReceived: UInt64 = 0
  package var consentRequestsSent: UInt64 = 0
  package var currentRoundTrip: Interval?
  package var totalRoundTrip: Interval = .zero

  package init(
    id: UInt32, local: ICECandidate, remote: ICECandidate, base: SocketAddress, state: State,
    nominated: Bool, selected: Bool, priority: UInt64
  ) {
    self.id = id
    self.local = local
    self.remote = remote
    self.base = base
    self.state = state
    self.nominated = nominated
    self.selected = selected
    self.priority = priority
  }
}

extension ICEAgent {
  package enum Input {
    /// Use these servers, and only relays if `relayOnly`, from the next gathering on.
    case use([ICEServer], relayOnly: Bool)
    /// Start gathering on these local addresses.
    case gather([IPAddress])
    /// The host's current addresses, after gathering has started.
    case interfaces([IPAddress])
    /// The system's answer to a request, or an incoming connection.
    case answer(SystemAnswer)
    /// Set or change the role before checks start.
    case role(ICERole)
    /// The peer's credentials, and whether it is a lite agent.
    case remoteCredentials(ICECredentials, lite: Bool)
    case remoteCandidate(ICECandidate)
    /// A peer's candidate that must not be used any more.
    case removedRemoteCandidate(ICECandidate)
    /// The peer has no more candidates.
    case remoteEndOfCandidates
    /// New local credentials: an ICE restart (RFC 8445 section 9).
    ///
    /// `gather` starts gathering again. The peer's new credentials may arrive before or after.
    case restart(ICECredentials)
    /// A STUN datagram, or channel data from a TURN server.
    case datagram(local: SocketAddress, remote: SocketAddress, bytes: [UInt8])
    /// Send bytes on a path that starts at a relayed address.
    case relay(local: SocketAddress, remote: SocketAddress, bytes: [UInt8])
    /// Other traffic was sent on the selected pair; changes nothing.
    case trafficSent
    /// Other traffic was received on a pair, which shows that the path still works.
    case trafficReceived(local: SocketAddress, remote: SocketAddress)
    /// The system refused a send from `local` to `remote`.
    case sendFailed(local: SocketAddress, remote: SocketAddress)
    case deadline
    /// Close all sockets and connections, end allocations and stop.
    case close
  }

  /// A request or an event from the agent.
  package enum Output {
    /// Perform a system request; the result comes back as the input `answer`.
    case request(SystemRequest)
    case datagram(local: SocketAddress, remote: SocketAddress, bytes: [UInt8])
    /// Data other than STUN that a TURN server relayed.
    case relayed(local: SocketAddress, remote: SocketAddress, bytes: [UInt8])
    /// A TURN server refused or ended an allocation, with the reason.
    case serverFailed(SocketAddress, code: UInt16, reason: String)
    /// Local candidates were lost together with their sockets, allocations or addresses.
    case candidatesRemoved([ICECandidate])
    /// A server provided no candidate during gathering.
    case gatheringFailed(ICEServerFailure)
    case gatheringState(ICEGatheringState)
    case connectionState(ICEConnectionState)
    /// A new local candidate to signal; nil after the last one.
    case localCandidate(ICECandidate?)
    /// A local candidate found after the last one was signaled; the peer learns it from checks.
    case unsignaledCandidate(ICECandidate)
    /// A new remote candidate: signaled, resolved, or peer-reflexive.
    case remoteCandidate(ICECandidate)
    /// A pair was created, or its state, nomination or selection changed.
    indirect case pair(ICEPairReport)
    /// Media uses this path from now on.
    ///
    /// The first path may be selected before nomination.
    case selected(local: SocketAddress, remote: SocketAddress)
    /// A role conflict or a lite peer changed the role (RFC 8445 sections 7.3.1.1 and 6.1.1).
    case role(ICERole)
  }
}

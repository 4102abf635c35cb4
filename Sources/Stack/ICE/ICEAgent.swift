package import Wire

/// A full ICE agent for one component (RFC 8445, 8838, 7675) without I/O.
///
/// Every step ends in `settle`, which runs what is due, selects, and reports what changed; inputs
/// only record what happened. Media packets are the exception: they touch one field and return.
package struct ICEAgent: Machine {
  /// The lowest byte of the ordinal of the agent that gave a number.
  package static func ordinal(ofRequest id: UInt32) -> Int { RequestNumbers.ordinal(of: id) }

  package internal(set) var counters = ICECounters()
  package internal(set) var deadline: Instant?

  /// The step under way: its instant and its outputs.
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

  /// Creates an agent that waits for `gather`; credentials and tie-breaker come from the entropy.
  ///
  /// - Parameter ordinal: tells apart the agents of one peer: the numbers that they give to
  /// sockets, names and pairs differ, unless an agent made millions of them.
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
      // A socket that was asked for before may still arrive.
      if case .answer(.socketBound(_, let address)) = input {
        outbox.append(.request(.closeSocket(address)))
      }
      return
    }
    switch input {
    case .trafficSent: return
    case .trafficReceived(let local, let remote):
      recordTraffic(local, remote, at: now)
      // Only a recovery has consequences; the deadline that stands is early rather than late.
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

  /// The instant of the step under way.
  var now: Instant { current.now }
  package var settings: ICESettings { gatherer.settings }
  /// What the next gathering uses.
  package var nextSettings: ICESettings { gatherer.nextSettings }
  package var gatheringState: ICEGatheringState { gatherer.state }
  package var localCredentials: ICECredentials { generations.present.local }
  package var role: ICERole { roles.role }
  package var connectionState: ICEConnectionState { progress.state }

  /// Every pair of the current checklist, oldest first.
  package var pairs: [ICEPairReport] {
    checklist.pairs.map { $0.report(isSelected: $0.id == consent.pairID) }
  }

  /// The selected pair.
  package var selectedPair: ICEPairReport? {
    selectedIndex.map { checklist[$0].report(isSelected: true) }
  }

  /// The server that a local reflexive or relayed candidate came from.
  package func server(of candidate: ICECandidate) -> ICEServer? {
    gatherer.candidates.all.first { $0.candidate == candidate }?.server
  }

  /// The local candidates of the current generation, in the order in which they became known.
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

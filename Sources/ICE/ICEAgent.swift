import STUN
import TURN
package import Wire

/// A full ICE agent for one component (RFC 8445, 8838, 7675) without I/O.
///
/// Every step ends in `settle`, which runs what is due, chooses, and tells what changed; inputs
/// only note what happened. Media packets are the exception: they touch one field and return.
package struct ICEAgent: Machine {
  /// The lowest byte of the ordinal of the agent that gave a number.
  package static func ordinal(ofRequest id: UInt32) -> Int { RequestNumbers.ordinal(of: id) }

  package internal(set) var gatheringState: ICEGatheringState = .new
  package internal(set) var counters = ICECounters()
  package internal(set) var deadline: Instant?

  let entropy: EntropyStream
  package let settings: ICESettings
  /// The instant and the outputs of the step under way.
  var now = Instant.zero
  var outbox = Outbox<Output>()
  /// Storage for the outputs of relays, kept from one message to the next.
  var relayOutbox = Outbox<TURNClient.Output>()
  var numbers: RequestNumbers
  var generations: Generations
  var gathering: ICEGathering
  var remoteSide = RemoteSide()

  var names = HiddenNames()
  var roles: RoleSettlement
  var checklist: Checklist
  var progress = CheckProgress()
  var nomination = Nomination()
  var consent = Consent()

  /// Creates an agent that waits for `gather`; credentials and tie-breaker come from the entropy.
  ///
  /// - Parameter ordinal: tells apart the agents of one peer: the numbers that they give to
  ///   sockets, names and pairs differ, unless an agent made millions of them.
  package init(
    _ settings: ICESettings = ICESettings(), entropy: EntropyStream, ordinal: Int = 0
  ) {
    numbers = RequestNumbers(ordinal: ordinal)
    checklist = Checklist(after: numbers.last)
    self.entropy = entropy
    self.settings = settings
    generations = Generations(ICECredentials(from: entropy))
    roles = RoleSettlement(tieBreaker: entropy.integer(UInt64.self))
    gathering = ICEGathering(settings.servers)
  }

  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    if connectionState == .closed {
      // A socket that was asked for before may still arrive.
      if case .socketBound(_, let address) = input { outbox.append(.closeSocket(address)) }
      return
    }
    switch input {
    case .trafficSent: return
    case .trafficReceived(let local, let remote):
      noteTraffic(local, remote, at: now)
      // Only a recovery has consequences; the deadline that stands is early rather than late.
      if !consent.isSilent { return }
    case .datagram(let local, let remote, let bytes) where isRelayedMedia(bytes):
      self.now = now
      swap(&self.outbox, &outbox)
      takeDatagram(local, remote, bytes)
      swap(&self.outbox, &outbox)
      return
    case .relay(let local, let remote, let bytes):
      self.now = now
      swap(&self.outbox, &outbox)
      transmit(bytes, from: local, to: remote)
      swap(&self.outbox, &outbox)
      return
    default: break
    }
    self.now = now
    swap(&self.outbox, &outbox)
    take(input)
    if connectionState != .closed { settle() }
    swap(&self.outbox, &outbox)
  }

  package var localCredentials: ICECredentials { generations.present.local }
  package var role: ICERole { roles.role }
  package var connectionState: ICEConnectionState { progress.state }

  /// Every pair of the present checklist, oldest first.
  package var pairs: [ICEPairReport] {
    checklist.pairs.map { $0.report(isSelected: $0.id == consent.pairID) }
  }

  /// The pair in use.
  package var selectedPair: ICEPairReport? {
    selectedIndex.map { checklist[$0].report(isSelected: true) }
  }

  /// The server that an own reflexive or relayed candidate came from.
  package func server(of candidate: ICECandidate) -> ICEServer? {
    gathering.candidates.first { $0.candidate == candidate }?.server
  }

  /// The own candidates of the present epoch, in the order in which they became known.
  package var localCandidates: [ICECandidate] { gathering.candidates.map(\.candidate) }

  private mutating func take(_ input: Input) {
    switch input {
    case .gather(let addresses): gather(addresses)
    case .interfaces(let addresses): learnInterfaces(addresses)
    case .socketBound(let id, let address): socketBound(id, address)
    case .socketFailed(let id): socketFailed(id)
    case .nameResolved(let id, let addresses): nameResolved(id, addresses)
    case .role(let role): setRole(role)
    case .remoteCredentials(let credentials, let lite): setRemote(credentials, lite: lite)
    case .remoteCandidate(let candidate): takeRemote(candidate)
    case .remoteEndOfCandidates: endRemoteCandidates()
    case .restart(let credentials): restart(credentials)
    case .streamAccepted(let local, let remote): streamAccepted(local, remote)
    case .datagram(let local, let remote, let bytes): takeDatagram(local, remote, bytes)
    case .sendFailed(let local, let remote): sendFailed(local, remote)
    case .trafficSent, .trafficReceived, .relay, .deadline: break
    case .close: close()
    }
  }

  mutating func emit(_ output: Output) { outbox.append(output) }

  private mutating func noteTraffic(
    _ local: SocketAddress, _ remote: SocketAddress, at now: Instant
  ) {
    guard let index = checklist.index(local, remote) else { return }
    checklist.change(index) { $0.noteTraffic(at: now) }
  }

  private mutating func close() {
    closeRelays { _ in true }
    for socket in gathering.sockets {
      if let address = socket.address { emit(.closeSocket(address)) }
    }
    for connection in gathering.connections {
      emit(.closeStream(local: connection.local, remote: connection.remote))
    }
    gathering.sockets = []
    gathering.connections = []
    gathering.queries = []
    deadline = nil
    progress.close()
    emit(.connectionState(.closed))
  }
}

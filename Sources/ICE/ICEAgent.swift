import STUN
import TURN
package import Wire

/// A full ICE agent for one component (RFC 8445, 8838, 7675) without I/O.
///
/// Every step ends in `settle`, which runs what is due, chooses, and tells what changed; inputs
/// only note what happened. Media packets are the exception: they touch one field and return.
package struct ICEAgent: Machine {
  /// Up to how many pairs are kept (RFC 8445 section 6.1.2.5).
  static let pairsMaximum = 100
  private static let ordinalShift: UInt32 = 24

  /// The lowest byte of the ordinal of the agent that gave a number.
  package static func ordinal(ofRequest id: UInt32) -> Int { Int(id >> ordinalShift) }

  package internal(set) var localCredentials: ICECredentials
  package internal(set) var role: ICERole = .controlling
  package internal(set) var connectionState: ICEConnectionState = .new
  package internal(set) var gatheringState: ICEGatheringState = .new
  package internal(set) var counters = ICECounters()
  package internal(set) var deadline: Instant?

  let entropy: EntropyStream
  package let settings: ICESettings
  var tieBreaker: UInt64
  /// The instant and the outputs of the step under way.
  var now = Instant.zero
  var outbox = Outbox<Output>()
  /// Storage for the outputs of relays, kept from one message to the next.
  var relayOutbox = Outbox<TURNClient.Output>()
  /// The last number given to a socket or a name, and to a pair.
  var lastRequestID: UInt32
  var lastPairID: UInt32

  var epoch: ICEEpoch
  /// The epoch of the pair in use, when a restart has not led to a new one yet.
  var earlierEpoch: ICEEpoch?
  /// When what is left of the earlier epoch is given up.
  var retireAt: Instant?
  var gathering: ICEGathering
  var remoteSide = ICERemoteSide()
  var upcomingRemote: ICEUpcomingRemote?

  /// All pairs, oldest first; the one of an earlier epoch stands first.
  var checklist: [CandidatePair] = []
  /// Numbers of pairs to be checked next, first one first (RFC 8445 section 6.1.4.1).
  var triggered: [UInt32] = []
  var nextPacedAt = Instant.zero
  /// When checks of this epoch began, or began again after failure.
  var checkingSince: Instant?
  /// When the first pair of this epoch was found to work.
  var firstSuccessAt: Instant?
  /// Whether a pair of this epoch was in use since checks began, or began again after failure.
  var hadPath = false
  /// Whether checks of this epoch led to nothing and stopped.
  var hasFailed = false
  var isCompleted = false

  /// The pair that was nominated last.
  var nominatedID: UInt32?
  var nominatedAt: Instant?
  /// When a nomination is to be considered again.
  var nominationDueAt: Instant?

  /// The pair in use and since when.
  var selectedID: UInt32?
  var selectedSince = Instant.zero
  /// What `selected` told last.
  var announcedID: UInt32?
  /// Whether the pair in use has not been heard for long.
  var isSilent = false
  var nextConsentAt: Instant?
  /// When a consent check went out that was not answered yet.
  var consentAskedAt: Instant?

  /// Creates an agent that waits for `gather`; credentials and tie-breaker come from the entropy.
  ///
  /// - Parameter ordinal: tells apart the agents of one peer: the numbers that they give to
  ///   sockets, names and pairs differ, unless an agent made millions of them.
  package init(
    _ settings: ICESettings = ICESettings(), entropy: EntropyStream, ordinal: Int = 0
  ) {
    lastRequestID = UInt32(truncatingIfNeeded: ordinal) << ICEAgent.ordinalShift
    lastPairID = lastRequestID
    self.entropy = entropy
    self.settings = settings
    localCredentials = ICECredentials(from: entropy)
    tieBreaker = entropy.integer(UInt64.self)
    epoch = ICEEpoch(number: 0, local: localCredentials)
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
      if !isSilent { return }
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

  /// Every pair of the present checklist, oldest first.
  package var pairs: [ICEPairReport] {
    checklist.map { $0.report(isSelected: $0.id == selectedID) }
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

  mutating func newRequestID() -> UInt32 {
    lastRequestID &+= 1
    return lastRequestID
  }

  func pairIndex(id: UInt32?) -> Int? {
    guard let id else { return nil }
    for index in checklist.indices where checklist[index].id == id { return index }
    return nil
  }

  func pairIndex(_ base: SocketAddress, _ target: SocketAddress) -> Int? {
    for index in checklist.indices
    where checklist[index].target == target && checklist[index].base == base { return index }
    return nil
  }

  var selectedIndex: Int? { pairIndex(id: selectedID) }

  private mutating func noteTraffic(
    _ local: SocketAddress, _ remote: SocketAddress, at now: Instant
  ) {
    guard let index = pairIndex(local, remote) else { return }
    checklist[index].heardAt = now
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
    connectionState = .closed
    emit(.connectionState(.closed))
  }
}

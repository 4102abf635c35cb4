package import ICE
package import Wire

/// Up to two ICE agents on a virtual network that trickle their candidates to each other.
package final class VirtualMeeting {
  private enum Action {
    case input(Int, ICEAgent.Input)
    case run(() -> Void)
  }

  package private(set) var now = Instant.zero
  package var network: VirtualNetwork
  package var streams: VirtualStreams
  /// The settings of every host's link.
  package var link = LinkSettings() {
    didSet { for host in network.links.indices { network.links[host] = link } }
  }
  /// The agents with their outputs; the first one is controlling.
  package private(set) var parties: [MeetingParty] = []
  /// The addresses of host names; agents add the names that they publish over mDNS.
  package var names: [String: IPAddress] = [:]
  /// A source of random numbers for other participants in a test.
  package let chance: EntropyStream

  private let entropy: Entropy
  /// Scheduled actions, earliest first.
  private var events: [(at: Instant, action: Action)] = []

  package init(seed: UInt64) {
    entropy = Entropy(seed: (0..<8).map { UInt8(truncatingIfNeeded: seed >> (8 * $0)) })
    network = VirtualNetwork(entropy: entropy.stream("internet"))
    streams = VirtualStreams(entropy: entropy.stream("streams"))
    chance = entropy.stream("chance")
    link.delay = .milliseconds(20)
    link.jitter = .milliseconds(5)
  }

  /// Adds an agent on its own host, behind the NAT if there is one.
  @discardableResult
  package func add(
    _ addresses: [IPAddress], nat: VirtualNAT? = nil, settings: ICESettings = ICESettings()
  ) -> MeetingEnd {
    let index = network.addHost(link)
    if let nat { network.hide(index, at: addresses, behind: nat) }
    let source = entropy.stream(index == 0 ? "first" : "second")
    parties.append(
      MeetingParty(
        ICEAgent(settings, entropy: source), addresses: addresses,
        firstPort: 20_000 + 1000 * UInt16(index)))
    return MeetingEnd(meeting: self, index: index)
  }

  /// Changes the addresses of an agent's host and informs the agent.
  package func change(_ index: Int, to addresses: [IPAddress]) {
    parties[index].addresses = addresses
    network.restrict(index, to: addresses)
    step(index, .interfaces(addresses))
  }

  package func edit(_ index: Int, _ change: (inout MeetingParty) -> Void) {
    change(&parties[index])
  }

  /// Starts both sides with each other's credentials; the candidates follow.
  package func begin() {
    step(0, .role(.controlling))
    step(1, .role(.controlled))
    for index in 0..<2 { passCredentials(to: index) }
    for index in 0..<2 { step(index, .gather(parties[index].addresses)) }
  }

  /// Restarts ICE on both sides, as a new offer and answer do.
  package func restart() {
    for index in 0..<2 { step(index, .restart(ICECredentials(from: chance))) }
    for index in 0..<2 {
      passCredentials(to: index)
      step(index, .gather(parties[index].addresses))
    }
  }

  /// Passes the remote credentials to an agent, as a description would.
  package func passCredentials(to index: Int, lite: Bool = false) {
    guard parties.count == 2 else { return }
    step(index, .remoteCredentials(parties[1 - index].agent.localCredentials, lite: lite))
  }

  /// Sends data on the selected path, as the layers above would.
  package func send(_ bytes: [UInt8], from index: Int) {
    guard let pair = parties[index].agent.selectedPair, let target = pair.remote.address else {
      return
    }
    if parties[index].agent.isRelayed(pair.base) {
      step(index, .relay(local: pair.base, remote: target, bytes: bytes))
    } else {
      transmit(bytes, from: pair.base, to: target, of: index)
    }
  }

  /// Runs a closure after an interval.
  package func after(_ interval: Interval, _ body: @escaping () -> Void) {
    schedule(after: interval, .run(body))
  }

  /// Passes an input to an agent, and carries out its outputs.
  package func step(_ index: Int, _ input: ICEAgent.Input) {
    for output in parties[index].step(input, at: now) { handle(output, index) }
  }

  /// Advances time until a condition holds; returns false if `limit` passes first.
  @discardableResult
  package func run(for limit: Interval, until isDone: (VirtualMeeting) -> Bool = { _ in false })
    -> Bool
  {
    let end = now + limit
    var standing = 0
    while !isDone(self) {
      var next = earliest(
        earliest(network.nextArrival, streams.nextArrival), events.first?.at)
      for party in parties { next = earliest(next, party.agent.deadline) }
      guard let next, next <= end else {
        now = end
        return isDone(self)
      }
      // A deadline that stays in the past would make the test loop forever.
      standing = next > now ? 0 : standing + 1
      precondition(standing < 10_000, "time stands still at \(now)")
      now = max(now, next)
      runOnce()
    }
    return true
  }

  private func runOnce() {
    if let arrival = network.next(until: now) {
      arrive(arrival.bytes, arrival.local, arrival.remote, arrival.host)
    }
    if let delivery = streams.next(until: now) { handle(delivery) }
    while let first = events.first, first.at <= now {
      events.removeFirst()
      switch first.action {
      case .input(let index, let input): step(index, input)
      case .run(let body): body()
      }
    }
    for index in parties.indices {
      if let due = parties[index].agent.deadline, due <= now { step(index, .deadline) }
    }
  }

  private func schedule(after interval: Interval, _ action: Action) {
    let at = now + interval
    let place = events.firstIndex { $0.at > at } ?? events.count
    events.insert((at, action), at: place)
  }

  private func answer(_ index: Int, after interval: Interval = .zero, _ answer: SystemAnswer) {
    schedule(after: interval, .input(index, .answer(answer)))
  }

  private func transmit(
    _ bytes: [UInt8], from local: SocketAddress, to remote: SocketAddress, of index: Int
  ) {
    if streams.send(bytes, from: local, to: remote, at: now) { return }
    network.send(bytes, from: local, to: remote, of: index, at: now)
  }

  private func handle(_ delivery: VirtualStreams.Delivery) {
    let index = delivery.host
    switch delivery.event {
    case .connected(let id, let local): step(index, .answer(.socketBound(id: id, local)))
    case .refused(let id): step(index, .answer(.socketFailed(id: id, code: 111)))
    case .accepted(let local, let remote):
      step(index, .answer(.streamAccepted(local: local, remote: remote)))
    case .message(let local, let remote, let bytes): arrive(bytes, local, remote, index)
    case .lost(let local, let remote): step(index, .sendFailed(local: local, remote: remote))
    }
  }

  private func arrive(
    _ bytes: [UInt8], _ local: SocketAddress, _ remote: SocketAddress, _ index: Int
  ) {
    // STUN and channel data belong to the agent, everything else to the layers above (RFC 7983). A
    // mutated datagram always goes to the agent.
    let first = bytes.first ?? 0
    if first < 4 || (0x40...0x4f).contains(first) || network.mutates {
      step(index, .datagram(local: local, remote: remote, bytes: bytes))
    } else {
      parties[index].receive(bytes)
    }
  }

  /// Carries out an agent's output, such as a system request, a datagram or a candidate to signal.
  private func handle(_ output: ICEAgent.Output, _ index: Int) {
    switch output {
    case .request(let request): perform(request, of: index)
    case .datagram(let local, let remote, let bytes):
      if parties[index].dropsResponses, bytes.first == 1 { return }
      if parties[index].refuses(remote) {
        schedule(after: .zero, .input(index, .sendFailed(local: local, remote: remote)))
      } else {
        transmit(bytes, from: local, to: remote, of: index)
      }
    case .localCandidate(let candidate):
      guard parties.count == 2, parties[index].signals else { return }
      let input = candidate.map { ICEAgent.Input.remoteCandidate($0) } ?? .remoteEndOfCandidates
      schedule(after: parties[index].signalingDelay, .input(1 - index, input))
    default: break
    }
  }

  private func perform(_ request: SystemRequest, of index: Int) {
    switch request {
    case .bindSocket(let id, let ip):
      let address = parties[index].newSocket(ip)
      network.bind(address, of: index)
      answer(index, .socketBound(id: id, address))
    case .listen(let id, let ip):
      let address = parties[index].newSocket(ip)
      streams.listen(at: address, of: index)
      answer(index, .socketBound(id: id, address))
    case .openStream(let id, let target) where target.kind == .peer:
      streams.connect(
        id: id, from: parties[index].newEnd(target.local), to: target.remote, of: index, at: now)
    case .openStream(let id, let target):
      // TCP connections to servers are modelled as datagrams, so the link must be lossless.
      let address = parties[index].newEnd(target.local)
      if !streams.refuses { network.bind(address, of: index) }
      answer(
        index, after: link.delay * 2,
        streams.refuses ? .socketFailed(id: id, code: 111) : .socketBound(id: id, address))
    case .closeSocket(let address):
      network.close(address)
      streams.stopListening(at: address)
    case .closeStream(let local, let remote):
      network.close(local)
      streams.close(local, remote, at: now)
    case .publishName(let name, let ip): names[name] = ip
    case .resolveName(let id, let name):
      answer(index, .nameResolved(id: id, names[name].map { [$0] } ?? []))
    }
  }
}

extension VirtualMeeting {
  package var agents: [ICEAgent] { parties.map(\.agent) }
  /// The time at which each agent was first connected; nil for an agent that never was.
  package var connectedAt: [Instant?] { parties.map(\.connectedAt) }
  /// Whether every agent has had a path.
  package var isConnected: Bool { parties.allSatisfy { $0.connectedAt != nil } }
  /// Data that arrived on relayed or direct paths, per agent.
  package var received: [[[UInt8]]] { parties.map(\.received) }
  /// The error codes of failures at servers, per agent.
  package var serverFailures: [[UInt16]] { parties.map(\.serverFailures) }
  /// The states of each agent's connection, in order.
  package var states: [[ICEConnectionState]] { parties.map { $0.states.map(\.state) } }
  /// The candidates that each agent signaled.
  package var candidates: [[ICECandidate]] { parties.map(\.candidates) }
}

// MARK: - MeetingParty

/// An ICE agent of a virtual meeting, and its outputs so far.
package struct MeetingParty {
  package private(set) var agent: ICEAgent
  package var addresses: [IPAddress]
  /// The delay of signaling from this side.
  package var signalingDelay = Interval.milliseconds(20)
  /// Whether the agent's candidates are signaled.
  package var signals = true
  /// Whether the system refuses to send to an address.
  package var refuses: (SocketAddress) -> Bool = { _ in false }
  /// Whether the agent's responses are lost.
  package var dropsResponses = false
  package var keepsTrace = false

  package private(set) var states: [(at: Instant, state: ICEConnectionState)] = []
  package private(set) var selections: [Selection] = []
  package private(set) var candidates: [ICECandidate] = []
  package private(set) var remoteCandidates: [ICECandidate] = []
  package private(set) var gatheringStates: [ICEGatheringState] = []
  package private(set) var roles: [ICERole] = []
  /// The open sockets, and the sockets that were closed.
  package private(set) var sockets: [SocketAddress] = []
  package private(set) var closed: [SocketAddress] = []
  package private(set) var sent: [(at: Instant, remote: SocketAddress, bytes: [UInt8])] = []
  /// The data for the layers above that arrived on relayed or direct paths.
  package private(set) var received: [[UInt8]] = []
  /// The error codes of failures at STUN and TURN servers, in the order reported.
  package private(set) var serverFailures: [UInt16] = []
  /// The time at which the agent was first connected; nil if it never was.
  package private(set) var connectedAt: Instant?
  /// Every output as text, for comparing runs.
  package private(set) var trace: [String] = []

  private var nextPort: UInt16

  /// A selected pair, and when the agent reported it.
  package struct Selection: Hashable, Sendable {
    package let at: Instant
    package let local: SocketAddress
    package let remote: SocketAddress
  }

  init(_ agent: ICEAgent, addresses: [IPAddress], firstPort: UInt16) {
    self.agent = agent
    self.addresses = addresses
    nextPort = firstPort
  }

  package var isConnected: Bool {
    agent.connectionState == .connected || agent.connectionState == .completed
  }

  /// Returns when a state was first reached; nil if it was not.
  package func time(of state: ICEConnectionState) -> Instant? {
    states.first { $0.state == state }?.at
  }

  /// Steps the agent; records and returns its outputs.
  mutating func step(_ input: ICEAgent.Input, at now: Instant) -> [ICEAgent.Output] {
    var outbox = Outbox<ICEAgent.Output>()
    agent.step(input, at: now, into: &outbox)
    let outputs = outbox.drain()
    for output in outputs { record(output, at: now) }
    return outputs
  }

  /// Records data for the layers above.
  mutating func receive(_ bytes: [UInt8]) { received.append(bytes) }

  mutating func newEnd(_ ip: IPAddress) -> SocketAddress {
    defer { nextPort += 1 }
    return SocketAddress(ip, port: nextPort)
  }

  mutating func newSocket(_ ip: IPAddress) -> SocketAddress {
    let address = newEnd(ip)
    sockets.append(address)
    return address
  }

  private mutating func record(_ output: ICEAgent.Output, at now: Instant) {
    if keepsTrace { trace.append("\(now.nanoseconds) \(output)") }
    switch output {
    case .request(.closeSocket(let address)):
      sockets.removeAll { $0 == address }
      closed.append(address)
    case .datagram(_, let remote, let bytes): sent.append((now, remote, bytes))
    case .gatheringState(let state): gatheringStates.append(state)
    case .connectionState(let state):
      states.append((now, state))
      if connectedAt == nil, isConnected(state) { connectedAt = now }
    case .localCandidate(let candidate): if let candidate { candidates.append(candidate) }
    case .remoteCandidate(let candidate): remoteCandidates.append(candidate)
    case .selected(let local, let remote):
      selections.append(Selection(at: now, local: local, remote: remote))
    case .role(let role): roles.append(role)
    case .relayed(_, _, let bytes): received.append(bytes)
    case .serverFailed(_, let code, _): serverFailures.append(code)
    case .request, .pair, .unsignaledCandidate, .candidatesRemoved, .gatheringFailed: break
    }
  }

  private func isConnected(_ state: ICEConnectionState) -> Bool {
    state == .connected || state == .completed
  }
}

/// An agent of a virtual meeting, for stepping and inspecting it.
@dynamicMemberLookup
package struct MeetingEnd {
  private let meeting: VirtualMeeting
  package let index: Int

  init(meeting: VirtualMeeting, index: Int) {
    self.meeting = meeting
    self.index = index
  }

  package var agent: ICEAgent { meeting.parties[index].agent }
  package var isConnected: Bool { meeting.parties[index].isConnected }

  /// The other agent; nil unless the meeting has exactly two.
  package var peer: MeetingEnd? {
    meeting.parties.count == 2 ? MeetingEnd(meeting: meeting, index: 1 - index) : nil
  }

  package subscript<Value>(dynamicMember path: KeyPath<MeetingParty, Value>) -> Value {
    meeting.parties[index][keyPath: path]
  }

  package subscript<Value>(dynamicMember path: WritableKeyPath<MeetingParty, Value>) -> Value {
    get { meeting.parties[index][keyPath: path] }
    nonmutating set { meeting.edit(index) { $0[keyPath: path] = newValue } }
  }

  /// Returns when a state was first reached; nil if it was not.
  package func time(of state: ICEConnectionState) -> Instant? {
    meeting.parties[index].time(of: state)
  }

  package func step(_ input: ICEAgent.Input) { meeting.step(index, input) }

  /// Passes the remote credentials to this side, as a description would.
  package func learnPeer(lite: Bool = false) { meeting.passCredentials(to: index, lite: lite) }

  /// Gathers on the addresses of the agent's host.
  package func gather() { step(.gather(meeting.parties[index].addresses)) }

  /// Adds an address to the agent's host and gathers again.
  package func addAddress(_ ip: IPAddress) {
    meeting.edit(index) { $0.addresses.append(ip) }
    gather()
  }
}

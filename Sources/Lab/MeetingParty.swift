package import ICE
package import Wire

/// An ICE agent of a virtual meeting, and its outputs so far.
package struct MeetingParty {
  package private(set) var agent: ICEAgent
  package var addresses: [IPAddress]
  /// The signaling delay from this side.
  package var signalingDelay = Interval.milliseconds(20)
  /// Whether its candidates are signaled at all.
  package var signals = true
  /// Whether the system refuses to send to an address.
  package var refuses: (SocketAddress) -> Bool = { _ in false }
  /// Whether its responses are lost.
  package var dropsResponses = false
  /// Whether `trace` is recorded.
  package var keepsTrace = false

  package private(set) var states: [(at: Instant, state: ICEConnectionState)] = []
  package private(set) var selections: [Selection] = []
  package private(set) var candidates: [ICECandidate] = []
  package private(set) var remoteCandidates: [ICECandidate] = []
  package private(set) var gatheringStates: [ICEGatheringState] = []
  package private(set) var roles: [ICERole] = []
  /// Open sockets, and closed ones.
  package private(set) var sockets: [SocketAddress] = []
  package private(set) var closed: [SocketAddress] = []
  package private(set) var sent: [(at: Instant, remote: SocketAddress, bytes: [UInt8])] = []
  /// Data for the layers above, on relayed or direct paths.
  package private(set) var received: [[UInt8]] = []
  /// Errors from servers.
  package private(set) var serverFailures: [UInt16] = []
  /// When it was first connected.
  package private(set) var connectedAt: Instant?
  /// Every output as text, for comparing runs.
  package private(set) var trace: [String] = []

  private var nextPort: UInt16

  /// A path that was selected.
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

  /// When a state was first reached.
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

/// One agent of a virtual meeting, to step and to inspect it.
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

  /// The other agent.
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

  /// When a state was first reached.
  package func time(of state: ICEConnectionState) -> Instant? {
    meeting.parties[index].time(of: state)
  }

  package func step(_ input: ICEAgent.Input) { meeting.step(index, input) }

  /// Passes the peer's credentials to this side, as a description would.
  package func learnPeer(lite: Bool = false) { meeting.passCredentials(to: index, lite: lite) }

  /// Gathers on the addresses of its host.
  package func gather() { step(.gather(meeting.parties[index].addresses)) }

  /// Gathers on one more address.
  package func addAddress(_ ip: IPAddress) {
    meeting.edit(index) { $0.addresses.append(ip) }
    gather()
  }
}

import STUN
import Wire

@testable import ICE

/// A host with an agent, possibly behind a NAT.
final class Node {
  /// Held strongly: nodes outlive their network in many tests, and a cycle is harmless here.
  private let network: VirtualNetwork
  var agent: ICEAgent
  private(set) var addresses: [IPAddress]
  /// The public address of a NAT with endpoint-independent mapping and port-restricted filtering.
  let nat: IPAddress?
  /// Where candidates are signaled to.
  weak var peer: Node?
  /// How long signaling takes.
  var signalingDelay = Interval.milliseconds(1)
  /// Whether candidates are signaled at all.
  var signals = true
  /// What names resolve to.
  var names: [String: [IPAddress]] = [:]
  /// Whether the system refuses to send to an address.
  var refuses: (SocketAddress) -> Bool = { _ in false }

  /// Whether responses get lost on their way out.
  var dropsResponses = false

  private(set) var states: [(at: Instant, state: ICEConnectionState)] = []
  private(set) var selections: [(at: Instant, local: SocketAddress, remote: SocketAddress)] = []
  private(set) var candidates: [ICECandidate] = []
  private(set) var remoteCandidates: [ICECandidate] = []
  private(set) var gatheringStates: [ICEGatheringState] = []
  private(set) var roles: [ICERole] = []
  private(set) var reports: [ICEPairReport] = []
  private(set) var closed: [SocketAddress] = []
  private(set) var sent: [(at: Instant, remote: SocketAddress, bytes: [UInt8])] = []
  private(set) var sockets: [SocketAddress] = []
  /// Every output as text, for comparing runs.
  private(set) var trace: [String] = []
  var keepsTrace = false

  private var nextPort: UInt16
  private var mappings: [(inside: SocketAddress, outside: SocketAddress)] = []
  private var permissions: [(outside: SocketAddress, remote: SocketAddress)] = []

  init(
    network: VirtualNetwork, agent: ICEAgent, addresses: [IPAddress], nat: IPAddress?,
    basePort: UInt16
  ) {
    self.network = network
    self.agent = agent
    self.addresses = addresses
    self.nat = nat
    nextPort = basePort
  }

  var isConnected: Bool {
    agent.connectionState == .connected || agent.connectionState == .completed
  }

  /// The time at which a state was first reached.
  func time(of state: ICEConnectionState) -> Instant? {
    states.first { $0.state == state }?.at
  }

  func step(_ input: ICEAgent.Input) {
    var outbox = Outbox<ICEAgent.Output>()
    agent.step(input, at: network.now, into: &outbox)
    for output in outbox.take() { take(output) }
  }

  /// Tells this side of the peer's credentials, as a description would.
  func learnPeer(lite: Bool = false) {
    guard let peer else { return }
    step(.remoteCredentials(peer.agent.localCredentials, lite: lite))
  }

  /// Gathers on one more address.
  func addAddress(_ ip: IPAddress) {
    addresses.append(ip)
    step(.gather(addresses))
  }

  func mapOutwards(_ source: SocketAddress, to target: SocketAddress) -> SocketAddress? {
    guard let nat else { return nil }
    let outside: SocketAddress
    if let known = mappings.first(where: { $0.inside == source }) {
      outside = known.outside
    } else {
      outside = SocketAddress(nat, port: source.port &+ 30_000)
      mappings.append((source, outside))
    }
    if !permissions.contains(where: { $0.outside == outside && $0.remote == target }) {
      permissions.append((outside, target))
    }
    return outside
  }

  func receiver(of target: SocketAddress, from source: SocketAddress) -> SocketAddress? {
    guard nat != nil else { return sockets.contains(target) ? target : nil }
    guard permissions.contains(where: { $0.outside == target && $0.remote == source }) else {
      return nil
    }
    return mappings.first { $0.outside == target }?.inside
  }

  private func take(_ output: ICEAgent.Output) {
    if keepsTrace { trace.append("\(network.now.nanoseconds) \(output)") }
    switch output {
    case .request(.bindSocket(let id, let ip)):
      let address = SocketAddress(ip, port: nextPort)
      nextPort += 1
      sockets.append(address)
      network.schedule(
        after: .microseconds(50), .input(self, .answer(.socketBound(id: id, address))))
    case .request(.closeSocket(let address)):
      sockets.removeAll { $0 == address }
      closed.append(address)
    case .request(.resolveName(let id, let name)):
      network.schedule(
        after: .milliseconds(20), .input(self, .answer(.nameResolved(id: id, names[name] ?? []))))
    case .datagram(let local, let remote, let bytes):
      sent.append((network.now, remote, bytes))
      if dropsResponses, bytes[0] == 1 { return }
      if refuses(remote) {
        network.schedule(after: .zero, .input(self, .sendFailed(local: local, remote: remote)))
      } else {
        network.send(from: self, local, to: remote, bytes)
      }
    case .gatheringState(let state): gatheringStates.append(state)
    case .connectionState(let state): states.append((network.now, state))
    case .localCandidate(let candidate):
      if let candidate { candidates.append(candidate) }
      guard let peer, signals else { return }
      let input: ICEAgent.Input = candidate.map { .remoteCandidate($0) } ?? .remoteEndOfCandidates
      network.schedule(after: signalingDelay, .input(peer, input))
    case .remoteCandidate(let candidate): remoteCandidates.append(candidate)
    case .pair(let report): reports.append(report)
    case .selected(let local, let remote): selections.append((network.now, local, remote))
    case .role(let role): roles.append(role)
    case .relayed, .serverFailed, .request, .unsignaledCandidate, .candidatesRemoved,
      .gatheringFailed:
      break
    }
  }
}

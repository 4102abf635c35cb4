import STUN
import Testing
import Wire

@testable import ICE

/// Agents, links with loss and delay, NATs and STUN servers in virtual time.
///
/// Everything is drawn from a seed, so that a run can be repeated exactly.
final class VirtualNetwork {
  enum Action {
    case arrive(Node, local: SocketAddress, remote: SocketAddress, [UInt8])
    case input(Node, ICEAgent.Input)
    case run(() -> Void)
  }

  private struct Event {
    let at: Instant
    let action: Action
  }

  private(set) var now = Instant.zero
  /// Lost datagrams per thousand.
  var lossPerMille: UInt64 = 0
  var delayMinimum = Interval.microseconds(200)
  var delaySpread = Interval.microseconds(100)
  /// What a path adds to the delay.
  var extraDelay: (_ from: SocketAddress, _ to: SocketAddress) -> Interval = { _, _ in .zero }
  /// Whether a datagram may pass; judged by its addresses on the public side.
  var passes: (_ from: SocketAddress, _ to: SocketAddress) -> Bool = { _, _ in true }
  /// Whether every third datagram is changed on its way.
  var mutates = false
  /// Addresses that answer Binding requests of anyone.
  var servers: [SocketAddress] = []
  /// What sits on the wire as a peer without an agent: gets a datagram, may answer.
  var responders: [SocketAddress: (_ from: SocketAddress, _ bytes: [UInt8]) -> [UInt8]?] = [:]
  private(set) var nodes: [Node] = []
  private(set) var datagramCount = 0

  let entropy: EntropyStream
  private let seed: UInt8
  private let seedHigh: UInt8
  /// Kept in the order of time, later ones in front, so that the next is taken from the end.
  private var events: [Event] = []

  init(seed: Int) {
    self.seed = UInt8(truncatingIfNeeded: seed)
    seedHigh = UInt8(truncatingIfNeeded: seed >> 8)
    entropy = Entropy(seed: [self.seed, seedHigh, 1]).stream("net")
  }

  func addNode(
    _ addresses: [String], servers: [ICEServer] = [], nat: String? = nil
  ) -> Node {
    let source = Entropy(seed: [seed, seedHigh, 2, UInt8(nodes.count)]).stream("ice")
    let node = Node(
      network: self, agent: ICEAgent(ICESettings(servers: servers), entropy: source),
      addresses: addresses.compactMap { IPAddress($0) }, nat: nat.flatMap { IPAddress($0) },
      basePort: UInt16(10_000 + 1000 * nodes.count))
    nodes.append(node)
    return node
  }

  func schedule(after interval: Interval, _ action: Action) {
    let event = Event(at: now + interval, action: action)
    let place = events.lastIndex { $0.at > event.at }.map { $0 + 1 } ?? 0
    events.insert(event, at: place)
  }

  func after(_ interval: Interval, _ body: @escaping () -> Void) {
    schedule(after: interval, .run(body))
  }

  /// Sends a datagram into the network from an address as its sender sees it.
  func send(from node: Node?, _ source: SocketAddress, to target: SocketAddress, _ bytes: [UInt8]) {
    datagramCount += 1
    var visible = source
    if let node, let mapped = node.mapOutwards(source, to: target) { visible = mapped }
    guard passes(visible, target) else { return }
    if lossPerMille > 0, entropy.integer(below: 1000) < lossPerMille { return }
    let bytes = mutates && entropy.integer(below: 3) == 0 ? mutated(bytes) : bytes
    let spread = UInt64(delaySpread.nanoseconds)
    let random = Interval(nanoseconds: Int64(entropy.integer(below: max(spread, 1))))
    let delay = delayMinimum + random + extraDelay(visible, target)
    after(delay) { [weak self] in self?.deliver(visible, target, bytes) }
  }

  private func mutated(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    let place = Int(entropy.integer(below: UInt64(bytes.count)))
    switch entropy.integer(below: 3) {
    case 0: bytes[place] ^= 1 << (entropy.byte() & 7)
    case 1: bytes.removeSubrange(place...)
    default: bytes.insert(entropy.byte(), at: place)
    }
    return bytes
  }

  private func deliver(_ source: SocketAddress, _ target: SocketAddress, _ bytes: [UInt8]) {
    if servers.contains(target) {
      guard let request = try? STUNMessage(bytes), request.messageClass == .request else { return }
      var writer = STUNWriter(.success, transactionID: request.transactionID)
      writer.xorMappedAddress(source)
      send(from: nil, target, to: source, writer.finish())
      return
    }
    if let responder = responders[target] {
      if let answer = responder(source, bytes) { send(from: nil, target, to: source, answer) }
      return
    }
    for node in nodes {
      if let local = node.receiver(of: target, from: source) {
        node.step(.datagram(local: local, remote: source, bytes: bytes))
        return
      }
    }
  }

  /// Lets time pass until a condition holds; false when it does not in time.
  @discardableResult
  func run(for limit: Interval, until isDone: () -> Bool = { false }) -> Bool {
    let end = now + limit
    var repeats = 0
    while !isDone() {
      var next = events.last?.at
      for node in nodes { next = earliest(next, node.agent.deadline) }
      guard let next, next <= end else {
        now = end
        return isDone()
      }
      repeats = next > now ? 0 : repeats + 1
      if repeats > 10_000 {
        Issue.record("time stands still at \(now)")
        return false
      }
      now = max(now, next)
      if let event = events.last, event.at <= now {
        events.removeLast()
        perform(event.action)
      }
      for node in nodes {
        if let deadline = node.agent.deadline, deadline <= now { node.step(.deadline) }
      }
    }
    return true
  }

  private func perform(_ action: Action) {
    switch action {
    case .arrive(let node, let local, let remote, let bytes):
      node.step(.datagram(local: local, remote: remote, bytes: bytes))
    case .input(let node, let input): node.step(input)
    case .run(let body): body()
    }
  }
}

extension VirtualNetwork {
  /// Two nodes that know of each other; gathering and checks have not begun.
  func addPair(_ left: [String], _ right: [String]) -> (Node, Node) {
    let (a, b) = (addNode(left), addNode(right))
    introduce(a, b)
    return (a, b)
  }

  func introduce(_ a: Node, _ b: Node) {
    a.peer = b
    b.peer = a
    a.step(.role(.controlling))
    b.step(.role(.controlled))
  }

  /// Begins on both sides: the credentials are there at once, candidates are trickled.
  func start(_ a: Node, _ b: Node) {
    a.learnPeer()
    b.learnPeer()
    a.step(.gather(a.addresses))
    b.step(.gather(b.addresses))
  }

  /// Two connected nodes on a good network.
  static func connected(
    seed: Int = 1, _ left: [String] = ["192.0.2.1"], _ right: [String] = ["192.0.2.2"]
  ) -> (VirtualNetwork, Node, Node) {
    let network = VirtualNetwork(seed: seed)
    let (a, b) = network.addPair(left, right)
    network.start(a, b)
    network.run(for: .seconds(2))
    return (network, a, b)
  }
}

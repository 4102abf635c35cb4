package import ICE
package import Wire

/// Two ICE agents on a virtual internet that trickle their candidates to each other.
package final class VirtualMeeting {
  package private(set) var now = Instant.zero
  package var internet: VirtualInternet
  package var streams: VirtualStreams
  /// The agents; the first one is controlling.
  package private(set) var agents: [ICEAgent] = []
  /// When each agent was connected first.
  package private(set) var connectedAt: [Instant?] = []
  /// Data that arrived on relayed or direct paths, per agent.
  package private(set) var received: [[[UInt8]]] = []
  /// What servers refused, per agent.
  package private(set) var serverFailures: [[UInt16]] = []
  /// The names that agents made known to their link.
  package private(set) var names: [String: IPAddress] = [:]
  /// The states of each agent's connection, in order.
  package private(set) var states: [[ICEConnectionState]] = []
  /// The candidates that each agent signaled.
  package private(set) var candidates: [[ICECandidate]] = []
  /// How long a signaling message takes.
  package var signalingDelay = Interval.milliseconds(20)

  private let entropy: Entropy
  private var addresses: [[IPAddress]] = []
  private var hosts: [Int] = []
  private var events: [(at: Instant, index: Int, input: ICEAgent.Input)] = []
  private var nextPort: UInt16 = 20_000

  package init(seed: UInt64) {
    entropy = Entropy(seed: (0..<8).map { UInt8(truncatingIfNeeded: seed >> (8 * $0)) })
    internet = VirtualInternet(entropy: entropy.stream("internet"))
    streams = VirtualStreams(entropy: entropy.stream("streams"))
  }

  /// Adds an agent on a host of its own.
  package func add(
    _ hostAddresses: [IPAddress], nat: VirtualNAT? = nil, settings: ICESettings = ICESettings()
  ) {
    hosts.append(internet.addHost(hostAddresses, nat: nat))
    addresses.append(hostAddresses)
    let source = entropy.stream(agents.isEmpty ? "first" : "second")
    agents.append(ICEAgent(settings, entropy: source))
    connectedAt.append(nil)
    states.append([])
    candidates.append([])
    received.append([])
    serverFailures.append([])
  }

  /// Changes the addresses of an agent's host, and tells the agent.
  package func change(_ index: Int, to hostAddresses: [IPAddress]) {
    addresses[index] = hostAddresses
    internet.move(hosts[index], to: hostAddresses)
    step(index, .interfaces(hostAddresses))
  }

  /// Begins on both sides: credentials are known at once, candidates follow.
  package func begin() {
    step(0, .role(.controlling))
    step(1, .role(.controlled))
    step(0, .remoteCredentials(agents[1].localCredentials, lite: false))
    step(1, .remoteCredentials(agents[0].localCredentials, lite: false))
    for index in 0..<2 { step(index, .gather(addresses[index])) }
  }

  /// Restarts ICE on both sides, as a new offer and answer do.
  package func restart() {
    for index in 0..<2 {
      step(index, .restart(ICECredentials(from: entropy.stream("restart"))))
    }
    for index in 0..<2 {
      step(index, .remoteCredentials(agents[1 - index].localCredentials, lite: false))
      step(index, .gather(addresses[index]))
    }
  }

  /// Whether both agents have a path.
  package var isConnected: Bool { connectedAt.allSatisfy { $0 != nil } }

  /// Sends data on the path in use, as the layers above an agent do.
  package func send(_ bytes: [UInt8], from index: Int) {
    guard let pair = agents[index].selectedPair, let target = pair.remote.address else { return }
    if agents[index].isRelayed(pair.base) {
      step(index, .relay(local: pair.base, remote: target, bytes: bytes))
    } else {
      transmit(bytes, from: pair.base, to: target, of: index)
    }
  }

  private func transmit(
    _ bytes: [UInt8], from local: SocketAddress, to remote: SocketAddress, of index: Int
  ) {
    if streams.send(bytes, from: local, to: remote, at: now) { return }
    internet.send(bytes, from: local, to: remote, of: hosts[index], at: now)
  }

  /// Lets time pass until a condition holds; false when it does not in time.
  @discardableResult
  package func run(for limit: Interval, until isDone: (VirtualMeeting) -> Bool = { _ in false })
    -> Bool
  {
    let end = now + limit
    var standing = 0
    while !isDone(self) {
      var next = earliest(
        earliest(internet.nextArrival, streams.nextArrival), events.first?.at)
      for agent in agents { next = earliest(next, agent.deadline) }
      guard let next, next <= end else {
        now = end
        return isDone(self)
      }
      // A machine whose deadline stays in the past would keep its test from ever ending.
      standing = next > now ? 0 : standing + 1
      guard standing < 10_000 else { return false }
      now = max(now, next)
      runOnce()
    }
    return true
  }

  package func step(_ index: Int, _ input: ICEAgent.Input) {
    var outbox = Outbox<ICEAgent.Output>()
    agents[index].step(input, at: now, into: &outbox)
    for output in outbox.take() { take(output, index) }
  }

  private func schedule(after interval: Interval, _ index: Int, _ input: ICEAgent.Input) {
    let at = now + interval
    let place = events.firstIndex { $0.at > at } ?? events.count
    events.insert((at, index, input), at: place)
  }

  private func runOnce() {
    if let arrival = internet.next(until: now), let index = hosts.firstIndex(of: arrival.host) {
      arrive(arrival.bytes, arrival.local, arrival.remote, index)
    }
    if let delivery = streams.next(until: now) { take(delivery) }
    while let first = events.first, first.at <= now {
      events.removeFirst()
      step(first.index, first.input)
    }
    for index in agents.indices {
      if let due = agents[index].deadline, due <= now { step(index, .deadline) }
    }
  }

  private func take(_ delivery: VirtualStreams.Delivery) {
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
    // STUN and channel data are the agent's, all else belongs to the layers above (RFC 7983).
    let first = bytes.first ?? 0
    if first < 4 || (0x40...0x4f).contains(first) {
      step(index, .datagram(local: local, remote: remote, bytes: bytes))
    } else {
      received[index].append(bytes)
    }
  }

  private func newEnd(_ ip: IPAddress) -> SocketAddress {
    defer { nextPort += 1 }
    return SocketAddress(ip, port: nextPort)
  }

  private func take(_ output: ICEAgent.Output, _ index: Int) {
    switch output {
    case .request(.bindSocket(let id, let ip)):
      schedule(after: .zero, index, .answer(.socketBound(id: id, newEnd(ip))))
    case .request(.listen(let id, let ip)):
      let address = newEnd(ip)
      streams.listen(at: address, of: index)
      schedule(after: .zero, index, .answer(.socketBound(id: id, address)))
    case .request(.openStream(let id, let target)) where target.kind == .peer:
      streams.connect(id: id, from: newEnd(target.local), to: target.remote, of: index, at: now)
    case .request(.openStream(let id, let target)):
      // Connections carry messages over the same paths, which must not lose any then.
      schedule(
        after: internet.delay * 2, index,
        streams.refuses
          ? .answer(.socketFailed(id: id, code: 111))
          : .answer(.socketBound(id: id, newEnd(target.local))))
    case .request(.closeSocket(let address)): streams.stopListening(at: address)
    case .request(.closeStream(let local, let remote)): streams.close(local, remote, at: now)
    case .request(.publishName(let name, let ip)): names[name] = ip
    case .request(.resolveName(let id, let name)):
      schedule(after: .zero, index, .answer(.nameResolved(id: id, names[name].map { [$0] } ?? [])))
    case .datagram(let local, let remote, let bytes):
      transmit(bytes, from: local, to: remote, of: index)
    case .relayed(_, _, let bytes): received[index].append(bytes)
    case .serverFailed(_, let code, _): serverFailures[index].append(code)
    case .localCandidate(let candidate):
      if let candidate { candidates[index].append(candidate) }
      guard agents.count == 2 else { return }
      let input = candidate.map { ICEAgent.Input.remoteCandidate($0) } ?? .remoteEndOfCandidates
      schedule(after: signalingDelay, 1 - index, input)
    case .connectionState(let state):
      states[index].append(state)
      if state == .connected || state == .completed {
        connectedAt[index] = connectedAt[index] ?? now
      }
    default: break
    }
  }
}

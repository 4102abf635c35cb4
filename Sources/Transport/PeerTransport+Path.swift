import ICE
import Wire

// The path that ICE finds.
extension PeerTransport {
  mutating func drive(_ input: ICEAgent.Input) {
    let isOutermost = agentOutputs.isEmpty
    agent.step(input, at: now, into: &agentOutputs)
    guard isOutermost else { return }
    while let output = agentOutputs.next() { handle(output) }
  }

  private mutating func handle(_ output: ICEAgent.Output) {
    switch output {
    case .bindSocket(let id, let address): emit(.bindSocket(id: id, address))
    case .listen(let id, let address): emit(.listen(id: id, address))
    case .openStream(let id, let local, let remote, let server):
      emit(.openStream(id: id, StreamTarget(from: local, to: remote, server: server)))
    case .closeSocket(let address): emit(.closeSocket(address))
    case .closeStream(let local, let remote): emit(.closeStream(local: local, remote: remote))
    case .resolveName(let id, let name): emit(.resolveName(id: id, name))
    case .publishName(let name, let address): emit(.publishName(name, address))
    case .datagram(let local, let remote, let bytes):
      emit(.datagram(Datagram(local: local, remote: remote, bytes: bytes)))
    case .relayed(let local, let remote, let bytes):
      receive(Datagram(local: local, remote: remote, bytes: bytes), arrival: arrival)
    case .serverFailed(let server, let code, let reason):
      emit(.refused(layer: "turn", "\(server): \(code == 0 ? reason : "\(code) \(reason)")"))
    case .candidatesRemoved(let candidates): emit(.candidatesRemoved(candidates))
    case .gatheringFailed(let failure): emit(.gatheringFailed(failure))
    case .gatheringState(let state): emit(.gatheringState(state))
    case .connectionState(let state): emit(.iceState(state))
    case .localCandidate(let candidate): keep(candidate)
    case .unsignaledCandidate(let candidate): emit(.unsignaledCandidate(candidate))
    case .remoteCandidate(let candidate): emit(.remoteCandidate(candidate))
    case .pair(let pair):
      if let remote = pair.remote.address { traffic.begin(pair.id, pair.base, remote) }
      emit(.pair(pair))
    case .selected(let local, let remote): select(local, remote)
    case .role: break
    }
  }

  /// Keeps a candidate for descriptions and hands it to the application's signaling.
  private mutating func keep(_ candidate: ICECandidate?) {
    if let candidate {
      candidates.append(candidate.description)
      // The protocol of media sections is UDP.
      if defaultAddress == nil, !candidate.isTCP { defaultAddress = candidate.address }
    } else {
      gatheringIsComplete = true
    }
    emit(.localCandidate(candidate))
  }

  private mutating func select(_ local: SocketAddress, _ remote: SocketAddress) {
    path = (local, remote)
    pathIsOld = false
    pathIsRelayed = agent.isRelayed(local)
    counters.selectedPairChanges += 1
    startDTLSIfReady()
    let waiting = waitingForPath
    waitingForPath = []
    for bytes in waiting { send(bytes) }
  }

  mutating func learn(_ addresses: [IPAddress]) {
    interfaces = addresses
    if wantsGathering {
      gather()
    } else if agent.gatheringState != .new {
      drive(ICEAgent.Input.interfaces(addresses))
    }
  }

  /// Begins gathering once a local description is set and the interfaces are known.
  mutating func gather() {
    guard let interfaces else {
      wantsGathering = true
      return
    }
    guard !gatheringIsComplete, agent.gatheringState == .new || wantsGathering else { return }
    wantsGathering = false
    drive(.gather(interfaces))
  }
}

extension StreamTarget {
  fileprivate init(from local: IPAddress, to remote: SocketAddress, server: ICEServer?) {
    let kind: Kind =
      switch server?.transport {
      case nil: .peer
      case .tls: .secureServer
      case .tcp, .udp: .server
      }
    self.init(
      local: local, remote: remote, kind: kind, name: server?.host.description ?? "")
  }
}

import Testing
import Wire

@testable import ICE

/// Feeds an agent random inputs, including answers to its own datagrams.
struct InputFuzzer {
  var agent: ICEAgent
  private let right: ICECredentials
  private let entropy: EntropyStream
  var now = Instant.zero
  private var bound: [(id: UInt32, address: SocketAddress)] = []
  private var names: [UInt32] = []
  private var wire: [(local: SocketAddress, remote: SocketAddress, bytes: [UInt8])] = []

  init(entropy: EntropyStream) {
    self.entropy = entropy
    let seed = entropy.bytes(16)
    agent = ICEAgent(
      ICESettings(
        servers: [ICEServer(host: .name("s"), port: 3478)], usesTCP: entropy.byte() & 1 == 0,
        hidesAddresses: entropy.byte() & 1 == 0),
      entropy: Entropy(seed: seed + [1]).stream("ice"))
    right = ICECredentials(from: entropy)
  }

  mutating func round() {
    now += Interval.milliseconds(Int64(entropy.integer(below: 400)))
    feed(draw())
    if let deadline = agent.deadline, deadline <= now {
      feed(.deadline)
      #expect(agent.deadline.map { $0 > now } ?? true)
    }
  }

  private func draw(_ count: Int) -> Int { Int(entropy.integer(below: UInt64(count))) }

  private func address() -> SocketAddress {
    SocketAddress(IPAddress(ipv4: 0xc000_0200 + UInt32(draw(3))), port: UInt16(5000 + draw(4)))
  }

  private mutating func draw() -> ICEAgent.Input {
    switch draw(26) {
    case 22: return .interfaces((0..<draw(3)).map { _ in address().ip })
    case 23: return .answer(.streamAccepted(local: address(), remote: address()))
    case 24:
      let type: ICETCPType = [.active, .passive, .simultaneousOpen][draw(3)]
      return .remoteCandidate(
        ICECandidate(
          foundation: "t", transport: "tcp", priority: 7, host: .address(address().ip),
          port: address().port, kind: .host, extensions: [ICECandidate.tcpType(type)]))
    case 0: return .gather((0..<draw(3)).map { _ in address().ip })
    case 1...3:
      guard !bound.isEmpty else { return .deadline }
      let item = bound.remove(at: draw(bound.count))
      return .answer(.socketBound(id: item.id, item.address))
    case 4: return .answer(.socketFailed(id: UInt32(draw(20)), code: 1))
    case 5:
      guard let id = names.popLast() else {
        return .answer(.nameResolved(id: UInt32(draw(40)), []))
      }
      return .answer(.nameResolved(id: id, [address().ip]))
    case 6: return .role(draw(2) == 0 ? .controlling : .controlled)
    case 7, 8: return .remoteCredentials(right, lite: draw(20) == 0)
    case 9, 10:
      let candidate = ICECandidate(
        foundation: "\(draw(3))", priority: UInt32(draw(1 << 31)), host: .address(address().ip),
        port: address().port, kind: .host)
      return .remoteCandidate(candidate)
    case 11:
      return .remoteCandidate(
        ICECandidate(foundation: "1", priority: 1, host: .name("n"), port: 9, kind: .host))
    case 12: return .remoteEndOfCandidates
    case 13:
      if draw(4) > 0 { return .deadline }
      return .restart(ICECredentials(from: entropy))
    case 14, 15: return .datagram(local: address(), remote: address(), bytes: request())
    case 16...18:
      guard !wire.isEmpty else { return .trafficSent }
      let item = wire.remove(at: draw(wire.count))
      return .datagram(local: item.local, remote: item.remote, bytes: response(to: item.bytes))
    case 19: return .trafficReceived(local: address(), remote: address())
    case 20: return .sendFailed(local: address(), remote: address())
    default: return .deadline
    }
  }

  private func request() -> [UInt8] {
    var writer = STUNWriter(.request, transactionID: STUNTransactionID(from: entropy))
    let (present, other) = (agent.localCredentials, right)
    writer.username("\(present.usernameFragment):\(other.usernameFragment)")
    writer.priority(entropy.integer(UInt32.self))
    if draw(2) == 0 { writer.useCandidate() }
    if draw(2) == 0 { writer.iceControlling(entropy.integer(UInt64.self)) }
    if draw(2) == 0 { writer.iceControlled(entropy.integer(UInt64.self)) }
    return writer.finish(key: Array(present.password.utf8))
  }

  private func response(to bytes: [UInt8]) -> [UInt8] {
    guard let message = try? STUNMessage(bytes) else { return bytes }
    var writer = STUNWriter(
      draw(8) == 0 ? .error : .success, transactionID: message.transactionID)
    writer.errorCode(draw(2) == 0 ? .roleConflict : .badRequest)
    writer.xorMappedAddress(address())
    return writer.finish(key: Array(right.password.utf8))
  }

  private mutating func feed(_ input: ICEAgent.Input) {
    var outbox = Outbox<ICEAgent.Output>()
    agent.step(input, at: now, into: &outbox)
    for output in outbox.drain() {
      switch output {
      case .request(.bindSocket(let id, let ip)), .request(.listen(let id, let ip)):
        bound.append((id, SocketAddress(ip, port: UInt16(5000 + draw(4)))))
      case .request(.openStream(let id, let target)):
        bound.append((id, SocketAddress(target.local, port: UInt16(5000 + draw(4)))))
      case .request(.resolveName(let id, _)): names.append(id)
      case .datagram(let local, let remote, let bytes):
        if wire.count < 50 { wire.append((local, remote, bytes)) }
      default: break
      }
    }
  }
}

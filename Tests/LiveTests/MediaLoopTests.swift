import Live
import Media
import Peer
import SDP
import Synchronization
import Testing
import Wire

/// A peer without a WebRTC stack, which runs on a real loop with real sockets.
///
/// It binds every allowed address, reports its addresses as local candidates, sends one datagram to
/// every remote candidate, and reports arriving datagrams as refusals.
final class ToyEngine: PeerEngine {
  var deadline: Instant?
  var entropyDrawn: UInt64 = 0
  private var socket: SocketAddress?
  private var due: [Instant] = []

  func recognizes(_ datagram: Datagram) -> Bool { true }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    switch input {
    case .interfaces(let addresses, _):
      for (index, ip) in addresses.enumerated() {
        outbox.append(.request(.bindSocket(id: UInt32(index), ip)))
      }
    case .answer(.socketBound(_, let address)):
      socket = address
      outbox.append(.event(.localCandidate(CandidateInit(candidate: address.description))))
    case .answer(.socketFailed(let id, let code)): tell("socket \(id) \(code)", &outbox)
    case .datagram(let datagram, let arrival):
      let age = (now - arrival).nanoseconds
      tell("\(String(decoding: datagram.bytes, as: UTF8.self)) from \(datagram.remote)", &outbox)
      tell(age >= 0 && age < 1_000_000_000 ? "fresh" : "age \(age)", &outbox)
      tell(arrival > .zero ? "stamped" : "unstamped", &outbox)
    case .call(let id, .addICECandidate(let candidate?)):
      if let remote = SocketAddress(candidate.candidate), let socket {
        let bytes = Array((candidate.sdpMid ?? "").utf8)
        outbox.append(.datagram(Datagram(local: socket, remote: remote, bytes: bytes)))
      }
      outbox.append(.reply(id: id, .done))
    case .call(let id, .removeTrack(let milliseconds)):
      due.append(now + .milliseconds(Int64(milliseconds)))
      due.sort()
      deadline = due.first
      outbox.append(.reply(id: id, .done))
    case .call(_, .restartICE): break  // Never answered.
    case .call(let id, .createOffer): outbox.append(.request(.resolveName(id: id, "localhost")))
    case .answer(.nameResolved(_, let addresses)): tell("\(addresses)", &outbox)
    case .call(let id, .close):
      if let socket { outbox.append(.request(.closeSocket(socket))) }
      outbox.append(.reply(id: id, .done))
    case .call(let id, _): outbox.append(.reply(id: id, .done))
    case .deadline:
      let late = due.removeFirst()
      deadline = due.first
      tell("deadline \(late <= now ? "reached" : "early")", &outbox)
    case .captured(let transceiver, _): tell("captured \(transceiver)", &outbox)
    case .signaling(let message): tell(message.message, &outbox)
    case .sendFailed(let failure): tell("send \(failure.code)", &outbox)
    case .send(let id, _): outbox.append(.reply(id: id, .done))
    case .genesis, .relayed, .answer(.streamAccepted): break
    }
  }

  private func tell(_ text: String, _ outbox: inout Outbox<PeerOutput>) {
    outbox.append(.event(.refused(layer: "toy", reason: text)))
  }
}

@Suite(.timeLimit(.minutes(10))) struct MediaLoopTests {
  static func session(_ bind: String) throws -> Session {
    var options = Session.Options()
    options.bind = .addresses([try #require(IPAddress(bind))])
    options.statsInterval = nil
    return try Session(options, loop: nil) { ToyEngine() }
  }

  /// Returns the next words that a toy peer reports.
  static func words(_ count: Int, of events: AsyncStream<PeerConnectionEvent>) async -> [String] {
    var words: [String] = []
    for await event in events {
      if case .refused(_, let reason) = event { words.append(reason) }
      if words.count == count { break }
    }
    return words
  }

  static func endPoint(_ peer: PeerConnection, _ events: AsyncStream<PeerConnectionEvent>) async
    -> String?
  {
    for await case .iceCandidate(let candidate?) in events { return candidate.candidate }
    return nil
  }

  @Test(arguments: ["127.0.0.1", "::1"])
  func datagramsTravelOverLoopbackWithKernelReceiveTimes(address: String) async throws {
    let session = try MediaLoopTests.session(address)
    let shared = session
    let (left, leftEvents) = shared.makeObservedPeer(label: "left")
    let (right, rightEvents) = shared.makeObservedPeer(label: "right")
    let from = try #require(await MediaLoopTests.endPoint(left, leftEvents))
    let to = try #require(await MediaLoopTests.endPoint(right, rightEvents))
    try await left.addICECandidate(CandidateInit(candidate: to, sdpMid: "hello"))
    let words = await MediaLoopTests.words(3, of: rightEvents)
    #expect(words == ["hello from \(from)", "fresh", "stamped"])
    // A burst longer than one receive batch arrives completely and in order.
    for index in 0..<100 {
      try await left.addICECandidate(CandidateInit(candidate: to, sdpMid: "\(index)"))
    }
    let burst = await MediaLoopTests.words(300, of: rightEvents)
    #expect(burst.filter { $0.contains("from") } == (0..<100).map { "\($0) from \(from)" })
    try await session.finish()
  }

  @Test func aDatagramThatTheSystemRefusesBecomesAnInput() async throws {
    let session = try MediaLoopTests.session("127.0.0.1")
    let (peer, events) = session.makeObservedPeer(label: "peer")
    _ = await MediaLoopTests.endPoint(peer, events)
    // An IPv6 destination cannot be reached from an IPv4 socket.
    try await peer.addICECandidate(CandidateInit(candidate: "[::1]:9", sdpMid: "x"))
    let words = await MediaLoopTests.words(1, of: events)
    #expect(words.first?.hasPrefix("send ") == true)
    try await session.finish()
  }

  @Test func anAddressThatIsNotOursFailsToBind() async throws {
    let session = try MediaLoopTests.session("192.0.2.77")
    let (_, events) = session.makeObservedPeer(label: "peer")
    let words = await MediaLoopTests.words(1, of: events)
    #expect(words.first?.hasPrefix("socket 0 ") == true)
    try await session.finish()
  }

  @Test func deadlinesOfManyPeersFireAndNeverEarly() async throws {
    let session = try MediaLoopTests.session("127.0.0.1")
    let order = Collector<String>()
    var peers: [PeerConnection] = []
    var streams: [AsyncStream<PeerConnectionEvent>] = []
    for (index, milliseconds) in [30, 10, 20].enumerated() {
      let (peer, events) = session.makeObservedPeer(label: "\(index)")
      try await peer.removeTrack(UInt32(milliseconds))
      try await peer.removeTrack(UInt32(milliseconds + 30))
      peers.append(peer)
      streams.append(events)
    }
    await withTaskGroup(of: Void.self) { group in
      for (index, events) in streams.enumerated() {
        group.addTask {
          for await case .refused(_, let reason) in events {
            order.append("\(index) \(reason)")
            if order.all.filter({ $0.hasPrefix("\(index)") }).count == 2 { break }
          }
        }
      }
    }
    #expect(order.all.count == 6)
    #expect(order.all.allSatisfy { $0.hasSuffix("deadline reached") })
    try await session.finish()
  }

  @Test func messagesOfOneThreadKeepTheirOrder() async throws {
    let session = try MediaLoopTests.session("127.0.0.1")
    let (peer, events) = session.makeObservedPeer(label: "peer")
    for index in 0..<500 {
      peer.recordSignaling(
        SignalingMessage(isInbound: true, transport: "", type: "", message: "\(index)"))
    }
    #expect(await MediaLoopTests.words(500, of: events) == (0..<500).map(String.init))
    try await session.finish()
  }

  @Test func namesAreResolvedOnAnotherThread() async throws {
    let addresses = try #require(IPAddress("127.0.0.1"))
    let session = try MediaLoopTests.session("127.0.0.1")
    let (peer, events) = session.makeObservedPeer(label: "peer")
    let call = Task { try? await peer.createOffer() }
    let words = await MediaLoopTests.words(1, of: events)
    #expect(words.first?.contains(addresses.description) == true)
    try await session.finish()
    _ = await call.value
  }

  @Test func callsThatWereNotAnsweredAreRefusedWhenTheSessionEnds() async throws {
    let session = try MediaLoopTests.session("127.0.0.1")
    let (peer, events) = session.makeObservedPeer(label: "peer")
    let call = Task { () -> String in
      do throws(PeerError) {
        try await peer.restartICE()
        return "done"
      } catch { return error.name }
    }
    _ = await MediaLoopTests.endPoint(peer, events)
    try await session.finish()
    #expect(await call.value == "InvalidStateError")
    // After the end, calls fail at once and media is ignored.
    await #expect(throws: PeerError.self) { try await peer.createOffer() }
    #expect(!peer.send(.init(samples: [0], channels: 1), on: 1))
    for await _ in peer.events { Issue.record("an event after the end") }
  }

  @Test func applicationMediaBeyondTheBudgetIsRefused() async throws {
    let gate = Mutex(())
    var options = Session.Options()
    options.bind = .addresses([])
    options.statsInterval = nil
    let session = try Session(options, loop: nil) {
      ScriptedEngine { _, input, _, outbox in
        if case .captured = input { gate.withLock { _ in } }
        if case .call(let id, _) = input { outbox.append(.reply(id: id, .done)) }
      }
    }
    let peer = session.makePeer(label: "busy")
    let taken = gate.withLock { _ in
      (0..<100).filter { _ in peer.send(.init(samples: [0], channels: 1), on: 1) }.count
    }
    // Work that the loop had already begun does not count against the budget.
    #expect((16...50).contains(taken))
    try await peer.restartICE()
    #expect(peer.send(.init(samples: [0], channels: 1), on: 1))
    try await session.finish()
  }

  @Test func sessionsCanShareALoop() async throws {
    let loop = try MediaLoop()
    var options = Session.Options()
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    let first = try Session(options, loop: loop) { ToyEngine() }
    let second = try Session(options, loop: loop) { ToyEngine() }
    let one = first.makePeer(label: "one")
    let two = second.makePeer(label: "two")
    try await one.setLocalDescription()
    try await first.finish()
    try await two.setLocalDescription()
    await #expect(throws: PeerError.self) { try await one.setLocalDescription() }
    try await second.finish()
    await loop.stop()
    await loop.stop()
  }

  @Test func waitingForAStateEndsAtTheTimeLimitAndWithTheConnection() async throws {
    let session = try MediaLoopTests.session("127.0.0.1")
    let peer = session.makePeer(label: "peer")
    do {
      try await peer.waitUntilConnected(timeout: .milliseconds(20))
      Issue.record("nothing connects here")
    } catch { #expect(error.name == "TimeoutError") }
    let waiting = Task { () -> String in
      do throws(PeerError) {
        try await peer.waitUntilConnected(timeout: .seconds(300))
        return ""
      } catch { return error.name }
    }
    await peer.close()
    #expect(await waiting.value == "InvalidStateError")
    try await session.finish()
  }

  @Test func aCancelledWaitThrowsACancellation() async throws {
    let session = try MediaLoopTests.session("127.0.0.1")
    let peer = session.makePeer(label: "peer")
    let waiting = Task { () -> String in
      do throws(PeerError) {
        try await peer.waitUntilConnected(timeout: .seconds(300))
        return ""
      } catch { return error.name }
    }
    waiting.cancel()
    #expect(await waiting.value == "AbortError")
    try await session.finish()
  }
}

extension Session {
  /// Creates a peer and subscribes before it can report anything.
  func makeObservedPeer(label: String) -> (PeerConnection, AsyncStream<PeerConnectionEvent>) {
    var events: AsyncStream<PeerConnectionEvent>?
    let peer = makePeer(label: label) { connection in events = connection.events }
    return (peer, events ?? peer.events)
  }
}

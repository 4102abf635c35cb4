import Lab
import Testing
import Wire

@testable import ICE

struct HostileInputTests {
  private let unknownPeer = SocketAddress(IPAddress(ipv4: 0xc000_0263), port: 7777)

  /// Makes a check for a node; `change` modifies the check before it is signed.
  private func check(
    of node: MeetingEnd, username: String? = nil, key: String? = nil,
    _ change: (inout STUNWriter) -> Void = { _ in }
  ) -> [UInt8] {
    let local = node.agent.localCredentials
    let remote = node.peer?.agent.localCredentials.usernameFragment ?? "none"
    var writer = STUNWriter(.request, transactionID: STUNTransactionID(high: 1, low: 2))
    writer.username(username ?? "\(local.usernameFragment):\(remote)")
    writer.priority(1_853_824_767)
    change(&writer)
    return writer.finish(key: Array((key ?? local.password).utf8))
  }

  private func answer(_ node: MeetingEnd, _ bytes: [UInt8]) throws -> STUNMessage? {
    let count = node.sent.count
    let local = try #require(node.sockets.first)
    node.step(.datagram(local: local, remote: unknownPeer, bytes: bytes))
    return try node.sent[count...].map { try STUNMessage($0.bytes) }
      .first { $0.messageClass != .request }
  }

  @Test func onlyProperChecksAreAccepted() throws {
    let (_, a, b) = VirtualMeeting.connected()
    let key = Array(a.agent.localCredentials.password.utf8)
    let pairs = a.agent.pairs.count

    let refused = try #require(try answer(a, check(of: a, key: "wrong")))
    #expect(refused.errorCode?.code == 401 && !refused.hasIntegrity)
    #expect(a.agent.counters.badIntegrity == 1)

    #expect(try answer(a, check(of: a, username: "other:stuff")) == nil)
    #expect(a.agent.counters.unknownUsername == 1)

    let local = a.agent.localCredentials.usernameFragment
    #expect(try answer(a, check(of: a, username: "\(local):foreign")) == nil)
    #expect(a.agent.counters.foreignFragment == 1)
    #expect(try answer(a, check(of: a, username: local)) == nil)

    var unsigned = STUNWriter(.request, transactionID: STUNTransactionID(high: 1, low: 2))
    unsigned.username("\(local):x")
    #expect(try answer(a, unsigned.finish()) == nil)
    #expect(a.agent.counters.unauthenticated == 2)

    let strange = try #require(
      try answer(a, check(of: a) { $0.attribute(STUNAttributeType(rawValue: 0x7f00), [1]) }))
    #expect(strange.errorCode?.code == 420)
    #expect(strange.unknownAttributes.map(\.rawValue) == [0x7f00])
    #expect(strange.verifiesIntegrity(key: key))

    var damaged = check(of: a)
    damaged[damaged.count - 1] ^= 1
    #expect(try answer(a, damaged) == nil)
    #expect(try answer(a, Array(damaged.prefix(33))) == nil)
    #expect(a.agent.counters.malformed == 2)

    #expect(a.agent.pairs.count == pairs)
    let good = try #require(try answer(a, check(of: a)))
    #expect(good.messageClass == .success && good.mappedAddress == unknownPeer)
    #expect(good.verifiesIntegrity(key: key))
    #expect(a.agent.pairs.count == pairs + 1)
    _ = b
  }

  @Test func responsesFromElsewhereDoNotCount() throws {
    let meeting = VirtualMeeting.nearby(seed: 1)
    let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    meeting.network.passes = { _, _ in false }
    meeting.start(a, b)
    meeting.run(for: .milliseconds(100))
    let request = try STUNMessage(try #require(a.sent.first).bytes)
    let key = Array(b.agent.localCredentials.password.utf8)
    let local = try #require(a.sockets.first)
    let remote = try #require(b.sockets.first)
    func response(_ key: [UInt8]) -> [UInt8] {
      var writer = STUNWriter(.success, transactionID: request.transactionID)
      writer.xorMappedAddress(local)
      return writer.finish(key: key)
    }
    a.step(.datagram(local: local, remote: unknownPeer, bytes: response(key)))
    #expect(a.agent.counters.asymmetricResponses == 1)
    a.step(.datagram(local: local, remote: remote, bytes: response([1])))
    #expect(a.agent.counters.badIntegrity == 1)
    #expect(!a.isConnected)
    a.step(.datagram(local: unknownPeer, remote: remote, bytes: response(key)))
    #expect(a.agent.counters.unknownSocket == 1)
    a.step(.datagram(local: local, remote: remote, bytes: response(key)))
    #expect(a.isConnected)
    a.step(.datagram(local: local, remote: remote, bytes: response(key)))
    #expect(a.agent.counters.unmatchedResponses == 1)
  }

  @Test func floodsOfCandidatesAndChecksAreLimited() throws {
    let meeting = VirtualMeeting.nearby(seed: 2)
    let (a, b) = meeting.addPair((1...8).map { "192.0.2.\($0)" }, ["198.51.100.1"])
    a.gather()
    b.step(.gather([]))
    meeting.run(for: .milliseconds(10))
    for port in 1...2_000 {
      let source = SocketAddress(IPAddress(ipv4: 0xcb00_7101), port: UInt16(port))
      let local = a.sockets[port % a.sockets.count]
      a.step(.datagram(local: local, remote: source, bytes: check(of: a)))
    }
    a.learnPeer()
    for port in 1...5_000 {
      let text = "candidate:\(port) 1 udp \(port) 198.51.100.1 \(port) typ host"
      a.step(.remoteCandidate(try ICECandidate(attribute: text)))
      let name = "candidate:\(port) 1 udp \(port) n\(port).local \(port) typ host"
      a.step(.remoteCandidate(try ICECandidate(attribute: name)))
    }
    #expect(a.agent.pairs.count == 100)
    #expect(a.remoteCandidates.count == 60)
    #expect(a.agent.counters.overflows > 5_000)
    meeting.run(for: .seconds(40))
    #expect(a.agent.connectionState == .failed)
    // Checks are still paced: one new check per 50 ms, plus retransmissions of pending ones.
    let requests = a.sent.filter { $0.bytes.starts(with: [0, 1]) }.count
    #expect(requests < 2_000)
  }

  @Test func anEvictedPairDoesNotReturn() throws {
    let meeting = VirtualMeeting.nearby(seed: 3)
    let (a, _) = meeting.addPair((1...8).map { "192.0.2.\($0)" }, ["198.51.100.1"])
    a.learnPeer()
    a.gather()
    meeting.run(for: .milliseconds(10))
    // Later candidates are better and replace the first ones.
    for port in 1...40 {
      let text = "candidate:\(port) 1 udp \(port * 1000) 198.51.100.1 \(port) typ host"
      a.step(.remoteCandidate(try ICECandidate(attribute: text)))
    }
    #expect(a.agent.pairs.count == 100)
    #expect(Set(a.agent.pairs.map(\.id)).count == 100)
    #expect(a.agent.pairs.contains { $0.remote.port == 40 })
    #expect(!a.agent.pairs.contains { $0.remote.port == 1 })
  }

  @Test func aPairFailsAfterSeveralRefusedSends() throws {
    let meeting = VirtualMeeting.nearby(seed: 4)
    let (a, b) = meeting.addPair(["192.0.2.1", "10.0.0.1"], ["192.0.2.2", "10.0.0.2"])
    meeting.network.passes = { from, to in from.ip.bytes[0] == to.ip.bytes[0] }
    a.refuses = { $0.ip.bytes[0] == 10 }
    b.refuses = { $0.ip.bytes[0] == 10 }
    meeting.start(a, b)
    meeting.run(for: .seconds(3))
    #expect(a.isConnected && b.isConnected)
    #expect(a.agent.pairs.contains { $0.state == .failed })
    #expect(a.agent.counters.sendFailures >= 3)
    // On a working pair, refusals alone change nothing.
    let pair = try #require(a.agent.selectedPair)
    let remote = try #require(pair.remote.address)
    for _ in 0..<50 { a.step(.sendFailed(local: pair.base, remote: remote)) }
    #expect(a.agent.selectedPair?.state == .succeeded)
    #expect(a.isConnected)
  }

  @Test func unusableCredentialsAreIgnored() {
    let meeting = VirtualMeeting.nearby(seed: 5)
    let (a, _) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    let long = String(repeating: "x", count: 257)
    for (fragment, password) in [("", "p"), ("u", ""), (long, "p"), ("u", long)] {
      let credentials = ICECredentials(usernameFragment: fragment, password: password)
      a.step(.remoteCredentials(credentials, lite: false))
    }
    #expect(a.agent.counters.unusable == 4)
  }

  /// Real exchanges with bytes changed in transit: nothing traps, and the call gets through.
  @Test func mutatedDatagramsDoNotStopACall() {
    for seed in 0..<25 {
      let meeting = VirtualMeeting.nearby(seed: seed)
      let (a, b) = meeting.addPair(["192.0.2.1", "10.0.0.1"], ["192.0.2.2", "10.0.0.2"])
      meeting.network.mutates = true
      meeting.start(a, b)
      #expect(
        meeting.run(for: .seconds(20)) { _ in a.isConnected && b.isConnected }, "seed \(seed)")
      meeting.run(for: .seconds(200))
      #expect(a.agent.counters.malformed > 0, "seed \(seed)")
    }
  }

  /// Inputs of all kinds in random order: nothing traps, and limits hold.
  @Test func anyOrderOfInputsIsSurvived() {
    for seed in 0..<60 {
      let entropy = Entropy(seed: [UInt8(seed), 3]).stream("fuzz")
      var fuzzer = InputFuzzer(entropy: entropy)
      for _ in 0..<600 { fuzzer.round() }
      #expect(fuzzer.agent.pairs.count <= 101)
    }
  }
}

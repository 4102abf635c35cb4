import Lab
import Testing
import Wire

@testable import ICE

struct GatheringTests {
  private func server(_ text: String) throws -> ICEServer {
    let address = try #require(SocketAddress(text))
    return ICEServer(host: .address(address.ip), port: address.port)
  }

  @Test func hostsBehindNATsConnectOverReflexiveCandidates() throws {
    for seed in 0..<30 {
      let meeting = VirtualMeeting.nearby(seed: seed)
      meeting.link.lossPerMille = 150
      meeting.link.delay = .milliseconds(20)
      meeting.serve("203.0.113.1:3478")
      let stun = try server("203.0.113.1:3478")
      let a = meeting.addEnd(["10.0.0.2"], servers: [stun], nat: "192.0.2.1")
      let b = meeting.addEnd(["10.1.0.2"], servers: [stun], nat: "198.51.100.1")
      // Private addresses are unreachable from outside.
      meeting.network.passes = { _, to in to.ip.bytes[0] != 10 }
      meeting.introduce(a, b)
      meeting.start(a, b)
      #expect(
        meeting.run(for: .seconds(15)) { _ in a.isConnected && b.isConnected }, "seed \(seed)")
      meeting.run(for: .seconds(10))
      let pair = try #require(a.agent.selectedPair)
      #expect(pair.local.address?.ip.description == "192.0.2.1", "seed \(seed)")
      #expect(pair.local.related == pair.base, "seed \(seed)")
      #expect(pair.remote.address?.ip.description == "198.51.100.1", "seed \(seed)")
      #expect(pair.nominated, "seed \(seed)")
    }
  }

  @Test func reflexiveCandidatesNameTheirBase() throws {
    let meeting = VirtualMeeting.nearby(seed: 1)
    meeting.serve("203.0.113.1:3478")
    let a = meeting.addEnd(
      ["10.0.0.2"], servers: [try server("203.0.113.1:3478")], nat: "192.0.2.1")
    a.gather()
    meeting.run(for: .seconds(1))
    #expect(a.candidates.map(\.kind) == [.host, .serverReflexive])
    #expect(a.candidates[1].related == a.candidates[0].address)
    #expect(a.candidates[1].priority < a.candidates[0].priority)
    #expect(a.candidates[1].foundation != a.candidates[0].foundation)
    #expect(a.gatheringStates == [.gathering, .complete])

    // The mapping is kept alive until a pair is in use.
    let before = a.sent.count
    meeting.run(for: .seconds(46))
    let kept = try a.sent[before...].map { try STUNMessage($0.bytes) }
    #expect(kept.count == 3 && kept.allSatisfy { $0.messageClass == .indication })
  }

  @Test func aMappingToTheSameAddressIsNotACandidate() throws {
    let meeting = VirtualMeeting.nearby(seed: 2)
    meeting.serve("203.0.113.1:3478")
    let a = meeting.addEnd(["192.0.2.1"], servers: [try server("203.0.113.1:3478")])
    a.gather()
    meeting.run(for: .seconds(1))
    #expect(a.candidates.map(\.kind) == [.host])
    #expect(a.agent.gatheringState == .complete)
    #expect(a.agent.deadline == nil)
  }

  @Test func aSilentServerIsAbandoned() throws {
    let meeting = VirtualMeeting.nearby(seed: 3)
    let a = meeting.addEnd(["192.0.2.1"], servers: [try server("203.0.113.1:3478")])
    a.gather()
    meeting.run(for: .seconds(9))
    #expect(a.agent.gatheringState == .gathering)
    #expect(a.sent.count == 7)
    #expect(Set(a.sent.map(\.bytes)).count == 1)
    meeting.run(for: .seconds(1))
    #expect(a.agent.gatheringState == .complete)
    #expect(a.sent.count == 7)
  }

  @Test func serverNamesAreResolved() throws {
    let meeting = VirtualMeeting.nearby(seed: 4)
    meeting.serve("203.0.113.1:19302")
    let servers = ["stun.example.org", "missing.example.org"].map {
      ICEServer(host: .name($0), port: 19302)
    }
    let a = meeting.addEnd(["10.0.0.2", "127.0.0.1"], servers: servers, nat: "192.0.2.1")
    let address = try #require(IPAddress("203.0.113.1"))
    meeting.names["stun.example.org"] = address
    a.gather()
    meeting.run(for: .seconds(1))
    // Loopback does not reach a remote server.
    #expect(a.candidates.filter { $0.kind == .serverReflexive }.count == 1)
    #expect(a.agent.gatheringState == .complete)
  }

  @Test func anUnansweredNameDoesNotDelayGathering() {
    let source = Entropy(seed: [1]).stream("ice")
    var agent = ICEAgent(
      ICESettings(servers: [ICEServer(host: .name("lost.example.org"), port: 3478)]),
      entropy: source)
    var outbox = Outbox<ICEAgent.Output>()
    agent.step(.gather([]), at: .zero, into: &outbox)
    #expect(agent.gatheringState == .gathering)
    agent.step(.deadline, at: agent.deadline ?? .zero, into: &outbox)
    #expect(agent.gatheringState == .complete)
  }

  @Test func anUnreachableServerIsAbandonedEarly() throws {
    let meeting = VirtualMeeting.nearby(seed: 5)
    let a = meeting.addEnd(["192.0.2.1"], servers: [try server("203.0.113.1:3478")])
    a.refuses = { _ in true }
    a.gather()
    meeting.run(for: .seconds(3))
    #expect(a.agent.gatheringState == .complete)
    #expect(a.agent.counters.sendFailures == 3)
  }

  @Test func gatheringWithoutSourcesIsCompleteImmediately() {
    let meeting = VirtualMeeting.nearby(seed: 6)
    let a = meeting.addEnd([])
    a.step(.gather([]))
    #expect(a.gatheringStates == [.gathering, .complete])
  }

  @Test func aSocketThatFailsToOpenIsSkipped() throws {
    let source = Entropy(seed: [1]).stream("ice")
    var agent = ICEAgent(entropy: source)
    var outbox = Outbox<ICEAgent.Output>()
    let addresses = try ["192.0.2.1", "192.0.2.2"].map { try #require(IPAddress($0)) }
    agent.step(.gather(addresses + addresses), at: .zero, into: &outbox)
    let ids = outbox.drain().compactMap { output -> UInt32? in
      if case .request(.bindSocket(let id, _)) = output { id } else { nil }
    }
    #expect(ids.count == 2)
    agent.step(.answer(.socketFailed(id: ids[0], code: 98)), at: .zero, into: &outbox)
    #expect(agent.gatheringState == .gathering)
    agent.step(
      .answer(.socketBound(id: ids[1], SocketAddress(addresses[1], port: 9))), at: .zero,
      into: &outbox)
    #expect(agent.gatheringState == .complete)
    #expect(agent.localCandidates.count == 1)
    // If the socket fails later, its candidate is no longer used for new pairs.
    agent.step(.answer(.socketFailed(id: ids[1], code: 98)), at: .zero, into: &outbox)
    #expect(agent.localCandidates.isEmpty)
  }

  @Test func globalAddressesPrecedeLocalOnesAndFamiliesAlternate() {
    let texts = ["127.0.0.1", "192.0.2.1", "fe80::1", "192.0.2.2", "2001:db8::1", "::1"]
    let ordered = ICEPriority.ordered(texts.compactMap { IPAddress($0) })
    #expect(
      ordered.map(\.description)
        == ["2001:db8::1", "192.0.2.1", "192.0.2.2", "fe80::1", "::1", "127.0.0.1"])
  }

  @Test func prioritiesFollowTheFormulas() {
    #expect(ICEPriority.candidate(.host, localPreference: 65535) == 2_130_706_431)
    #expect(ICEPriority.candidate(.serverReflexive, localPreference: 65535) == 1_694_498_815)
    #expect(ICEPriority.candidate(.peerReflexive, localPreference: 0) == 1_845_494_015)
    #expect(ICEPriority.pair(controlling: 3, controlled: 2) == 2 << 32 + 6 + 1)
    #expect(ICEPriority.pair(controlling: 2, controlled: 3) == 2 << 32 + 6)
    #expect(
      ICEPriority.pair(controlling: .max, controlled: .max) == 0x7fff_ffff << 32 + 0xffff_fffe)
  }
}

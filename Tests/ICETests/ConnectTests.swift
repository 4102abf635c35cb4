import Lab
import Testing
import Wire

@testable import ICE

struct ConnectTests {
  @Test func aLoopbackCallConnectsWithinMilliseconds() throws {
    let meeting = VirtualMeeting.nearby(seed: 1)
    let (a, b) = meeting.addPair(["127.0.0.1"], ["127.0.0.1"])
    meeting.start(a, b)
    #expect(
      meeting.run(for: .milliseconds(200)) { _ in
        a.agent.connectionState == .completed && b.agent.connectionState == .completed
      })
    #expect(meeting.now < Instant.zero + .milliseconds(30))
    #expect(a.states.map(\.state) == [.checking, .connected, .completed])
    #expect(b.states.map(\.state) == [.checking, .connected, .completed])
    #expect(a.gatheringStates == [.gathering, .complete])
    let pair = try #require(a.agent.selectedPair)
    #expect(pair.nominated && pair.state == .succeeded && pair.remote.kind == .host)
    #expect(a.agent.counters == ICECounters())
  }

  @Test func everySeedConnectsDespiteThirtyPercentLoss() {
    var slowest = Instant.zero
    for seed in 0..<300 {
      let meeting = VirtualMeeting.nearby(seed: seed)
      meeting.link.lossPerMille = 300
      meeting.link.delay = .milliseconds(5)
      meeting.link.jitter = .milliseconds(75)
      let (a, b) = meeting.addPair(["192.0.2.1", "10.0.0.1"], ["198.51.100.1", "10.0.0.2"])
      meeting.network.passes = { from, to in (from.ip.bytes[0] == 10) == (to.ip.bytes[0] == 10) }
      meeting.start(a, b)
      let isConnected = meeting.run(for: .seconds(10)) { _ in a.isConnected && b.isConnected }
      #expect(isConnected, "seed \(seed)")
      slowest = max(slowest, meeting.now)
      meeting.run(for: .seconds(20))
      // Both sides use the same path, the nominated one.
      #expect(a.selections.last?.local == b.selections.last?.remote, "seed \(seed)")
      #expect(a.selections.last?.remote == b.selections.last?.local, "seed \(seed)")
      #expect(a.agent.selectedPair?.nominated == true, "seed \(seed)")
      #expect(a.selections.count <= 4 && b.selections.count <= 4, "seed \(seed)")
    }
    #expect(slowest < .zero + .seconds(10))
  }

  @Test func twoRunsOfASeedAreTheSame() {
    func trace() -> [String] {
      let meeting = VirtualMeeting.nearby(seed: 77)
      meeting.link.lossPerMille = 200
      let (a, b) = meeting.addPair(["192.0.2.1", "2001:db8::1"], ["192.0.2.2", "2001:db8::2"])
      a.keepsTrace = true
      b.keepsTrace = true
      meeting.start(a, b)
      meeting.run(for: .seconds(60))
      return a.trace + b.trace
    }
    let first = trace()
    #expect(first == trace())
    #expect(first.count > 60)
  }

  @Test(arguments: [ICERole.controlling, .controlled])
  func theTieBreakerResolvesEqualRoles(role: ICERole) {
    for seed in 0..<40 {
      let meeting = VirtualMeeting.nearby(seed: seed)
      meeting.link.lossPerMille = 100
      meeting.link.delay = .milliseconds(20)
      let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
      a.step(.role(role))
      b.step(.role(role))
      meeting.start(a, b)
      #expect(
        meeting.run(for: .seconds(10)) { _ in a.isConnected && b.isConnected }, "seed \(seed)")
      meeting.run(for: .seconds(5))
      #expect(a.agent.role != b.agent.role, "seed \(seed)")
      #expect(a.agent.selectedPair?.nominated == true, "seed \(seed)")
      #expect(b.agent.selectedPair?.nominated == true, "seed \(seed)")
      #expect(a.roles.count + b.roles.count >= 1, "seed \(seed)")
    }
  }

  @Test func checksBeforeTheAnswerAreAnsweredAndUsedLater() throws {
    let meeting = VirtualMeeting.nearby(seed: 3)
    let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    // The answer is delayed: its sender knows both descriptions, the offerer only its own.
    b.signals = false
    b.learnPeer()
    a.gather()
    b.gather()
    #expect(meeting.run(for: .seconds(1)) { _ in b.isConnected })
    #expect(a.agent.connectionState == .new)
    #expect(a.agent.pairs.isEmpty)
    meeting.run(for: .seconds(3))
    let before = meeting.now
    a.learnPeer()
    #expect(meeting.run(for: .seconds(1)) { _ in a.isConnected })
    #expect(meeting.now - before < .milliseconds(5))
    let pair = try #require(a.agent.pairs.first)
    #expect(pair.remote.kind == .peerReflexive)
    #expect(pair.requestsReceived >= 1)
    meeting.run(for: .seconds(1))
    #expect(b.agent.selectedPair?.nominated == true)

    // When the candidate is finally signaled, the pair keeps its number, its state and its
    // counters.
    for candidate in b.candidates { a.step(.remoteCandidate(candidate)) }
    for candidate in b.candidates { a.step(.remoteCandidate(candidate)) }
    let renamed = try #require(a.agent.pairs.first)
    #expect(renamed.id == pair.id && renamed.state == .succeeded && renamed.selected)
    #expect(renamed.remote.kind == .host && renamed.remote == b.candidates.first)
    #expect(renamed.responsesReceived >= pair.responsesReceived)
    #expect(a.agent.pairs.count == 1)
    #expect(a.selections.count == 1)
    #expect(a.agent.counters.duplicates == 1)
  }

  @Test func candidatesMayTrickleLongAfterTheDescriptions() {
    let meeting = VirtualMeeting.nearby(seed: 4)
    let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    a.signalingDelay = .seconds(4)
    b.signalingDelay = .seconds(6)
    meeting.start(a, b)
    meeting.run(for: .seconds(3))
    #expect(a.agent.connectionState == .new && b.agent.connectionState == .new)
    #expect(meeting.run(for: .seconds(5)) { _ in a.isConnected && b.isConnected })
    #expect(meeting.now < .zero + .milliseconds(4200))
    #expect(
      meeting.run(for: .seconds(5)) { _ in
        a.agent.connectionState == .completed && b.agent.connectionState == .completed
      })
  }

  @Test func candidatesMayArriveBeforeTheCredentials() {
    let meeting = VirtualMeeting.nearby(seed: 5)
    let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    a.gather()
    b.gather()
    meeting.run(for: .seconds(1))
    #expect(a.agent.connectionState == .new)
    a.learnPeer()
    b.learnPeer()
    #expect(meeting.run(for: .milliseconds(50)) { _ in a.isConnected && b.isConnected })
  }

  @Test func bothFamiliesAreGatheredAndIPv6IsPreferred() {
    let (_, a, b) = VirtualMeeting.connected(
      ["192.0.2.1", "2001:db8::1", "fe80::1"], ["192.0.2.2", "2001:db8::2", "fe80::2"])
    #expect(a.agent.selectedPair?.base.ip.description == "2001:db8::1")
    #expect(b.agent.connectionState == .completed)
    // Candidates of different address families or scopes form no pairs.
    #expect(a.agent.pairs.count == 3)
    #expect(a.agent.pairs.allSatisfy { $0.state == .succeeded })
  }

  @Test func anUnresponsiveFamilyDelaysOnlySlightly() {
    let meeting = VirtualMeeting.nearby(seed: 6)
    let (a, b) = meeting.addPair(["192.0.2.1", "2001:db8::1"], ["192.0.2.2", "2001:db8::2"])
    meeting.network.passes = { from, _ in from.ip.isIPv4 }
    meeting.start(a, b)
    #expect(
      meeting.run(for: .seconds(1)) { _ in
        b.agent.selectedPair?.nominated == true && a.agent.selectedPair?.nominated == true
      })
    #expect(meeting.now < .zero + .milliseconds(200))
    #expect(a.agent.connectionState == .connected)
    // The agent completes only once the other pair has failed.
    #expect(meeting.run(for: .seconds(30)) { _ in a.agent.connectionState == .completed })
    #expect(a.agent.pairs.contains { $0.state == .failed })
  }

  @Test func namesAreResolvedAndUnresolvableOnesDropped() throws {
    let meeting = VirtualMeeting.nearby(seed: 7)
    let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    b.signals = false
    let address = try #require(IPAddress("192.0.2.2"))
    meeting.names["5ab1.local"] = address
    // The network drops the peer's packets until this side has sent to the peer, so this side
    // cannot wait for a check from the peer.
    meeting.network.passes = { from, _ in
      from.ip.bytes[3] == 1 || a.sent.contains { $0.remote == from }
    }
    meeting.start(a, b)
    meeting.run(for: .milliseconds(100))
    for name in ["5ab1.local", "unknown.local"] {
      let text = "candidate:1 1 udp 2113937151 \(name) 21000 typ host"
      a.step(.remoteCandidate(try ICECandidate(attribute: text)))
    }
    a.step(.remoteEndOfCandidates)
    #expect(meeting.run(for: .seconds(1)) { _ in a.agent.connectionState == .completed })
    #expect(a.remoteCandidates.map(\.host) == [.address(try #require(IPAddress("192.0.2.2")))])
  }

  @Test func tcpAndOtherComponentsAreNotPaired() throws {
    let meeting = VirtualMeeting.nearby(seed: 8)
    let (a, _) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    a.learnPeer()
    a.gather()
    meeting.run(for: .milliseconds(10))
    for text in [
      "candidate:1 1 tcp 1518280447 192.0.2.2 9 typ host tcptype active",
      "candidate:1 2 udp 2122252542 192.0.2.2 5001 typ host",
      "candidate:1 1 udp 2122252542 192.0.2.2 0 typ host",
      "candidate:1 1 udp 2122252542 0.0.0.0 5000 typ host",
    ] {
      a.step(.remoteCandidate(try ICECandidate(attribute: text)))
    }
    #expect(a.agent.pairs.isEmpty)
    #expect(a.remoteCandidates.map(\.transport) == ["tcp"])
    #expect(a.agent.counters.unusable == 3)
  }
}

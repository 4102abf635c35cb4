import Lab
import Testing
import Wire

@testable import ICE

struct ConsentTests {
  @Test func aCutPathIsDisconnectedThenFailed() throws {
    let (meeting, a, b) = VirtualMeeting.connected()
    meeting.run(for: .seconds(58))
    let cut = meeting.now
    meeting.network.passes = { _, _ in false }
    meeting.run(for: .seconds(60))
    for node in [a, b] {
      let disconnected = try #require(node.time(of: .disconnected)) - cut
      #expect(disconnected > .seconds(1) && disconnected <= .seconds(7))
      let failed = try #require(node.time(of: .failed)) - cut
      #expect(failed > .seconds(24) && failed <= .seconds(30))
      #expect(node.agent.selectedPair == nil)
      #expect(node.agent.pairs.allSatisfy { $0.state == .failed && !$0.selected })
    }
    // Without consent nothing more is sent, and no deadline remains.
    let count = meeting.network.sent
    meeting.run(for: .seconds(100))
    #expect(meeting.network.sent == count)
    #expect(a.agent.deadline == nil && b.agent.deadline == nil)
  }

  @Test func aRecoveredPathIsConnectedImmediately() throws {
    let (meeting, a, b) = VirtualMeeting.connected()
    meeting.network.passes = { _, _ in false }
    meeting.run(for: .seconds(15))
    #expect(a.agent.connectionState == .disconnected)
    #expect(b.agent.connectionState == .disconnected)
    let back = meeting.now
    meeting.network.passes = { _, _ in true }
    #expect(meeting.run(for: .seconds(5)) { _ in a.isConnected && b.isConnected })
    #expect(meeting.now - back <= .milliseconds(510))
    meeting.run(for: .seconds(10))
    #expect(a.selections.count == 1 && b.selections.count == 1)
    #expect(a.states.map(\.state).suffix(3) == [.disconnected, .connected, .completed])
  }

  @Test func anIdleCallStaysConnectedWithSpreadChecks() throws {
    let (meeting, a, b) = VirtualMeeting.connected()
    let from = a.sent.count
    meeting.run(for: .seconds(600))
    #expect(a.states.map(\.state) == [.checking, .connected, .completed])
    #expect(b.states.map(\.state) == [.checking, .connected, .completed])
    let times = a.sent[from...].filter { item in
      (try? STUNMessage(item.bytes))?.messageClass == .request
    }.map(\.at)
    let gaps = zip(times.dropFirst(), times).map { $0 - $1 }
    #expect(gaps.count > 100 && gaps.count < 150)
    #expect(gaps.allSatisfy { $0 >= .seconds(4) && $0 <= .seconds(6) })
    let mean = gaps.reduce(0) { $0 + $1.seconds } / Double(gaps.count)
    #expect(mean > 4.8 && mean < 5.2)
    #expect(Set(gaps).count > 100)
    let pair = try #require(a.agent.selectedPair)
    #expect(pair.consentRequestsSent >= 100)
    #expect(pair.requestsSent == pair.responsesReceived)
  }

  @Test func ordinaryLossDoesNotDisconnectAnIdleCall() {
    for seed in 0..<20 {
      let meeting = VirtualMeeting.nearby(seed: seed)
      meeting.link.lossPerMille = 50
      meeting.link.delay = .milliseconds(40)
      let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
      meeting.start(a, b)
      meeting.run(for: .seconds(300))
      #expect(a.time(of: .disconnected) == nil, "seed \(seed)")
      #expect(b.time(of: .disconnected) == nil, "seed \(seed)")
    }
  }

  @Test func aPeerThatOnlySendsRequestsStaysConnected() throws {
    // Some stacks stop answering on a path while they continue checking it themselves.
    let (meeting, a, b) = VirtualMeeting.connected()
    let target = try #require(a.agent.selectedPair)
    b.dropsResponses = true
    meeting.run(for: .seconds(200))
    #expect(a.isConnected && b.isConnected)
    #expect(a.time(of: .disconnected) == nil)
    #expect(a.agent.selectedPair?.id == target.id)
  }

  @Test func mediaIsASignOfLifeButNotConsent() throws {
    let (meeting, a, b) = VirtualMeeting.connected()
    let pair = try #require(a.agent.selectedPair)
    let remote = try #require(pair.remote.address)
    meeting.network.passes = { _, _ in false }
    for tick in 0..<2_000 {
      meeting.after(.milliseconds(20) * Int64(tick)) {
        a.step(.trafficSent)
        a.step(.trafficReceived(local: pair.base, remote: remote))
      }
    }
    let cut = meeting.now
    meeting.run(for: .seconds(24))
    #expect(a.isConnected && a.time(of: .disconnected) == nil)
    #expect(b.agent.connectionState == .disconnected)
    meeting.run(for: .seconds(10))
    #expect(a.agent.connectionState == .failed)
    #expect(try #require(a.time(of: .failed)) - cut <= .seconds(30))
  }

  @Test func receivedTrafficEndsTheDisconnectedState() throws {
    let (meeting, a, _) = VirtualMeeting.connected()
    let pair = try #require(a.agent.selectedPair)
    meeting.network.passes = { _, _ in false }
    meeting.run(for: .seconds(10))
    #expect(a.agent.connectionState == .disconnected)
    a.step(.trafficReceived(local: pair.base, remote: try #require(pair.remote.address)))
    #expect(a.isConnected)
  }

  @Test func aPeersCheckRevivesAFailedCall() {
    let meeting = VirtualMeeting.nearby(seed: 9)
    let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    meeting.network.passes = { _, _ in false }
    a.signalingDelay = .seconds(10)
    meeting.start(a, b)
    meeting.run(for: .seconds(17))
    #expect(a.agent.connectionState == .failed)
    #expect(b.agent.connectionState == .checking)
    meeting.network.passes = { _, _ in true }
    #expect(meeting.run(for: .seconds(5)) { _ in a.isConnected && b.isConnected })
    #expect(a.states.map(\.state) == [.checking, .failed, .checking, .connected])
  }

  @Test func aLateCandidateRevivesAFailedCall() throws {
    let meeting = VirtualMeeting.nearby(seed: 10)
    let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    b.signals = false
    a.signals = false
    meeting.start(a, b)
    let wrong = "candidate:9 1 udp 1 192.0.2.99 21000 typ host"
    a.step(.remoteCandidate(try ICECandidate(attribute: wrong)))
    a.step(.remoteEndOfCandidates)
    meeting.run(for: .seconds(20))
    #expect(a.agent.connectionState == .failed)
    a.step(.remoteCandidate(try ICECandidate(attribute: wrong)))
    #expect(a.agent.connectionState == .failed)
    a.step(.remoteCandidate(try #require(b.candidates.first)))
    #expect(a.agent.connectionState == .checking)
    #expect(meeting.run(for: .milliseconds(100)) { _ in a.isConnected && b.isConnected })
  }

  @Test func withoutEndOfCandidatesFailureTakesLonger() throws {
    let meeting = VirtualMeeting.nearby(seed: 11)
    let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    b.signals = false
    meeting.start(a, b)
    let wrong = "candidate:9 1 udp 1 192.0.2.99 21000 typ host"
    meeting.network.passes = { _, _ in false }
    a.step(.remoteCandidate(try ICECandidate(attribute: wrong)))
    meeting.run(for: .seconds(29))
    #expect(a.agent.connectionState == .checking)
    meeting.run(for: .seconds(2))
    #expect(a.agent.connectionState == .failed)
    #expect(a.agent.deadline == nil)
  }
}

import Lab
import Testing
import Wire

@testable import ICE

/// Tests unreachable candidates, and paths that fall silent for a while or permanently.
struct OutageTests {
  private static let left = ["198.51.100.1", "192.0.2.1"].compactMap { IPAddress($0) }
  private static let right = ["198.51.100.2", "192.0.2.2"].compactMap { IPAddress($0) }

  private func meeting(_ seed: Int, lossPerMille: UInt64 = 0) -> VirtualMeeting {
    let meeting = VirtualMeeting(seed: UInt64(seed))
    meeting.link.lossPerMille = lossPerMille
    meeting.add(OutageTests.left)
    meeting.add(OutageTests.right)
    return meeting
  }

  /// Returns a call that has settled on its path.
  private func settled(_ seed: Int) -> VirtualMeeting {
    let meeting = meeting(seed)
    meeting.begin()
    meeting.run(for: .seconds(60))
    return meeting
  }

  private func isUp(_ meeting: VirtualMeeting) -> Bool {
    meeting.agents.allSatisfy {
      $0.connectionState == .connected || $0.connectionState == .completed
    }
  }

  private func base(_ meeting: VirtualMeeting, _ index: Int = 0) -> IPAddress? {
    meeting.agents[index].selectedPair?.base.ip
  }

  /// Returns a candidate better than all others, at a port without a listener.
  private func deadEnd(_ port: UInt16, at address: IPAddress) -> ICECandidate {
    ICECandidate(
      foundation: "dead\(port)", priority: .max - UInt32(port), host: .address(address), port: port,
      kind: .host)
  }

  @Test(arguments: [0, 100] as [UInt64], [1, 12])
  func deadPortsDelayAConnectionOnlySlightly(lossPerMille: UInt64, count: UInt16) throws {
    for seed in 0..<10 {
      let meeting = meeting(seed, lossPerMille: lossPerMille)
      meeting.begin()
      for port in 0..<count {
        for (index, address) in [OutageTests.right[0], OutageTests.left[0]].enumerated() {
          meeting.step(index, .remoteCandidate(deadEnd(9 + port, at: address)))
        }
      }
      #expect(
        meeting.run(for: .seconds(2)) { meeting in
          meeting.agents.allSatisfy { $0.selectedPair?.nominated == true }
        }, "seed \(seed)")
      meeting.run(for: .seconds(40))
      for agent in meeting.agents {
        #expect(agent.connectionState == .completed, "seed \(seed)")
        let dead = agent.pairs.filter { $0.remote.foundation.hasPrefix("dead") }
        #expect(dead.count == 2 * Int(count))
        #expect(dead.allSatisfy { $0.state == .failed && $0.responsesReceived == 0 })
      }
      #expect(meeting.states.allSatisfy { $0 == [.checking, .connected, .completed] })
    }
  }

  @Test func aPeerWithOnlyDeadPortsFails() {
    let meeting = VirtualMeeting(seed: 1)
    meeting.add(OutageTests.left)
    let agent = { meeting.agents[0] }
    meeting.step(0, .role(.controlling))
    meeting.step(
      0, .remoteCredentials(ICECredentials(usernameFragment: "dead", password: "p"), lite: false))
    meeting.step(0, .gather(OutageTests.left))
    meeting.step(0, .remoteCandidate(deadEnd(9, at: OutageTests.right[0])))
    meeting.step(0, .remoteEndOfCandidates)
    meeting.run(for: .seconds(10))
    #expect(agent().connectionState == .checking)
    meeting.run(for: .seconds(20))
    #expect(agent().connectionState == .failed)
    #expect(agent().deadline == nil)
  }

  @Test func aSilentPairIsReplacedByTheOther() throws {
    for seed in 0..<40 {
      let meeting = settled(seed)
      let before = try #require(base(meeting))
      meeting.network.outage.dead = [before]
      let cut = meeting.now
      #expect(
        meeting.run(for: .seconds(9)) { meeting in
          meeting.agents.indices.allSatisfy {
            base(meeting, $0) != before && meeting.agents[$0].selectedPair?.nominated == true
              && meeting.agents[$0].selectedPair?.remote.address?.ip != before
          } && isUp(meeting)
        }, "seed \(seed)")
      // The last response may be six seconds old at the cut, and the pair is abandoned eight
      // seconds after that response.
      #expect(meeting.now - cut >= .seconds(2), "seed \(seed)")
      meeting.run(for: .seconds(60))
      #expect(isUp(meeting))
      // The remote agent may have followed the change of pairs before it noticed the silence
      // itself.
      let losses = meeting.states.map { $0.filter { $0 == .disconnected }.count }
      #expect(losses.allSatisfy { $0 <= 1 } && losses.contains(1), "seed \(seed)")
      // The restored pair is not selected again, because it is not of a better kind.
      let after = base(meeting)
      meeting.network.outage.dead = []
      meeting.run(for: .seconds(60))
      #expect(base(meeting) == after)
    }
  }

  @Test func aShortOutageChangesNoPair() throws {
    for seed in 0..<40 {
      let meeting = settled(seed)
      let before = meeting.agents.map(\.selectedPair?.id)
      let address = try #require(base(meeting))
      // The next check comes at most 6 s after an answer, and a pair is abandoned after 8 s.
      // Between these times, there is a check every half second.
      for (milliseconds, isNoticed) in [(400, false), (1400, true)] {
        meeting.network.outage.dead = [address]
        meeting.run(for: .milliseconds(Int64(milliseconds)))
        meeting.network.outage.dead = []
        meeting.run(for: .seconds(30))
        #expect(meeting.agents.map(\.selectedPair?.id) == before, "seed \(seed)")
        if isNoticed { continue }
        #expect(meeting.states.allSatisfy { !$0.contains(.disconnected) }, "seed \(seed)")
      }
    }
  }

  @Test(arguments: [0, 1]) func bothEndsLeaveAPathThatIsDeadInOneDirection(muted: Int) throws {
    for seed in 0..<40 {
      let meeting = settled(seed)
      let before = try #require(base(meeting, muted))
      meeting.network.outage.mute = [before]
      let cut = meeting.now
      #expect(
        meeting.run(for: .seconds(30)) { meeting in
          base(meeting, muted) != before && isUp(meeting)
            && meeting.agents[1 - muted].selectedPair?.remote.address?.ip != before
            && meeting.agents.allSatisfy { $0.selectedPair?.nominated == true }
        }, "seed \(seed)")
      // The agent that still receives abandons the path only after the other agent has abandoned it
      // and sends no more checks there.
      let bound = muted == 0 ? Interval.milliseconds(16_200) : .milliseconds(8200)
      #expect(meeting.now - cut <= bound, "seed \(seed)")
      meeting.run(for: .seconds(60))
      #expect(isUp(meeting))
    }
  }

  @Test(arguments: [9, 15, 22])
  func bothEndsReconnectWhenAllPathsRecoverWithin(seconds: Int) throws {
    for seed in 0..<40 {
      let meeting = settled(seed)
      meeting.network.outage.dead = OutageTests.left
      meeting.run(for: .seconds(Int64(seconds)))
      #expect(meeting.agents.map(\.connectionState) == [.disconnected, .disconnected])
      meeting.network.outage.dead = []
      let back = meeting.now
      #expect(meeting.run(for: .seconds(5), until: isUp), "seed \(seed)")
      // The limit is the interval between checks on a silent pair, plus a round trip.
      #expect(meeting.now - back <= .milliseconds(560), "seed \(seed)")
      meeting.run(for: .seconds(60))
      #expect(meeting.agents.map(\.connectionState) == [.completed, .completed])
      #expect(base(meeting, 0) != nil && base(meeting, 1) != nil)
      meeting.send([0x80, 1], from: 0)
      meeting.send([0x81, 2], from: 1)
      meeting.run(for: .seconds(1))
      #expect(meeting.received == [[[0x81, 2]], [[0x80, 1]]], "seed \(seed)")
    }
  }

  @Test func afterThirtySecondsWithoutConsentOnlyARestartHelps() {
    for seed in 0..<20 {
      let meeting = settled(seed)
      meeting.network.outage.dead = OutageTests.left
      meeting.run(for: .seconds(31))
      #expect(meeting.agents.map(\.connectionState) == [.failed, .failed], "seed \(seed)")
      meeting.network.outage.dead = []
      meeting.run(for: .seconds(30))
      #expect(meeting.agents.map(\.connectionState) == [.failed, .failed], "seed \(seed)")
      meeting.restart()
      #expect(meeting.run(for: .seconds(1), until: isUp), "seed \(seed)")
    }
  }
}

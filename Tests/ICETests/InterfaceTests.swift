import Lab
import Testing
import Wire

@testable import ICE

/// Tests addresses that appear and vanish during a call.
struct InterfaceTests {
  private let wired = IPAddress(ipv4: 0xc633_6401)
  private let mobile = IPAddress(ipv4: 0xc633_6402)
  private let other = IPAddress(ipv4: 0xc633_6403)

  private func connected(
    seed: UInt64 = 1, _ left: [IPAddress], settings: ICESettings = ICESettings()
  ) -> VirtualMeeting {
    let meeting = VirtualMeeting(seed: seed)
    meeting.add(left, settings: settings)
    meeting.add([other], settings: settings)
    meeting.begin()
    meeting.run(for: .seconds(3))
    return meeting
  }

  private func isUp(_ meeting: VirtualMeeting) -> Bool {
    meeting.agents.allSatisfy {
      $0.connectionState == .connected || $0.connectionState == .completed
    }
  }

  @Test func aRemovedAddressIsReplacedByAnotherPair() throws {
    let meeting = connected([wired, mobile])
    #expect(meeting.agents[0].selectedPair?.base.ip == wired)
    meeting.change(0, to: [mobile])
    #expect(meeting.agents[0].selectedPair?.base.ip == mobile)
    #expect(meeting.agents[0].localCandidates.allSatisfy { $0.address?.ip == mobile })
    #expect(
      meeting.run(for: .seconds(10)) { $0.agents[1].selectedPair?.remote.address?.ip == mobile })
    meeting.run(for: .seconds(2))
    #expect(isUp(meeting))
    // The side whose address vanished never lost its connection.
    #expect(!meeting.states[0].contains(.disconnected))
  }

  @Test func theOnlyAddressIsReplacedByAnother() throws {
    for seed in 0..<10 {
      let meeting = connected(seed: UInt64(seed), [wired])
      let signaled = meeting.candidates[0].count
      meeting.change(0, to: [])
      #expect(meeting.agents[0].selectedPair == nil)
      #expect(meeting.agents[0].connectionState == .disconnected)
      meeting.run(for: .seconds(2))
      let addedAt = meeting.now
      meeting.change(0, to: [mobile])
      #expect(meeting.run(for: .seconds(5)) { $0.agents[0].selectedPair?.base.ip == mobile })
      // The peer waits a little before it abandons the old path, which is silent.
      #expect(
        meeting.run(for: .seconds(12)) {
          $0.agents[1].selectedPair?.remote.address?.ip == mobile && isUp($0)
        })
      #expect(meeting.now - addedAt < .seconds(12))
      // No candidates follow the end of candidates, until a restart.
      #expect(meeting.candidates[0].count == signaled)
      #expect(meeting.agents[1].pairs.contains { $0.remote.kind == .peerReflexive })
      meeting.send([0x80], from: 1)
      meeting.run(for: .seconds(1))
      #expect(meeting.received[0] == [[0x80]], "seed \(seed)")
    }
  }

  @Test func withoutAnyAddressTheCallEventuallyFails() {
    let meeting = connected([wired])
    meeting.change(0, to: [])
    meeting.run(for: .seconds(29))
    #expect(meeting.agents[0].connectionState == .disconnected)
    meeting.run(for: .seconds(8))
    #expect(meeting.agents.map(\.connectionState) == [.failed, .failed])
    #expect(meeting.agents[0].deadline == nil)
  }

  @Test func aRestartUsesTheAddressesOfThatTime() throws {
    let meeting = connected([wired])
    meeting.change(0, to: [])
    meeting.run(for: .seconds(40))
    meeting.change(0, to: [mobile])
    meeting.restart()
    #expect(meeting.run(for: .seconds(3)) { isUp($0) })
    #expect(meeting.agents[0].selectedPair?.base.ip == mobile)
  }

  @Test func addressesThatAppearWhileGatheringAreSignaled() {
    let meeting = VirtualMeeting(seed: 4)
    let server = ICEServer(host: .address(IPAddress(ipv4: 0xcb00_7109)), port: 3478)
    meeting.add([wired], settings: ICESettings(servers: [server]))
    meeting.add([other])
    meeting.begin()
    meeting.run(for: .milliseconds(100))
    #expect(meeting.agents[0].gatheringState == .gathering)
    meeting.change(0, to: [wired, mobile])
    meeting.run(for: .milliseconds(100))
    #expect(meeting.candidates[0].compactMap { $0.address?.ip } == [wired, mobile])
  }

  @Test func tcpCallsMoveToAnotherAddressToo() {
    let settings = ICESettings(usesUDP: false, usesTCP: true)
    let meeting = connected([wired, mobile], settings: settings)
    meeting.change(0, to: [mobile])
    #expect(
      meeting.run(for: .seconds(12)) {
        isUp($0) && $0.agents[0].selectedPair?.base.ip == mobile
          && $0.agents[1].selectedPair?.remote.address?.ip == mobile
      })
  }

  @Test func anInterfaceAddedBeforeGatheringChangesNothing() {
    var agent = ICEAgent(entropy: Entropy(seed: [1]).stream("ice"))
    var outbox = Outbox<ICEAgent.Output>()
    agent.step(.interfaces([wired]), at: .zero, into: &outbox)
    #expect(outbox.drain().isEmpty)
  }

  @Test func linkLocalAddressesConnectWithoutAZone() throws {
    let left = try #require(IPAddress("fe80::1"))
    let right = try #require(IPAddress("fe80::2"))
    let meeting = VirtualMeeting(seed: 2)
    meeting.add([left, wired])
    meeting.add([right])
    meeting.begin()
    #expect(meeting.run(for: .seconds(2)) { $0.isConnected })
    #expect(meeting.agents[0].selectedPair?.base.ip == left)
    #expect(meeting.agents[0].pairs.count == 1)
    #expect(meeting.candidates[0].allSatisfy { !$0.attribute.contains("%") })
  }
}

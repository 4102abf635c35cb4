import Lab
import Testing
import Wire

@testable import ICE

/// Calls over TCP connections (RFC 6544).
struct TCPTests {
  private let addresses = (0..<4).map { IPAddress(ipv4: 0xc633_6401 + UInt32($0)) }

  /// Makes two agents with these settings; a firewall may drop all datagrams.
  private func meeting(
    seed: UInt64 = 1, _ left: ICESettings = ICESettings(usesTCP: true),
    _ right: ICESettings = ICESettings(usesTCP: true), blocked: Bool = false
  ) -> VirtualMeeting {
    let meeting = VirtualMeeting(seed: seed)
    meeting.add([addresses[0]], settings: left)
    meeting.add([addresses[1]], settings: right)
    meeting.network.passes = { _, _ in !blocked }
    return meeting
  }

  @Test func tcpCarriesTheCallWhereUDPIsBlocked() throws {
    for seed in 0..<20 {
      let meeting = meeting(seed: UInt64(seed), blocked: true)
      meeting.begin()
      #expect(meeting.run(for: .seconds(2)) { $0.isConnected }, "seed \(seed)")
      meeting.run(for: .seconds(60))
      for agent in meeting.agents {
        let pair = try #require(agent.selectedPair)
        #expect(pair.local.isTCP && pair.remote.isTCP)
        #expect(agent.connectionState == .completed)
      }
      meeting.send([0x80, 1, 2], from: 0)
      meeting.send([0x81, 3], from: 1)
      meeting.run(for: .seconds(1))
      #expect(meeting.received == [[[0x81, 3]], [[0x80, 1, 2]]])
      // Unused connections were closed, because each failed pair closes its connection.
      let open = meeting.agents.map { $0.pairs.filter { $0.state == .succeeded }.count }
      #expect(meeting.streams.count <= open.max() ?? 0)
    }
  }

  @Test func udpIsPreferredWhereItWorks() throws {
    let meeting = meeting()
    meeting.begin()
    #expect(meeting.run(for: .seconds(2)) { $0.isConnected })
    meeting.run(for: .seconds(20))
    #expect(meeting.agents.allSatisfy { $0.selectedPair?.local.isTCP == false })
    #expect(meeting.agents.allSatisfy { $0.connectionState == .completed })
  }

  @Test func tcpCandidatesHaveTypesAndLowerPriorities() throws {
    let meeting = meeting()
    meeting.begin()
    meeting.run(for: .seconds(1))
    let tcp = meeting.candidates[0].filter(\.isTCP)
    #expect(tcp.map(\.tcpType) == [.active, .passive])
    #expect(tcp[0].port == 9 && tcp[1].port >= 20_000)
    let udp = try #require(meeting.candidates[0].first { !$0.isTCP })
    #expect(udp.priority > tcp[0].priority && tcp[0].priority > tcp[1].priority)
    #expect(tcp[1].attribute.contains(" typ host tcptype passive"))
    #expect(try ICECandidate(attribute: tcp[1].attribute) == tcp[1])
  }

  @Test func withoutTCPCandidatesNoConnectionIsMade() {
    let meeting = meeting(ICESettings(usesTCP: true), ICESettings(), blocked: true)
    meeting.begin()
    meeting.run(for: .seconds(40))
    #expect(meeting.agents.allSatisfy { $0.connectionState == .failed })
    #expect(meeting.candidates[1].allSatisfy { !$0.isTCP })
    #expect(meeting.streams.count == 0)
  }

  @Test func tcpOnlyUsesNoUDP() {
    let settings = ICESettings(usesUDP: false, usesTCP: true)
    let meeting = meeting(settings, settings)
    meeting.begin()
    #expect(meeting.run(for: .seconds(2)) { $0.isConnected })
    #expect(meeting.candidates.joined().allSatisfy { $0.isTCP })
    #expect(meeting.agents.allSatisfy { $0.pairs.allSatisfy { $0.local.isTCP } })
  }

  @Test func aBrokenConnectionIsReopened() throws {
    let meeting = meeting(blocked: true)
    meeting.begin()
    meeting.run(for: .seconds(5))
    let before = try #require(meeting.agents[0].selectedPair?.base)
    meeting.streams.breakAll(at: meeting.now)
    #expect(
      meeting.run(for: .seconds(3)) { $0.states.allSatisfy { $0.contains(.disconnected) } })
    let back: (VirtualMeeting) -> Bool = { meeting in
      meeting.agents.allSatisfy {
        $0.connectionState == .connected || $0.connectionState == .completed
      }
    }
    #expect(meeting.run(for: .seconds(2), until: back))
    meeting.run(for: .seconds(1))
    meeting.send([0x80], from: 0)
    meeting.send([0x81], from: 1)
    meeting.run(for: .seconds(1))
    #expect(meeting.received == [[[0x81]], [[0x80]]])
    #expect(meeting.agents[0].selectedPair?.base != before)
  }

  @Test func lossOnlyDelaysDataOverTCP() {
    for seed in 0..<20 {
      let meeting = meeting(seed: UInt64(seed), blocked: true)
      meeting.streams.lossPerMille = 300
      meeting.begin()
      #expect(meeting.run(for: .seconds(10)) { $0.isConnected }, "seed \(seed)")
      meeting.run(for: .seconds(30))
      #expect(meeting.agents.allSatisfy { !$0.pairs.filter(\.selected).isEmpty })
    }
  }

  @Test func connectionsOfUnknownPeersAreClosed() {
    let meeting = meeting()
    meeting.begin()
    meeting.run(for: .seconds(1))
    let passive = meeting.candidates[0].first { $0.tcpType == .passive }?.address
    for port in 0..<40 {
      let unknownPeer = SocketAddress(addresses[3], port: UInt16(1000 + port))
      meeting.step(0, .answer(.streamAccepted(local: passive ?? unknownPeer, remote: unknownPeer)))
    }
    // Connections over the limit are closed at once, the others once they have been silent too
    // long.
    #expect(meeting.agents[0].counters.overflows >= 24)
    #expect(meeting.agents[0].gatherer.connections.all.count <= 20)
    meeting.run(for: .seconds(11))
    let connections = meeting.agents[0].gatherer.connections.all
    #expect(!connections.contains { $0.remote.ip == addresses[3] })
  }

  @Test func aRestartMakesNewConnections() throws {
    let meeting = meeting(blocked: true)
    meeting.begin()
    meeting.run(for: .seconds(3))
    let before = try #require(meeting.agents[0].selectedPair?.base)
    meeting.restart()
    meeting.run(for: .seconds(20))
    let after = try #require(meeting.agents[0].selectedPair?.base)
    #expect(before != after)
    #expect(meeting.agents.allSatisfy { $0.connectionState == .completed })
    meeting.send([0x80], from: 1)
    meeting.run(for: .seconds(1))
    #expect(meeting.received[0] == [[0x80]])
    for index in 0..<2 { meeting.step(index, .close) }
    meeting.run(for: .seconds(1))
    #expect(meeting.streams.count == 0)
  }

  @Test func aThousandCallsOverTCPConnect() {
    var slowest = Instant.zero
    for seed in 0..<1000 {
      let meeting = meeting(seed: UInt64(seed), blocked: true)
      meeting.begin()
      #expect(meeting.run(for: .seconds(2)) { $0.isConnected }, "seed \(seed)")
      slowest = max(slowest, meeting.now)
    }
    print("slowest of 1000 calls over connections: \(slowest.nanoseconds / 1_000_000) ms")
  }
}

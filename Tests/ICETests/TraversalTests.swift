import Lab
import Testing
import Wire

@testable import ICE

/// Tests which NATs allow a direct path, and which need a TURN server.
struct TraversalTests {
  static let ends: [VirtualNAT.Kind?] = [nil] + VirtualNAT.Kind.allCases

  /// Returns whether two ends connect without a relay (RFC 5128 section 3.3).
  private func meetDirectly(_ left: VirtualNAT.Kind?, _ right: VirtualNAT.Kind?) -> Bool {
    switch (left, right) {
    case (.symmetric, .symmetric), (.symmetric, .portRestricted), (.portRestricted, .symmetric):
      false
    default: true
    }
  }

  private func meeting(
    _ left: VirtualNAT.Kind?, _ right: VirtualNAT.Kind?, seed: UInt64, hasRelay: Bool,
    relayOnly: [Bool] = [false, false], transport: ICEServer.Transport = .udp
  ) -> VirtualMeeting {
    let meeting = VirtualMeeting(seed: seed)
    let serverIP = IPAddress(ipv4: 0xcb00_7101)
    let server = SocketAddress(serverIP, port: 3478)
    meeting.network.server = VirtualTURNServer(address: server)
    var servers = [ICEServer(host: .address(serverIP), port: 3478)]
    if hasRelay {
      servers.append(
        ICEServer(
          host: .address(serverIP), port: 3478, transport: transport,
          credentials: TURNCredentials(username: "user", password: "password")))
    }
    for (index, kind) in [left, right].enumerated() {
      let outside = IPAddress(ipv4: 0xc633_6401 + UInt32(index))
      let inside = IPAddress(ipv4: 0x0a00_0002 + UInt32(index) << 8)
      meeting.add(
        [kind == nil ? outside : inside], nat: kind.map { VirtualNAT($0, address: outside) },
        settings: ICESettings(servers: servers, relayOnly: relayOnly[index]))
    }
    return meeting
  }

  @Test(arguments: ends, ends)
  func withoutARelayTheyConnectWherePossible(left: VirtualNAT.Kind?, right: VirtualNAT.Kind?) {
    for seed in 0..<4 {
      let meeting = meeting(left, right, seed: UInt64(seed), hasRelay: false)
      meeting.begin()
      meeting.run(for: .seconds(40)) { $0.isConnected }
      #expect(meeting.isConnected == meetDirectly(left, right), "seed \(seed)")
    }
  }

  @Test(arguments: ends, ends)
  func withARelayTheyAlwaysConnect(left: VirtualNAT.Kind?, right: VirtualNAT.Kind?) {
    for seed in 0..<4 {
      let meeting = meeting(left, right, seed: UInt64(seed), hasRelay: true)
      meeting.link.lossPerMille = seed < 2 ? 0 : 100
      meeting.begin()
      #expect(meeting.run(for: .seconds(5)) { $0.isConnected }, "seed \(seed)")
      meeting.run(for: .seconds(40))
      #expect(meeting.isConnected)
      let kinds = meeting.agents.compactMap(\.selectedPair).map {
        $0.local.kind == .relayed || $0.remote.kind == .relayed
      }
      // In the end, media uses a relay only if no direct path exists.
      #expect(kinds == [Bool](repeating: !meetDirectly(left, right), count: 2), "seed \(seed)")
      meeting.send([0x80, 1, 2], from: 0)
      meeting.send([0x81, 3], from: 1)
      if seed < 2 {
        meeting.run(for: .seconds(1))
        #expect(meeting.received == [[[0x81, 3]], [[0x80, 1, 2]]], "seed \(seed)")
      }
    }
  }

  /// Both sides' checks trigger further checks before the first one is answered.
  @Test(arguments: [300, 700, 1_500]) func theyConnectOverSlowPaths(milliseconds: Int64) {
    for seed in 0..<4 {
      let meeting = meeting(nil, nil, seed: UInt64(seed), hasRelay: false)
      meeting.link.delay = .milliseconds(milliseconds)
      meeting.begin()
      #expect(meeting.run(for: .seconds(15)) { $0.isConnected }, "seed \(seed)")
    }
  }

  @Test func aThousandCallsConnectWithinTwoSecondsDespiteThirtyPercentLoss() {
    var slowest = Instant.zero
    for seed in 0..<1000 {
      let meeting = VirtualMeeting(seed: UInt64(seed))
      meeting.link.lossPerMille = 300
      for index in 0..<2 { meeting.add([IPAddress(ipv4: 0xc633_6401 + UInt32(index))]) }
      meeting.begin()
      #expect(meeting.run(for: .seconds(2)) { $0.isConnected }, "seed \(seed)")
      slowest = max(slowest, meeting.now)
    }
    // The loss has an effect: without it, a call connects within a few round trips.
    #expect(slowest > .zero + .milliseconds(200))
    print("slowest of 1000 calls with 30 % loss: \(slowest.nanoseconds / 1_000_000) ms")
  }

  @Test(arguments: [[true, true], [true, false], [false, true]])
  func relayOnlySignalsAndUsesNothingElse(relayOnly: [Bool]) throws {
    for left in Self.ends {
      let meeting = meeting(left, nil, seed: 9, hasRelay: true, relayOnly: relayOnly)
      meeting.begin()
      #expect(meeting.run(for: .seconds(5)) { $0.isConnected })
      meeting.run(for: .seconds(10))
      for (agent, isHidden) in zip(meeting.agents, relayOnly) where isHidden {
        #expect(agent.localCandidates.map(\.kind) == [.relayed])
        #expect(agent.localCandidates.first?.related?.ip.isUnspecified == true)
        #expect(agent.pairs.allSatisfy { $0.local.kind == .relayed })
      }
      let server = try #require(meeting.network.server)
      let before = server.relayedByChannel
      meeting.send([0x80], from: 0)
      meeting.run(for: .seconds(1))
      #expect(meeting.received[1] == [[0x80]])
      #expect(meeting.network.server?.relayedByChannel ?? 0 > before)
    }
  }

  @Test(arguments: [ICEServer.Transport.tcp, .tls])
  func aServerMayBeReachedOverTCP(transport: ICEServer.Transport) throws {
    // No NAT, so that the server sees the connection's address as the agent does.
    let meeting = meeting(
      nil, nil, seed: 5, hasRelay: true, relayOnly: [true, true], transport: transport)
    meeting.begin()
    #expect(meeting.run(for: .seconds(5)) { $0.isConnected })
    meeting.run(for: .seconds(700))
    meeting.send([0x80, 1], from: 0)
    meeting.run(for: .seconds(1))
    #expect(meeting.received[1] == [[0x80, 1]])
    // A lost connection ends its allocation and the path.
    let server = try #require(meeting.network.server)
    for allocation in server.allocations {
      for index in 0..<2 {
        meeting.step(index, .sendFailed(local: allocation.client, remote: server.address))
      }
    }
    meeting.run(for: .seconds(60))
    #expect(meeting.agents.map(\.connectionState) == [.failed, .failed])
    #expect(meeting.serverFailures == [[0], [0]])
  }

  @Test func aServerThatRefusesConnectionsIsAbandoned() {
    let meeting = meeting(.fullCone, nil, seed: 6, hasRelay: true, transport: .tcp)
    meeting.streams.refuses = true
    meeting.begin()
    #expect(meeting.run(for: .seconds(5)) { $0.isConnected })
    #expect(meeting.serverFailures == [[0], [0]])
    #expect(meeting.agents.allSatisfy { $0.gatheringState == .complete })
  }

  @Test func closingReleasesTheAllocations() {
    let meeting = meeting(.symmetric, .symmetric, seed: 1, hasRelay: true)
    meeting.begin()
    meeting.run(for: .seconds(5)) { $0.isConnected }
    #expect(meeting.network.server?.allocations.count == 2)
    for index in 0..<2 { meeting.step(index, .close) }
    meeting.run(for: .seconds(1))
    #expect(meeting.network.server?.allocations.isEmpty == true)
  }

  @Test func aRelayedCallLastsForAnHour() {
    let meeting = meeting(.symmetric, .symmetric, seed: 2, hasRelay: true)
    meeting.network.server?.nonceLifetime = .seconds(300)
    meeting.begin()
    meeting.run(for: .seconds(5)) { $0.isConnected }
    meeting.run(for: .seconds(3600))
    #expect(meeting.agents.allSatisfy { $0.connectionState == .completed })
    meeting.send([0x80], from: 0)
    meeting.run(for: .seconds(1))
    #expect(meeting.received[1] == [[0x80]])
  }

  @Test(arguments: [ICEServer.Transport.udp, .tcp])
  func anAllocationTheServerForgotIsRenewed(transport: ICEServer.Transport) throws {
    let meeting = meeting(
      nil, nil, seed: 6, hasRelay: true, relayOnly: [true, false], transport: transport)
    meeting.begin()
    #expect(meeting.run(for: .seconds(5)) { $0.isConnected })
    meeting.run(for: .seconds(20))
    let before = try #require(meeting.agents[0].selectedPair?.base)
    let signaled = meeting.candidates.map(\.count)
    meeting.network.server?.restart()
    let isBack: (VirtualMeeting) -> Bool = { meeting in
      let after = meeting.agents[0].selectedPair?.base
      let end = meeting.agents[1].selectedPair?.remote.address
      return after != before && after == end
        && meeting.agents.allSatisfy {
          $0.connectionState == .connected || $0.connectionState == .completed
        }
    }
    #expect(meeting.run(for: .seconds(20), until: isBack))
    #expect(meeting.states[0].contains(.disconnected))
    #expect(meeting.serverFailures[0] == [437])
    #expect(meeting.candidates.map(\.count) == signaled)
    meeting.send([0x80, 5], from: 0)
    meeting.send([0x81, 6], from: 1)
    meeting.run(for: .seconds(1))
    #expect(meeting.received == [[[0x81, 6]], [[0x80, 5]]])
  }

  @Test func aRestartUsesANewAllocation() throws {
    let meeting = meeting(.symmetric, .symmetric, seed: 3, hasRelay: true)
    meeting.begin()
    meeting.run(for: .seconds(5)) { $0.isConnected }
    let before = try #require(meeting.agents[0].selectedPair).base
    meeting.restart()
    meeting.run(for: .seconds(20))
    let after = try #require(meeting.agents[0].selectedPair)
    #expect(after.base != before)
    #expect(after.local.kind == .relayed || after.remote.kind == .relayed)
    #expect(meeting.agents.allSatisfy { $0.connectionState == .completed })
    #expect(meeting.network.server?.allocations.count == 2)
  }

  @Test func wrongCredentialsAreReportedAndOtherCandidatesUsed() {
    let meeting = meeting(.fullCone, .fullCone, seed: 4, hasRelay: true)
    meeting.network.server?.password = "changed"
    meeting.begin()
    #expect(meeting.run(for: .seconds(5)) { $0.isConnected })
    #expect(meeting.serverFailures == [[401], [401]])
    #expect(meeting.agents.allSatisfy { $0.gatheringState == .complete })
  }
}

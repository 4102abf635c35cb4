import Lab
import Testing
import Wire

@testable import ICE

/// Tests mDNS names in place of host addresses (draft-ietf-mmusic-mdns-ice-candidates).
struct NameTests {
  private let addresses = (0..<2).map { IPAddress(ipv4: 0xc0a8_0001 + UInt32($0)) }

  private func meeting(_ settings: ICESettings, seed: UInt64 = 3) -> VirtualMeeting {
    let meeting = VirtualMeeting(seed: seed)
    for address in addresses { meeting.add([address], settings: settings) }
    return meeting
  }

  @Test(arguments: [false, true]) func namesReplaceAddressesAndAreResolved(tcp: Bool) throws {
    let meeting = meeting(
      ICESettings(usesUDP: !tcp, usesTCP: tcp, hidesAddresses: true))
    meeting.begin()
    #expect(meeting.run(for: .seconds(3)) { $0.isConnected })
    #expect(meeting.names.count == 2)
    for candidate in meeting.candidates.joined() {
      guard case .name(let name) = candidate.host else {
        Issue.record("\(candidate) reveals an address")
        continue
      }
      #expect(name.hasSuffix(".local") && name.count == 42)
      #expect(meeting.names[name] != nil)
      #expect(try ICECandidate(attribute: candidate.attribute) == candidate)
    }
    let pair = try #require(meeting.agents[0].selectedPair)
    #expect(pair.remote.address?.ip == addresses[1])
  }

  @Test func theNameOfAnAddressIsStableForTheSession() {
    let meeting = meeting(ICESettings(hidesAddresses: true))
    meeting.begin()
    meeting.run(for: .seconds(2))
    meeting.restart()
    meeting.run(for: .seconds(2))
    #expect(Set(meeting.candidates[0].map(\.host)).count == 1)
    #expect(meeting.candidates[0].count == 2)
  }

  @Test func nothingElseRevealsTheAddress() throws {
    let server = try #require(SocketAddress("203.0.113.1:3478"))
    let meeting = meeting(
      ICESettings(
        servers: [
          ICEServer(host: .address(server.ip), port: server.port),
          ICEServer(
            host: .address(server.ip), port: server.port,
            credentials: .init(username: "user", password: "password")),
        ], hidesAddresses: true))
    meeting.network.server = VirtualTURNServer(address: server)
    meeting.begin()
    meeting.run(for: .seconds(3))
    let kinds = Set(meeting.candidates[0].map(\.kind))
    #expect(kinds == [.host, .serverReflexive, .relayed])
    #expect(meeting.candidates[0].allSatisfy { $0.related?.ip.isUnspecified != false })
  }
}

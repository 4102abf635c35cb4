import Lab
import Testing
import Wire

@testable import ICE

/// Tests addresses that are never signaled, but learned from the peer's packets (RFC 8445 section
/// 7.3.1.3).
struct PeerReflexiveTests {
  private static let inside = IPAddress(ipv4: 0x0a00_0002)
  private static let outside = IPAddress(ipv4: 0xc633_6401)
  private static let open = IPAddress(ipv4: 0xc633_6402)

  /// Returns a call with one end behind a NAT, without a server to learn its outer address from.
  private func meeting(_ kind: VirtualNAT.Kind, hidden: Int, seed: Int) -> VirtualMeeting {
    let meeting = VirtualMeeting(seed: UInt64(seed))
    for index in 0..<2 {
      if index == hidden {
        meeting.add(
          [PeerReflexiveTests.inside], nat: VirtualNAT(kind, address: PeerReflexiveTests.outside))
      } else {
        meeting.add([PeerReflexiveTests.open])
      }
    }
    return meeting
  }

  @Test(arguments: VirtualNAT.Kind.allCases, [0, 1])
  func anUnsignaledAddressIsLearnedAndUsed(kind: VirtualNAT.Kind, hidden: Int) throws {
    for seed in 0..<20 {
      let meeting = meeting(kind, hidden: hidden, seed: seed)
      meeting.link.lossPerMille = seed < 10 ? 0 : 200
      meeting.begin()
      #expect(
        meeting.run(for: .seconds(3)) { meeting in
          meeting.agents.allSatisfy { $0.selectedPair?.nominated == true }
        }, "seed \(seed)")
      // Only the private address was signaled, and it is unreachable.
      #expect(meeting.candidates[hidden].compactMap { $0.address?.ip } == [Self.inside])
      let seen = try #require(meeting.agents[1 - hidden].selectedPair)
      #expect(seen.remote.kind == .peerReflexive && seen.remote.address?.ip == Self.outside)
      // Its priority comes from the checks. The type preference of peer-reflexive candidates is
      // below that of host candidates (section 5.1.2).
      #expect(seen.remote.priority >> 24 == 110)
      let pair = try #require(meeting.agents[hidden].selectedPair)
      #expect(pair.local.kind == .peerReflexive && pair.local.address == seen.remote.address)
      #expect(pair.base.ip == Self.inside && pair.local.related == pair.base)
      meeting.send([0x80, 1], from: 0)
      meeting.send([0x81, 2], from: 1)
      meeting.run(for: .seconds(120))
      #expect(meeting.agents.map(\.connectionState) == [.completed, .completed])
      if seed < 10 { #expect(meeting.received == [[[0x81, 2]], [[0x80, 1]]]) }
    }
  }
}

import ICE
import JSEP
import Lab
import Media
import Peer
import SCTP
import SDP
import Stats
import Testing
import Wire

struct StatsMemberTests {
  private typealias Members = [String: Set<String>]

  private func note(_ call: VirtualCall, in members: inout Members) {
    for peer in 0..<2 {
      let times = [(1, true), (2, true), (2, false)].map {
        CodecTime(transceiver: $0, isInbound: $1, nanoseconds: 1_000_000)
      }
      guard case .stats(let report) = call.call(peer, .getStats(codecTimes: times)) else {
        Issue.record("getStats gave no report")
        return
      }
      for object in report.objects {
        for member in object.members { checkSize(of: member) }
        var name = object.type
        if let entry = StatsMembers.all.first(where: { $0.type == object.type }), entry.kind != nil,
          case .text(let kind)? = object["kind"]
        {
          name += " \(kind)"
        }
        members[name, default: []].formUnion(object.members.map(\.name))
      }
    }
  }

  /// No member of a call of seconds is smaller than what an instant can tell, or larger than what
  /// a counter reaches; a rate is at least that of a few packets.
  private func checkSize(of member: StatsMember) {
    guard case .number(let value) = member.value, value != 0 else { return }
    #expect((1e-9...1e16).contains(value.magnitude), "\(member.name) is \(value)")
    if member.name.hasSuffix("Bitrate") { #expect(value >= 1_000, "\(member.name) is \(value)") }
  }

  /// A call with everything in it, over a path that loses some of it.
  private func lossyCall() -> VirtualCall {
    var link = LinkSettings()
    link.lossPerMille = 30
    link.delay = .milliseconds(20)
    let call = VirtualCall(seed: 5, links: [link, link])
    call.addMedia(videoFrames: .pattern(width: 160, height: 120, framesPerSecond: 15))
    call.call(0, .createDataChannel(DataChannelInit(label: "d")))
    call.negotiate()
    call.run(for: .seconds(8))
    return call
  }

  /// A call of audio over a TURN server.
  private func relayedCall() -> VirtualCall {
    var configuration = PeerConfiguration()
    configuration.iceServers = [
      ICEServerConfiguration(
        urls: ["turn:203.0.113.1:3478?transport=udp"], username: "user", credential: "password")
    ]
    configuration.iceTransportPolicy = .relay
    let call = VirtualCall(
      seed: 6, links: [LinkSettings(), LinkSettings()],
      configurations: [configuration, configuration])
    call.network.server = SocketAddress("203.0.113.1:3478").map { VirtualTURNServer(address: $0) }
    call.addMedia()
    call.negotiate(gatheringTime: .milliseconds(200))
    call.run(for: .seconds(2))
    return call
  }

  /// A call whose feedback is REMB, as with peers that know no transport-wide feedback.
  private func rembCall() throws -> VirtualCall {
    let call = VirtualCall(seed: 7, links: [LinkSettings(), LinkSettings()])
    call.addMedia(videoFrames: .pattern(width: 160, height: 120, framesPerSecond: 15))
    try #require(call.call(0, .setLocalDescription(nil)).error == nil)
    for (from, to) in [(0, 1), (1, 0)] {
      guard case .description(var description) = call.call(from, .localDescription) else {
        Issue.record("there is no description")
        return call
      }
      description.sdp =
        description.sdp.split(separator: "\r\n")
        .filter { !$0.contains("transport-cc") && !$0.contains("transport-wide") }
        .joined(separator: "\r\n") + "\r\n"
      try #require(call.call(to, .setRemoteDescription(description)).error == nil)
      if to == 1 { try #require(call.call(1, .setLocalDescription(nil)).error == nil) }
    }
    call.run(for: .seconds(4))
    return call
  }

  @Test func reportsHaveTheMembersThatTheTableTells() throws {
    var found: Members = [:]
    note(lossyCall(), in: &found)
    note(relayedCall(), in: &found)
    note(try rembCall(), in: &found)
    note(SimulcastTests.call(seconds: 1), in: &found)
    for entry in StatsMembers.all {
      let name = entry.type + (entry.kind.map { " \($0)" } ?? "")
      let removed = found.removeValue(forKey: name)
      let members = try #require(removed, "\(name)")
      #expect(members.subtracting(entry.given).isEmpty, "\(name) has more than the table")
      // A virtual call has no connections over TCP.
      let less = Set(entry.given).subtracting(members).subtracting(["tcpType"])
      #expect(less.isEmpty, "\(name) has less than the table")
      #expect(members.isDisjoint(with: entry.missing.flatMap(\.members)), "\(name)")
    }
    #expect(found.isEmpty)
  }

  @Test func noMemberIsBothGivenAndMissing() {
    for entry in StatsMembers.all {
      let all = entry.given + entry.missing.flatMap(\.members)
      #expect(Set(all).count == all.count, "\(entry.type) \(entry.kind ?? "")")
    }
    #expect(Set(StatsMembers.all.map(\.type)).count == 14)
  }

  @Test func whatTheSystemRefusedToSendIsCountedOnItsPair() throws {
    let call = VirtualCall(seed: 8, links: [LinkSettings(), LinkSettings()])
    call.addMedia()
    call.negotiate()
    call.run(for: .seconds(1))
    // What comes from the peer tells the addresses of the pair.
    var ends: (local: SocketAddress, remote: SocketAddress)?
    for (_, event) in call.events[0] {
      guard case .candidatePair(let pair) = event, let remote = pair.remote.address else {
        continue
      }
      ends = (pair.base, remote)
    }
    let pairEnds = try #require(ends)
    call.step(
      0,
      .sendFailed(
        SendFailure(
          local: pairEnds.local, remote: pairEnds.remote, code: 1, packets: 3, bytes: 3000)))
    guard case .stats(let report) = call.call(0, .getStats()) else { return }
    let pair = try #require(report.objects.first { $0.type == "candidate-pair" })
    #expect(pair["packetsDiscardedOnSend"] == .integer(3))
    #expect(pair["bytesDiscardedOnSend"] == .integer(3000))
  }

  @Test func aRelayedCandidateNamesItsServer() throws {
    guard case .stats(let report) = relayedCall().call(0, .getStats()) else { return }
    let relay = try #require(
      report.objects.first { $0.type == "local-candidate" && $0["url"] != nil })
    #expect(relay["url"] == .text("turn:203.0.113.1:3478?transport=udp"))
    #expect(relay["relayProtocol"] == .text("udp"))
    #expect(relay["candidateType"] == .text("relay"))
  }
}

import Foundation
import Lab
import Media
import Peer
import Tape
import Testing
import Wire

@testable import Replay

/// Calls whose media is sent through a TURN server.
struct RelayedCallTests {
  @Test(arguments: [[true, true], [true, false]])
  func aRelayedCallReplaysBitForBit(relayOnly: [Bool]) throws {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).take"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let address = try #require(SocketAddress("203.0.113.1:3478"))
    let configurations = relayOnly.map { relayOnly in
      var configuration = PeerConfiguration()
      configuration.iceServers = [
        ICEServerConfiguration(urls: ["stun:203.0.113.1"]),
        ICEServerConfiguration(
          urls: ["turn:203.0.113.1:3478?transport=udp"], username: "user", credential: "password"),
      ]
      if relayOnly { configuration.iceTransportPolicy = .relay }
      return configuration
    }
    let recorded = try RecordedVirtualCall(
      path: path, seed: 3, links: [LinkSettings(), LinkSettings()], labels: ["a", "b"],
      configurations: configurations)
    let call = recorded.call
    call.network.server = VirtualTURNServer(address: address)
    for peer in 0..<2 {
      call.call(
        peer, .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 440, pauseSeconds: 2)))
    }
    #expect(call.negotiate(gatheringTime: .milliseconds(200)) == nil)
    recorded.run(for: .seconds(3))
    for peer in 0..<2 {
      #expect(call.state("connection", of: peer) == "connected")
      #expect(call.frames(of: peer, kind: .audio, isInbound: true).count > 100)
    }
    #expect(call.network.server?.relayedByChannel ?? 0 > 200)
    _ = try recorded.finish()
    #expect(call.network.server?.allocations.isEmpty == true)

    let report = try replay(path, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
    let connection = try TakeFile.open(path)
    let media = try connection.integer(
      "SELECT count(*) FROM packet WHERE protocol = 'rtp' AND local LIKE '10.%' "
        + "AND remote = '203.0.113.1:3478'")
    #expect(media ?? 0 > 200)
    let kept = try connection.integer(
      "SELECT count(*) FROM packet WHERE protocol = 'turn' AND substr(bytes, 5, 1) = x'16'")
    #expect(kept ?? 0 > 0)
  }

  @Test(arguments: [
    ("stun:a.example", true), ("stun:a.example:19302", true), ("stun:[2001:db8::1]:3478", true),
    ("turn:a.example?transport=tcp", true), ("turns:192.0.2.1", true),
    ("turns:a.example:443?transport=tcp", true), ("turn:a.example:0", false),
    ("turn:a.example?transport=sctp", false), ("turns:a.example?transport=udp", false),
    ("stun:a.example?transport=udp", false), ("http://a.example", false), ("turn:", false),
    ("stun", false), ("stun:a:b:c", false),
  ])
  func serverURIsAreReadOrRefused(uri: String, isGood: Bool) {
    var configuration = PeerConfiguration()
    configuration.iceServers = [
      ICEServerConfiguration(urls: [uri], username: "u", credential: "p")
    ]
    #expect((configuration.firstUnusableICEServer == nil) == isGood)
    configuration.iceServers[0].username = nil
    #expect((configuration.firstUnusableICEServer == nil) == (isGood && uri.hasPrefix("stun")))
  }
}

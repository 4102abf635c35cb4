import Foundation
import Lab
import Media
import Peer
import Tape
import Testing
import Wire

@testable import Replay

/// Calls over paths other than plain UDP between fixed addresses.
struct PathReplayTests {
  /// Records a call, runs a closure on it, and replays it.
  private func replayed(
    _ configuration: PeerConfiguration, during events: (RecordedVirtualCall) throws -> Void,
    judge: (borrowing SQLiteConnection) throws -> Void
  ) throws {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).take"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let recorded = try RecordedVirtualCall(
      path: path, seed: 3, links: [LinkSettings(), LinkSettings()], labels: ["a", "b"],
      configurations: [configuration, configuration])
    let call = recorded.call
    for peer in 0..<2 {
      call.call(
        peer, .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 440, pauseSeconds: 2)))
    }
    #expect(call.negotiate(gatheringTime: .milliseconds(50)) == nil)
    try events(recorded)
    for peer in 0..<2 {
      #expect(call.state("connection", of: peer) == "connected")
      #expect(call.frames(of: peer, kind: .audio, isInbound: true).count > 100)
    }
    _ = try recorded.finish()
    let report = try replay(path, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
    try judge(try TakeFile.open(path))
  }

  @Test func aCallOverConnectionsReplaysBitForBit() throws {
    var configuration = PeerConfiguration()
    configuration.iceTCP = .only
    try replayed(configuration) { recorded in
      recorded.run(for: .seconds(3))
      recorded.call.streams.breakAll(at: recorded.call.now)
      recorded.run(for: .seconds(2))
    } judge: { take in
      #expect(try take.integer("SELECT count(*) FROM network WHERE kind = 'bind'") == 0)
      let accepted = try take.integer("SELECT count(*) FROM network WHERE kind = 'accepted'")
      #expect(accepted ?? 0 >= 2)
      let lost = try take.integer("SELECT count(*) FROM network WHERE kind = 'send-failed'")
      #expect(lost ?? 0 >= 2)
    }
  }

  @Test func aCallWithNamesReplaysBitForBit() throws {
    var configuration = PeerConfiguration()
    configuration.iceAddressPrivacy = .names
    try replayed(configuration) { recorded in
      recorded.run(for: .seconds(3))
    } judge: { take in
      #expect(try take.integer("SELECT count(*) FROM network WHERE kind = 'publish'") == 2)
      #expect(try take.integer("SELECT count(*) FROM network WHERE kind = 'resolved'") == 2)
      let told = try take.integer(
        "SELECT count(*) FROM signaling WHERE message LIKE '%typ host%'"
          + " AND message NOT LIKE '%.local%'")
      #expect(told == 0)
    }
  }

  @Test func consentThatIsLostAndARestartReplayBitForBit() throws {
    try replayed(PeerConfiguration()) { recorded in
      let call = recorded.call
      recorded.run(for: .seconds(2))
      let links = call.network.links
      for peer in 0..<2 { call.network.links[peer].lossPerMille = 1000 }
      recorded.run(for: .seconds(10))
      #expect(call.state("ice-connection", of: 0) == "disconnected")
      call.network.links = links
      recorded.run(for: .seconds(2))
      #expect(call.state("ice-connection", of: 0) == "completed")
      for peer in 0..<2 { call.network.links[peer].lossPerMille = 1000 }
      recorded.run(for: .seconds(32))
      for peer in 0..<2 { #expect(call.state("ice-connection", of: peer) == "failed") }
      call.network.links = links
      call.call(0, .restartICE)
      #expect(call.negotiate(gatheringTime: .milliseconds(50)) == nil)
      recorded.run(for: .seconds(3))
    } judge: { take in
      let failed = try take.integer(
        "SELECT count(*) FROM state WHERE machine = 'ice-connection' AND to_state = 'failed'")
      #expect(failed == 2)
    }
  }

  @Test func aCallThatMovesToAnotherAddressReplaysBitForBit() throws {
    try replayed(PeerConfiguration()) { recorded in
      recorded.run(for: .seconds(2))
      let mobile = try #require(IPAddress("10.0.1.1"))
      recorded.call.step(0, .interfaces([mobile]))
      recorded.run(for: .seconds(12))
    } judge: { take in
      let states = try take.integer(
        "SELECT count(*) FROM state WHERE machine = 'ice-connection' AND to_state = 'disconnected'")
      #expect(states ?? 0 >= 1)
    }
  }
}

import Foundation
import JSEP
import Lab
import Media
import Peer
import Tape
import Testing
import Wire

@testable import Replay

/// Replays calls whose paths are dead, hidden, or down for a while.
struct OutageReplayTests {
  private static let wired = [IPAddress(ipv4: 0x0a00_0001), IPAddress(ipv4: 0x0a00_0002)]
  private static let mobile = [IPAddress(ipv4: 0x0a00_0101), IPAddress(ipv4: 0x0a00_0102)]

  /// What to change in a call before and during negotiation.
  private struct Scene {
    var prepare: (VirtualCall) -> Void = { _ in }
    var edit: (String) -> String = { $0 }
  }

  /// Records a call with audio in both directions, checks its take, and expects an identical
  /// replay.
  private func recorded(
    _ scene: Scene = Scene(), during events: (RecordedVirtualCall) throws -> Void,
    judge: (borrowing SQLiteConnection) throws -> Void
  ) throws {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).take"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let recording = try RecordedVirtualCall(
      path: path, seed: 3, links: [LinkSettings(), LinkSettings()], labels: ["a", "b"])
    let call = recording.call
    scene.prepare(call)
    call.addMedia()
    #expect(call.negotiate(gatheringTime: .milliseconds(50), edit: scene.edit) == nil)
    try events(recording)
    for peer in 0..<2 { #expect(call.state("connection", of: peer) == "connected") }
    let audio = (0..<2).map { call.frames(of: $0, kind: .audio, isInbound: true).count }
    recording.run(for: .seconds(1))
    for peer in 0..<2 {
      #expect(call.frames(of: peer, kind: .audio, isInbound: true).count >= audio[peer] + 45)
    }
    _ = try recording.finish()
    let report = try replay(path, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
    try judge(try TakeFile.open(path))
  }

  private func expect(_ number: Int64, _ query: String, in take: borrowing SQLiteConnection) throws
  {
    let found = try take.integer(query)
    #expect(found == number, "\(query)")
  }

  /// Adds a second interface to each peer, besides the wired one.
  private func addMobile(_ call: VirtualCall) {
    for peer in 0..<2 {
      call.step(peer, .interfaces([OutageReplayTests.wired[peer], OutageReplayTests.mobile[peer]]))
    }
  }

  /// Returns when a peer's machine reached a state, in seconds.
  private func times(
    _ machine: String, _ state: String, of peer: Int, in call: VirtualCall
  ) -> [Double] {
    call.events[peer].compactMap { entry in
      guard case .state(let transition) = entry.event, transition.machine == machine,
        transition.to == state
      else { return nil }
      return (entry.at - .zero).seconds
    }
  }

  @Test func candidatesWithDeadPortsAreTriedAndPassedOver() throws {
    var port = 8
    let scene = Scene(edit: { sdp in
      // Each description's best candidate points to a closed port.
      var lines = sdp.components(separatedBy: "\r\n")
      if let place = lines.firstIndex(where: { $0.hasPrefix("a=candidate:") }) {
        var words = lines[place].components(separatedBy: " ")
        port += 1
        (words[0], words[3], words[5]) = ("a=candidate:dead", "2147483647", "\(port)")
        lines.insert(words.joined(separator: " "), at: place)
      }
      return lines.joined(separator: "\r\n")
    })
    try recorded(scene) { recording in
      recording.run(for: .seconds(1))
      for peer in 0..<2 {
        let connected = times("connection", "connected", of: peer, in: recording.call)
        #expect(connected.count == 1 && connected[0] < 0.5)
      }
      recording.run(for: .seconds(20))
      for peer in 0..<2 { #expect(recording.call.state("ice-connection", of: peer) == "completed") }
    } judge: { take in
      let dead = "FROM candidate_pair WHERE remote LIKE '%:9' OR remote LIKE '%:10'"
      try expect(2, "SELECT count(DISTINCT peer) \(dead)", in: take)
      try expect(0, "SELECT max(selected + nominated + responses_received) \(dead)", in: take)
      try expect(
        2,
        "SELECT count(*) FROM (SELECT state, max(row) \(dead) GROUP BY peer, pair)"
          + " WHERE state = 'failed'", in: take)
    }
  }

  @Test func aPairThatFallsSilentIsLeftAfterEightSeconds() throws {
    var cut = 0.0
    try recorded(Scene(prepare: addMobile)) { recording in
      let call = recording.call
      recording.run(for: .seconds(3))
      cut = (call.now - .zero).seconds
      call.network.outage.dead = OutageReplayTests.wired
      recording.run(for: .seconds(12))
      for peer in 0..<2 {
        // Audio arrived until the cut, but ICE is informed of received data only twice a second.
        let lost = times("ice-connection", "disconnected", of: peer, in: call)
        #expect(lost.count == 1 && lost[0] - cut > 6.4 && lost[0] - cut < 7.1)
        let back = times("ice-connection", "connected", of: peer, in: call).last ?? 0
        #expect(back - cut > 7.4 && back - cut < 8.3)
      }
    } judge: { take in
      let paths = "FROM selected_pair WHERE from_ns > \(Int64(cut * 1e9))"
      try expect(2, "SELECT count(*) \(paths)", in: take)
      try expect(2, "SELECT count(*) \(paths) AND local LIKE '10.0.1.%'", in: take)
      try expect(2, "SELECT count(*) \(paths) AND remote LIKE '10.0.1.%'", in: take)
    }
  }

  @Test(arguments: VirtualNAT.Kind.allCases)
  func anAddressThatWasNeverSignaledIsUsedAndReported(kind: VirtualNAT.Kind) throws {
    let outer = IPAddress(ipv4: 0xc633_6401)
    let scene = Scene(prepare: { call in
      call.network.hide(
        0, at: [OutageReplayTests.wired[0]], behind: VirtualNAT(kind, address: outer))
    })
    try recorded(scene) { recording in
      recording.run(for: .seconds(3))
      for peer in 0..<2 {
        let connected = times("connection", "connected", of: peer, in: recording.call)
        #expect(connected.count == 1 && connected[0] < 1)
      }
    } judge: { take in
      try expect(0, "SELECT count(*) FROM signaling WHERE message LIKE '%\(outer)%'", in: take)
      let row = "FROM candidate WHERE candidate_type = 'prflx' AND address = '\(outer)'"
      try expect(1, "SELECT count(*) \(row) AND peer = 2 AND type LIKE 'remote%'", in: take)
      try expect(
        1,
        "SELECT count(*) FROM selected_pair WHERE peer = 2 AND remote_type = 'prflx'"
          + " AND remote LIKE '\(outer):%'", in: take)
      try expect(
        1,
        "SELECT count(*) FROM selected_pair WHERE peer = 1 AND local_type = 'prflx'"
          + " AND local LIKE '\(outer):%'", in: take)
      for (peer, side) in [(1, "local"), (2, "remote")] {
        // A remote peer-reflexive candidate's address is hidden (W3C webrtc-stats,
        // RTCIceCandidateStats.address).
        let address = peer == 1 ? "= '\(outer)'" : "IS NULL"
        let told = try take.integer(
          "SELECT count(*) FROM stat WHERE peer = \(peer) AND type = '\(side)-candidate'"
            + " AND members ->> 'candidateType' = 'prflx' AND members ->> 'address' \(address)")
        #expect(told ?? 0 >= 1, "peer \(peer)")
      }
    }
  }

  @Test(arguments: [0, 1]) func aPathThatIsDeadOneWayIsLeft(muted: Int) throws {
    try recorded(Scene(prepare: addMobile)) { recording in
      let call = recording.call
      recording.run(for: .seconds(2))
      call.network.outage.mute = [OutageReplayTests.wired[muted]]
      let heard = { call.frames(of: 1 - muted, kind: .audio, isInbound: true).count }
      recording.run(for: .seconds(18))
      let before = heard()
      recording.run(for: .seconds(1))
      #expect(heard() > before + 40)
    } judge: { take in
      try expect(2, "SELECT count(DISTINCT peer) FROM selected_pair WHERE from_ns > 5e9", in: take)
    }
  }

  @Test(arguments: [5, 10, 20] as [Int64])
  func bothSidesLoseTheirPathAndGetItBack(seconds: Int64) throws {
    try recorded(Scene(prepare: addMobile)) { recording in
      let call = recording.call
      recording.run(for: .seconds(3))
      call.network.outage.dead = OutageReplayTests.wired + OutageReplayTests.mobile
      recording.run(for: .seconds(seconds))
      call.network.outage.dead = []
      let back = (call.now - .zero).seconds
      recording.run(for: .seconds(12))
      for peer in 0..<2 {
        let isNoticed = seconds > 7
        #expect(
          times("ice-connection", "disconnected", of: peer, in: call).count == (isNoticed ? 1 : 0))
        let connected = times("ice-connection", "connected", of: peer, in: call).last ?? 0
        #expect(connected < (isNoticed ? back + 0.56 : 1))
        #expect(call.state("ice-connection", of: peer) == "completed")
        #expect(times("dtls", "connected", of: peer, in: call).count == 1)
      }
    } judge: { take in
      // Both peers are on the same pair again.
      let ends = "SELECT max(row), peer, local, remote FROM candidate_pair WHERE selected = 1"
      try expect(
        1,
        "SELECT count(*) FROM (\(ends) AND peer = 1) one JOIN (\(ends) AND peer = 2) two"
          + " ON one.local = two.remote AND one.remote = two.local", in: take)
    }
  }

  @Test func bothSidesThatLoseTheirAddressesMeetAgainByARestart() throws {
    try recorded { recording in
      let call = recording.call
      recording.run(for: .seconds(2))
      for peer in 0..<2 { call.step(peer, .interfaces([])) }
      recording.run(for: .seconds(5))
      for peer in 0..<2 { #expect(call.state("ice-connection", of: peer) == "disconnected") }
      for peer in 0..<2 { call.step(peer, .interfaces([OutageReplayTests.mobile[peer]])) }
      recording.run(for: .seconds(2))
      // Neither peer can know the other's new address.
      for peer in 0..<2 { #expect(call.state("ice-connection", of: peer) == "disconnected") }
      call.call(0, .restartICE)
      #expect(call.negotiate(gatheringTime: .milliseconds(50)) == nil)
      recording.run(for: .seconds(1))
    } judge: { take in
      try expect(2, "SELECT count(*) FROM selected_pair WHERE local LIKE '10.0.1.%'", in: take)
    }
  }
}

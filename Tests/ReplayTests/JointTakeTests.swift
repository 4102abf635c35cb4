import Foundation
import Lab
import Media
import Peer
import Queries
import Stats
import Tape
import Testing
import Wire

@testable import Replay

/// Merges the takes of a call's two ends into one take.
struct JointTakeTests {
  /// The two ends of a recorded call, each as a separate take; the second one started later and has
  /// its own clock.
  private struct Ends {
    let folder: String
    let whole: String
    let first: String
    let second: String
    static let later = Interval(nanoseconds: 1_234_567_891)

    init(keepsMedia: [Bool] = [true, true]) throws {
      folder = FileManager.default.temporaryDirectory.path + "/joint-" + UUID().uuidString
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      (whole, first, second) = (
        folder + "/whole.take", folder + "/first.take", folder + "/second.take"
      )
      var link = LinkSettings()
      link.lossPerMille = 30
      link.delay = .milliseconds(25)
      for (path, keepsMedia) in [(whole, keepsMedia[0]), (folder + "/other.take", keepsMedia[1])] {
        let recorded = try RecordedVirtualCall(
          path: path, seed: 8, links: [link, link], labels: ["caller", "callee"],
          keepsMedia: keepsMedia)
        recorded.call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10))
        _ = recorded.call.negotiate()
        recorded.run(for: .seconds(3))
        _ = try recorded.finish()
      }
      try Ends.write(peer: 1, of: whole, to: first)
      try Ends.write(peer: 2, of: folder + "/other.take", to: second)
    }

    func remove() { try? FileManager.default.removeItem(atPath: folder) }

    private static func write(peer: UInt32, of path: String, to output: String) throws {
      _ = try JointTake.write([JointTake.End(path: path, peer: peer, added: .zero)], to: output)
    }

    func join(_ added: Interval = later) throws -> String {
      let path = folder + "/joint.take"
      _ = try JointTake.write(
        [
          JointTake.End(path: first, peer: nil, added: .zero),
          JointTake.End(path: second, peer: nil, added: added),
        ], to: path)
      return path
    }
  }

  private func check(_ path: String) throws {
    let report = try replay(path)
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
  }

  @Test(arguments: [0, 1_234_567_891, -987_654_321])
  func aJointTakeReplaysBitForBit(added: Int64) throws {
    let ends = try Ends()
    defer { ends.remove() }
    let path = try ends.join(Interval(nanoseconds: added))
    try check(path)
    let connection = try TakeFile.open(path)
    #expect(try connection.integer("SELECT count(*) FROM peer") == 2)
    #expect(try connection.integer("SELECT min(at_ns) >= 0 FROM tape") == 1)
    // The steps are in the order of the common clock.
    let disorder = try connection.integer(
      """
      SELECT count(*) FROM (SELECT at_ns - lag(at_ns) OVER (ORDER BY first_step) AS gap FROM tape)
      WHERE gap < 0
      """)
    #expect(disorder == 0)
    let clocks = try connection.integer("SELECT max(added_ns) FROM clock")
    #expect(clocks ?? 0 == Int64(added.magnitude))
    // Everything except the peer's own time is compared as before.
    let walk = try TapeWalk(path: path, skipsCodecs: true, codecs: { LibraryCodecs() })
    while try walk.advance() != nil {}
    #expect(walk.divergence == nil)
  }

  @Test func joiningBothHalvesRestoresTheWhole() throws {
    let ends = try Ends()
    defer { ends.remove() }
    let path = try ends.join(.zero)
    for sql in [
      "SELECT count(*) FROM packet", "SELECT sum(delay_ms * 1000) FROM one_way_delay",
      "SELECT count(*) FROM content", "SELECT sum(size) FROM frame",
    ] {
      let expected = try TakeFile.open(ends.whole).integer(sql)
      #expect(try TakeFile.open(path).integer(sql) == expected, "\(sql)")
    }
  }

  @Test func everyPacketHasADelay() throws {
    let ends = try Ends()
    defer { ends.remove() }
    let merged = try MergedTakes(first: ends.first, second: ends.second)
    #expect(merged.offsetNanoseconds == 0)
    let path = try ends.join(Interval(nanoseconds: merged.offsetNanoseconds))
    let connection = try TakeFile.open(path)
    func number(_ what: String) throws -> Int64? {
      try connection.integer("SELECT \(what) FROM one_way_delay")
    }
    #expect(try number("round(1000 * min(delay_ms))") == 25_000)
    #expect(try number("count(DISTINCT from_peer || ' ' || to_peer)") ?? 0 >= 2)
    let sent = try connection.integer(
      "SELECT count(*) FROM packet WHERE direction = 'out' AND protocol = 'rtp'")
    #expect(try number("count(*)") == sent)
    let lost = try number("count(*) - count(delay_ms)") ?? 0
    #expect(lost > 5)
  }

  @Test func anAlteredClockIsNoticed() throws {
    let ends = try Ends()
    defer { ends.remove() }
    let path = try ends.join()
    try SQLiteConnection(path: path, mode: .readWrite)
      .execute("UPDATE clock SET added_ns = added_ns + 1")
    if case .altered = try replay(path).verdict {} else { Issue.record("not noticed") }
  }

  @Test func endsThatDoNotFitAreRefused() throws {
    let ends = try Ends(keepsMedia: [true, false])
    defer { ends.remove() }
    let error = #expect(throws: TapeError.self) { try ends.join() }
    #expect(error?.description.contains("only one of the two takes has its media") == true)
    #expect(!FileManager.default.fileExists(atPath: ends.folder + "/joint.take"))
  }

  @Test func statsAtAnInstantAreThoseOfThePeersOwnTime() throws {
    let ends = try Ends()
    defer { ends.remove() }
    let path = try ends.join()
    func stats(_ path: String, _ at: Interval, _ peer: Int) throws -> String {
      try StatsReplay(
        path: path, until: .time(.zero + at), toolchain: nil, codecs: { LibraryCodecs() }
      ).peers[peer].report.json
    }
    #expect(
      try stats(path, .seconds(2) + Ends.later, 1) == stats(ends.second, .seconds(2), 0))
  }
}

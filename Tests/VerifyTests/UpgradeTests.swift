import Foundation
import Replay
import Tape
import Testing
import Verify

@Suite struct UpgradeTests {
  @Test func aTakeOfOtherLibrariesIsMadeAnewAndReplays() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    let old = folder.file("old.take")
    try recast(path, as: old) { $0.vpx = "v0" }
    #expect(TakeVerification.run(path: old).notes.count == 1)
    let upgrade = try Upgrade(path: old, output: folder.file("new.take"))
    #expect(upgrade.toolchain.map(\.part) == ["vpx"])
    #expect(upgrade.firstDifference == nil && upgrade.misses == [])
    #expect(upgrade.text.contains("every step came out as it was recorded"))
    let result = TakeVerification.run(path: folder.file("new.take"))
    #expect(result.isPassed && result.notes == [], "\(result.line)")
  }

  @Test func whatChangedIsTold() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    let upgrade = try Upgrade(
      path: path, output: folder.file("new.take"), makePeer: OtherPeer.blind)
    #expect(upgrade.toolchain == [])
    #expect((upgrade.firstDifference ?? 0) > 20)
    #expect(upgrade.misses.contains { $0.check.name == "peer 1 track 2 video in: frames" })
    #expect(upgrade.text.contains("no longer comes to the same"))
    #expect(upgrade.json.contains("\"misses\":[{"))
  }

  @Test func nothingIsOverwrittenAndNothingHalfIsLeft() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 100)
    #expect(throws: TapeError.self) { _ = try Upgrade(path: path, output: path) }
    #expect(TakeVerification.run(path: path).isPassed)
    try SQLiteConnection(path: path, mode: .readWrite).execute("UPDATE peer SET label = 'x'")
    #expect(throws: TapeError.self) {
      _ = try Upgrade(path: path, output: folder.file("new.take"))
    }
    #expect(!FileManager.default.fileExists(atPath: folder.file("new.take")))
  }
}

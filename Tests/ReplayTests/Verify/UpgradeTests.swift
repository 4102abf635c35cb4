import Foundation
import Replay
import Tape
import Testing

struct UpgradeTests {
  @Test func aTakeOfOtherLibrariesIsUpgradedAndReplays() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    let old = folder.file("old.take")
    try recast(path, as: old) { $0.vpx = "v0" }
    #expect(TakeVerification.run(path: old).leftOut.count == 1)
    let upgrade = try Upgrade(path: old, output: folder.file("new.take"))
    #expect(upgrade.toolchain.map(\.part) == ["vpx"])
    #expect(upgrade.firstDifference == nil && upgrade.misses == [])
    #expect(upgrade.text.contains("every step gave the recorded outputs"))
    let result = TakeVerification.run(path: folder.file("new.take"))
    #expect(result.isPassed && result.isWhole && result.notes == [], "\(result.line)")
  }

  @Test func aTakeOfAnotherOpenSSLKeepsItsFlights() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", lossPerMille: 50)
    let old = folder.file("old.take")
    try recast(path, as: old) { $0.openssl = "0.9, engine 1" }
    let upgrade = try Upgrade(path: old, output: folder.file("new.take"))
    #expect(upgrade.firstDifference == nil && upgrade.misses == [], "\(upgrade.text)")
    #expect(upgrade.substituted.count == 1)
    #expect(upgrade.text.contains("key log"))
    let header = try TapeReader(path: folder.file("new.take")).header
    #expect(header.toolchain.openssl == "0.9, engine 1")
    #expect(TakeVerification.run(path: folder.file("new.take")).isPassed)
  }

  @Test func aTakeOfAnOlderFormatReplaysAndIsUpgraded() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    let old = folder.file("old.take")
    try writeOlderFormat(path, as: old)
    #expect(try TapeReader(path: old).header.format == TakeHeader.oldestFormat)
    let result = TakeVerification.run(path: old)
    #expect(result.isPassed && result.isWhole && result.notes == [], "\(result.line)")
    // Missing data is reported where it is needed.
    let other = folder.file("other.take")
    try recast(old, as: other) { $0.openssl = "0.9" }
    #expect(
      TakeVerification.run(path: other).leftOut.first?.contains("without a key log") == true)

    let upgrade = try Upgrade(path: old, output: folder.file("new.take"))
    #expect(
      upgrade.formatBefore == TakeHeader.oldestFormat
        && upgrade.format == TakeHeader.currentFormat)
    #expect(upgrade.firstDifference == nil && upgrade.misses == [], "\(upgrade.text)")
    #expect(try digest(of: folder.file("new.take")) == digest(of: path))
  }

  /// Copies a take into the previous format, without key logs and certificates.
  private func writeOlderFormat(_ path: String, as output: String) throws {
    let reader = try TapeReader(path: path)
    var header = reader.header
    header.format = TakeHeader.oldestFormat
    let copy = try TakeCopy(path: output, header: header)
    while let chunk = try reader.next() {
      for step in chunk.steps {
        var rows = RowList()
        for row in step.rows {
          let values = Array(chunk.rows.row(row))
          if let event = EventRow(chunk.rows, row),
            ["keylog", "certificate"].contains(event.type)
          {
            continue
          }
          let table = chunk.rows.table(row)
          rows.append(table, Array(values.prefix(table.columnNames(format: header.format).count)))
        }
        try copy.append(step.head, rows, 0..<rows.count)
      }
    }
    try copy.finish()
    try SQLiteConnection(path: output, mode: .readWrite).execute("DROP TABLE clock")
  }

  @Test func changesAreReported() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    let upgrade = try Upgrade(
      path: path, output: folder.file("new.take"), makePeer: OtherPeer.blind)
    #expect(upgrade.toolchain == [])
    #expect((upgrade.firstDifference ?? 0) > 20)
    #expect(upgrade.misses.contains { $0.check.name == "peer 1 track 2 video in: frames" })
    #expect(upgrade.text.contains("no longer has the same results"))
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

/// Takes contain the revision of the stack that made them.
struct RevisionTests {
  private func recast(_ path: String, as output: String, revision: Int64) throws {
    let reader = try TapeReader(path: path)
    var header = reader.header
    header.revision = revision
    let copy = try TakeCopy(path: output, header: header)
    while let chunk = try reader.next() {
      for step in chunk.steps { try copy.append(step.head, chunk.rows, step.rows) }
    }
    try copy.finish()
  }

  @Test func aTakeOfThisStackIsComparedExactly() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 300)
    #expect(try TapeReader(path: path).header.revision == stackRevision)
    let result = TakeVerification.run(path: path)
    #expect(result.isPassed && result.mode == .exact && result.notes == [])
  }

  @Test func aTakeOfAnotherStackIsComparedByMeaningWithANotice() throws {
    let folder = try Folder()
    let path = try folder.record("call.take")
    let other = folder.file("other.take")
    try recast(path, as: other, revision: stackRevision + 41)
    let result = TakeVerification.run(path: other)
    #expect(result.isPassed && result.mode == .meaning, "\(result.line)")
    #expect(result.notes.first?.contains("made by revision \(stackRevision + 41)") == true)
    // Exact mode compares every byte anyway.
    let exact = TakeVerification.run(path: other, mode: .exact)
    #expect(exact.isPassed && exact.mode == .exact)
    // An upgraded take has this stack's revision.
    _ = try Upgrade(path: other, output: folder.file("new.take"))
    #expect(try TapeReader(path: folder.file("new.take")).header.revision == stackRevision)
  }

  @Test func aChangedRevisionIsAnAlteration() throws {
    let folder = try Folder()
    let path = try folder.record("call.take", milliseconds: 100)
    try SQLiteConnection(path: path, mode: .readWrite).execute("UPDATE take SET revision = 7")
    #expect(throws: TapeError.self) { try TapeReader(path: path) }
  }
}

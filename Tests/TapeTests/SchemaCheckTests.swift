import Foundation
import Testing

@testable import Tape

/// The tables and views in a file are checked before anything is read.
struct SchemaCheckTests {
  private static let endless =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS row FROM n"

  private func refusal(of sql: String) throws -> TapeError? {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    try folder.alter(path, sql)
    do throws(TapeError) {
      _ = try TakeFile.open(path)
      return nil
    } catch {
      return error
    }
  }

  @Test(
    arguments: [
      "DROP TABLE ending; CREATE VIEW ending AS \(endless)",
      "DROP TABLE packet_store; CREATE VIRTUAL TABLE packet_store USING fts5(row)",
      "DROP TABLE tape; CREATE TABLE tape (first_step, steps, at_ns, body, digest)",
      "DROP TABLE rtcp",
      "DROP TABLE wire; CREATE TABLE WIRE (piece INTEGER PRIMARY KEY, bytes BLOB NOT NULL)",
      "ALTER TABLE take RENAME COLUMN redaction TO other",
      "ALTER TABLE state ADD COLUMN more INTEGER DEFAULT 1",
      "DROP TABLE ending; CREATE TABLE ending (steps TEXT NOT NULL, at_ns INTEGER NOT NULL, "
        + "digest BLOB NOT NULL)",
      "DROP TABLE ending; CREATE TABLE ending (steps INTEGER NOT NULL, at_ns INTEGER NOT NULL, "
        + "digest BLOB NOT NULL) STRICT",
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'row >> 16', '7') "
        + "WHERE name = 'state'; PRAGMA writable_schema = RESET",
    ])
  func tablesThatDifferFromATakesAreRefused(_ sql: String) throws {
    let error = try #require(try refusal(of: sql), "it was opened")
    #expect(error.kind == .invalid && error.reason.contains("restore"), "\(error)")
  }

  @Test func anUnknownIndexIsRefusedWithARemedy() throws {
    let error = try #require(try refusal(of: "CREATE INDEX more ON packet_store (size)"))
    #expect(error.reason.contains("DROP INDEX more"))
  }

  @Test func additionsAreListedAndNotRead() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    try folder.alter(
      path,
      """
      CREATE TABLE notes (text);
      CREATE VIEW mine AS SELECT * FROM notes;
      CREATE TRIGGER after_packet AFTER INSERT ON packet_store BEGIN DELETE FROM take; END;
      DROP VIEW bitrate;
      CREATE VIEW bitrate AS \(Self.endless);
      """)
    let connection = try TakeFile.openForQueries(path)
    let check = try SchemaCheck(connection, path: path, format: TakeHeader.currentFormat)
    #expect(check.additions == ["table notes", "view mine", "trigger after_packet"])
    #expect(check.otherViews == 1)
    // This version's view is used, not the file's, which never ends.
    #expect(try connection.integer("SELECT count(*) FROM bitrate") ?? -1 >= 0)
    #expect(try TapeAudit.run(path: path).alteration == nil)
  }

  @Test func aViewWithDifferentCommentsIsEqual() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let views = try #require(TakeSchema.views.first { $0.name == "bitrate" })
    try folder.alter(
      path, "DROP VIEW bitrate; CREATE VIEW bitrate AS -- the rate\n  \(views.query);")
    let connection = try TakeFile.openForQueries(path)
    let check = try SchemaCheck(connection, path: path, format: TakeHeader.currentFormat)
    #expect(check.otherViews == 0)
  }

  @Test func aValueOfAnotherTypeIsAnAlteration() throws {
    for sql in [
      "UPDATE tape SET at_ns = CAST(at_ns AS REAL) + 0.5", "UPDATE tape SET digest = hex(digest)",
      "UPDATE ending SET digest = CAST(digest AS TEXT)", "INSERT INTO ending SELECT * FROM ending",
      "UPDATE wire SET bytes = CAST(bytes AS TEXT)",
      "UPDATE packet_store SET size = size + 0.5 WHERE row = (SELECT min(row) FROM packet_store)",
      "INSERT INTO event VALUES (9223372036854775807, 1, 0, 'x', 'y')",
    ] {
      let folder = try TakeFolder()
      let path = try folder.record(SampleSteps.all)
      try folder.alter(path, sql)
      #expect(try TapeAudit.run(path: path).alteration != nil, "\(sql)")
    }
  }

  @Test(arguments: ["keeps_media = 7", "format = 6.5", "label = x'6162'"])
  func aTakeRowOfOtherTypesIsRefused(_ change: String) throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    try folder.alter(path, "UPDATE take SET \(change)")
    let error = #expect(throws: TapeError.self) { _ = try TapeReader(path: path) }
    #expect(error?.place == "take")
  }

  /// A copy of a take recorded before revisions has an empty revision column, which the digest does
  /// not cover.
  @Test func aTakeFromBeforeRevisionsHasNone() throws {
    let folder = try TakeFolder()
    let old = "\(FileManager.default.currentDirectoryPath)/Captures/formats/format-3.take"
    let reader = try TapeReader(path: old)
    let path = folder.file("copy.take")
    try TakeCopy(path: path, header: reader.header).finish()
    #expect(try TapeReader(path: path).header.revision == nil)
    try folder.alter(path, "UPDATE take SET revision = 1")
    let error = #expect(throws: TapeError.self) { _ = try TapeReader(path: path) }
    #expect(error?.place == "take")
  }

  @Test func aFormatInTheHeadOfTheFileIsThatOfTheTake() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    try folder.alter(path, "PRAGMA user_version = 5")
    let error = #expect(throws: TapeError.self) { _ = try TapeReader(path: path) }
    #expect(error?.reason.contains("differ") == true)
  }

  @Test func theLogOfAnotherTakeIsRefused() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let other = try folder.record(SampleSteps.call(packets: 50, payload: 20), as: "b.take") {
      $0.label = "another"
    }
    // A killed recorder leaves a take without its end, and with its last rows in a log.
    let connection = try SQLiteConnection(path: other, mode: .readWrite)
    try connection.execute(
      "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; VACUUM; DELETE FROM ending")
    try FileManager.default.copyItem(atPath: other + "-wal", toPath: path + "-wal")
    let copy = folder.file("c.take")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    try FileManager.default.moveItem(atPath: path + "-wal", toPath: copy + "-wal")
    try? FileManager.default.removeItem(atPath: path + "-shm")
    let error = #expect(throws: TapeError.self) { _ = try TapeReader(path: copy) }
    #expect(error?.reason.contains("is of another take") == true, "\(String(describing: error))")
  }

  @Test func takesOfAllFormatsHaveTheTablesOfTheirs() throws {
    let folder = FileManager.default.currentDirectoryPath + "/Captures/formats"
    for format in TakeHeader.oldestFormat...TakeHeader.currentFormat {
      let connection = try TakeFile.open("\(folder)/format-\(format).take")
      #expect(try connection.integer("PRAGMA user_version") == format)
    }
  }
}

import Foundation
import Testing
import Wire

@testable import Tape

struct TamperTests {
  /// Returns the alteration that an audit finds in a file.
  private func alteration(of path: String) throws -> Alteration? {
    try TapeAudit.run(path: path).alteration
  }

  /// Makes a copy of a recorded take, changed with SQL.
  private func spoiled(_ folder: TakeFolder, _ original: String, _ name: String, _ sql: String)
    throws -> String
  {
    let copy = folder.file(name)
    try? FileManager.default.removeItem(atPath: copy)
    try FileManager.default.copyItem(atPath: original, toPath: copy)
    try folder.alter(copy, sql)
    return copy
  }

  /// The tables that an endpoint recording fills; `clock` is for merged takes, `actor` and
  /// `coverage` are for machines of other kinds (see `MachineTests`), `presence` and `carriage` for
  /// rooms (see `RoomReplayTests`).
  static let recorded = Table.allCases.filter {
    ![.clock, .actor, .coverage, .presence, .carriage].contains($0)
  }

  /// Returns the number of a row in the middle of a table.
  private func row(_ table: Table, _ path: String) throws -> Int64 {
    let connection = try TakeFile.open(path)
    let name = table.storageName
    let found = try connection.integer(
      "SELECT row FROM \(name) ORDER BY row LIMIT 1 OFFSET (SELECT count(*) / 2 FROM \(name))")
    return try #require(found, "the sample has no row in \(name)")
  }

  @Test(arguments: TamperTests.recorded)
  func everyChangedValueIsFoundAtItsStep(_ table: Table) throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let row = try row(table, path)
    for column in table.storageColumns() where column != table.key {
      let changed = """
        CASE typeof(\(column))
          WHEN 'integer' THEN \(column) + 1
          WHEN 'real' THEN \(column) + 0.5
          WHEN 'text' THEN \(column) || '!'
          WHEN 'blob' THEN CAST(substr(\(column), 1, length(\(column)) / 2) || x'a5' AS BLOB)
          ELSE 1
        END
        """
      let copy = try spoiled(
        folder, path, "b.take",
        "UPDATE \(table.storageName) SET \(column) = \(changed) WHERE row = \(row)")
      let alteration = try alteration(of: copy)
      #expect(alteration?.step == RowNumber.step(of: row), "\(table.name).\(column)")
    }
  }

  @Test(arguments: TamperTests.recorded)
  func aMissingRowIsFoundAtItsStep(_ table: Table) throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let row = try row(table, path)
    let copy = try spoiled(
      folder, path, "b.take", "DELETE FROM \(table.storageName) WHERE row = \(row)")
    let alteration = try alteration(of: copy)
    #expect(alteration?.step == RowNumber.step(of: row))
    #expect(alteration?.reason.contains("missing") == true)
  }

  @Test(arguments: TamperTests.recorded)
  func aDuplicateRowIsFoundAtItsStep(_ table: Table) throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let row = try row(table, path)
    let columns = table.storageColumns().filter { $0 != table.key }.joined(separator: ", ")
    for (name, number) in [("behind the others", row | 0xff00), ("in its place", row)] {
      if table.key == "row", number == row { continue }
      let key = table.key == "row" ? "" : "\(table.key), "
      let value = table.key == "row" ? "" : "(SELECT max(\(table.key)) + 1 FROM \(table.name)), "
      let copy = try spoiled(
        folder, path, "b.take",
        """
        INSERT INTO \(table.storageName) (\(key)row, \(columns))
        SELECT \(value)\(number), \(columns) FROM \(table.storageName) WHERE row = \(row)
        """)
      let alteration = try alteration(of: copy)
      // Numbered rows are in order of their numbers, so a copied row may only be noticed at the
      // next row.
      if table.key == "row" {
        #expect(alteration?.step == RowNumber.step(of: row), "\(name)")
      } else {
        #expect(alteration != nil, "\(name)")
      }
    }
  }

  @Test func aChangedByteOfADatagramIsFoundAtItsStep() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 400, payload: 300))
    for step in [2, 3, 27, 200, 401] {
      let copy = try spoiled(
        folder, path, "b.take",
        """
        UPDATE wire SET bytes = CAST(substr(bytes, 1, (\(step) - 2) * 320 % 8152 + 5) || x'2a'
          || substr(bytes, (\(step) - 2) * 320 % 8152 + 7) AS BLOB)
        WHERE piece = (\(step) - 2) * 320 / 8152
        """)
      #expect(try alteration(of: copy)?.step == step)
    }
  }

  @Test(arguments: [
    "DELETE FROM wire WHERE piece = 1",
    "DELETE FROM wire WHERE piece = (SELECT max(piece) FROM wire)",
    "UPDATE wire SET piece = piece + 1 WHERE piece = (SELECT max(piece) FROM wire)",
    "UPDATE wire SET bytes = bytes || x'00' WHERE piece = 1",
    "UPDATE wire SET bytes = substr(bytes, 2) WHERE piece = 1",
    "UPDATE wire SET bytes = bytes || x'00' WHERE piece = (SELECT max(piece) FROM wire)",
    "UPDATE wire SET bytes = x'' WHERE piece = 0",
    "INSERT INTO wire VALUES (1000, x'00')", "INSERT INTO wire VALUES (-1, x'00')",
    "UPDATE packet_store SET size = -1 WHERE row >> 16 = 5",
    "UPDATE packet_store SET size = 9000000000000000000 WHERE row >> 16 = 5",
    "UPDATE packet_store SET size = size + 1, position = position + 1 WHERE row >> 16 = 5",
  ])
  func changesOfTheWireAreFound(_ sql: String) throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 400, payload: 300))
    #expect(try alteration(of: try spoiled(folder, path, "b.take", sql)) != nil)
  }

  @Test(arguments: [
    "DELETE FROM media", "UPDATE media SET bytes = bytes || x'00'",
    "UPDATE media SET bytes = substr(bytes, 2)", "UPDATE media SET piece = piece + 1",
    "INSERT INTO media VALUES (1000, x'00')", "INSERT INTO media VALUES (-1, x'00')",
    "UPDATE frame_store SET position = NULL", "UPDATE frame_store SET position = position + 1",
    "UPDATE frame_store SET size = -1", "UPDATE frame_store SET size = 9000000000000000000",
  ])
  func changesOfTheMediaAreFound(_ sql: String) throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    #expect(try alteration(of: try spoiled(folder, path, "b.take", sql)) != nil)
  }

  @Test func aChangedHeadIsFoundAtItsStep() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let connection = try TakeFile.open(path)
    let length = try connection.integer("SELECT length(body) FROM tape") ?? 0
    for offset in stride(from: 1, to: length, by: 5) {
      let copy = try spoiled(
        folder, path, "b.take",
        """
        UPDATE tape SET body = CAST(substr(body, 1, \(offset - 1))
          || CASE WHEN substr(body, \(offset), 1) = x'2a' THEN x'2b' ELSE x'2a' END
          || substr(body, \(offset + 1)) AS BLOB)
        """)
      #expect(try alteration(of: copy) != nil, "byte \(offset)")
    }
  }

  @Test(
    arguments: [
      ("DELETE FROM tape", 1),
      ("DELETE FROM tape WHERE first_step = (SELECT max(first_step) FROM tape)", nil),
      ("UPDATE tape SET steps = steps + 1", 1),
      ("UPDATE tape SET at_ns = at_ns + 1", 1),
      ("UPDATE tape SET digest = x'00'", nil),
      ("UPDATE ending SET steps = steps - 1", nil),
      ("UPDATE ending SET at_ns = 0", nil),
      ("UPDATE ending SET digest = x'00'", nil),
      ("INSERT INTO tape VALUES (1000, 0, 0, x'', x'')", nil),
      ("INSERT INTO event VALUES (65536 * 100000, 1, 0, 'x', 'y')", nil),
      ("INSERT INTO event VALUES (-5, 1, 0, 'x', 'y')", 1),
      ("INSERT INTO event VALUES (65535, 1, 0, 'x', 'y')", 1),
    ] as [(String, Int?)])
  func changesOfTheTapeItselfAreFound(_ sql: String, _ step: Int?) throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let found = try #require(try alteration(of: try spoiled(folder, path, "b.take", sql)))
    if let step { #expect(found.step == step) }
  }

  @Test(arguments: [
    "label = 'another'", "start_unix_ns = 0", "toolchain = '{}'", "keeps_media = 0",
    "tool_version = 'x'", "redaction = 1", "start_utc = ''", "digest = x'00'", "label = NULL || ''",
  ])
  func aChangedTakeRowIsAnError(_ change: String) throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let copy = folder.file("b.take")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    // If the schema itself rejects the change, there is nothing to test.
    guard (try? folder.alter(copy, "UPDATE take SET \(change)")) != nil else { return }
    let error = #expect(throws: TapeError.self) { _ = try TapeReader(path: copy) }
    #expect(error?.place == "take")
  }

  @Test func stepsBeforeAnAlterationAreStillRead() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 1000, payload: 50))
    try folder.alter(path, "UPDATE packet_store SET rtp_time = 1 WHERE row >> 16 = 700")
    let reader = try TapeReader(path: path)
    var good = 0
    let fault = #expect(throws: TapeFault.self) {
      while let chunk = try reader.next() { good += chunk.steps.count }
    }
    #expect(good == 699)
    guard case .altered(let alteration, let suspect)? = fault else {
      Issue.record("not an alteration")
      return
    }
    #expect(alteration.step == 700)
    #expect(suspect?.steps.first?.head.number == 700)
  }

  @Test func theSameStepsGiveTheSameDigest() throws {
    let folder = try TakeFolder()
    let paths = [
      try folder.record(SampleSteps.all), try folder.record(SampleSteps.all, as: "b.take"),
    ]
    let digests = try paths.map { path in
      let statement = try TakeFile.open(path).prepare("SELECT digest FROM ending")
      _ = try statement.step()
      return statement.bytes(0)
    }
    #expect(digests[0] == digests[1])
    #expect(digests[0].count == 32)
  }
}

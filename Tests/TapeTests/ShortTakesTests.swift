import Foundation
import Testing
import Wire

@testable import Queries
@testable import Tape

/// Reading short takes in succession yields the same results as reading each take alone.
struct ShortTakesTests {
  private static let captures = FileManager.default.currentDirectoryPath + "/Captures/"

  /// Returns a catalogue's entry for a take, or why there is none.
  private static func answer(_ path: String, _ short: ShortTakes?) throws -> String {
    do throws(TapeError) {
      let entry = try CatalogueEntry(
        path: path, reading: CatalogueReading(), through: short, isWanted: { true })
      return "\(entry?.rows ?? [])"
    } catch {
      return error.description
    }
  }

  @Test func takesOfEveryKindGiveTheSameResultsAsAlone() throws {
    let short = ShortTakes()
    let names = [
      "aiortc-retake-offers", "aiortc-retake-offers-waits", "aiortc-peer-offers",
      "chromium-peer-offers-vp9", "virtual-heavy-loss", "formats/format-2", "formats/format-4",
      "formats/format-5", "formats/format-7", "observed-aiortc", "observed-firefox-no-keys",
      "janus-room", "virtual-heavy-loss", "aiortc-retake-offers",
    ]
    for name in names {
      let path = Self.captures + name + ".take"
      #expect(try Self.answer(path, short) == Self.answer(path, nil), "\(name)")
    }
    #expect(short.schemaCount < names.count)
  }

  /// No take's data appears in the next one, and the takes' common schema is parsed only once.
  @Test func noDataRemainsFromThePreviousTake() throws {
    let folder = try TakeFolder()
    let short = ShortTakes()
    for count in [9, 0, 3, 40, 1] {
      let path = try folder.record(
        SampleSteps.call(packets: count, payload: count), as: "\(count).take")
      #expect(try Self.answer(path, short) == Self.answer(path, nil), "\(count) packets")
    }
    #expect(short.schemaCount == 1)
  }

  /// An altered schema is detected, even if its `schema_version` equals the previous take's.
  @Test(arguments: [
    "CREATE INDEX other ON peer (label)", "CREATE TABLE notes (text)",
    "CREATE VIEW notes AS SELECT 1", "DROP VIEW loss", "DROP TABLE speech",
    "DROP VIEW stream; CREATE VIEW stream AS SELECT 1 AS peer",
    "ALTER TABLE peer ADD COLUMN other INTEGER", "DELETE FROM take",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM "
      + "sqlite_schema WHERE name = 'state') WHERE name = 'candidate'",
    "PRAGMA user_version = 99", "PRAGMA application_id = 1", "PRAGMA user_version = 6",
    "UPDATE peer SET label = x'ff'",
  ])
  func alteredTakesAreDetected(_ sql: String) throws {
    let folder = try TakeFolder()
    let good = try folder.record(SampleSteps.call(packets: 5, payload: 9), as: "good.take")
    let other = try folder.record(SampleSteps.call(packets: 7, payload: 9), as: "other.take")
    let number = try TakeFile.open(other).integer("PRAGMA schema_version") ?? 0
    try folder.alter(other, sql + "; PRAGMA schema_version = \(number)")
    let short = ShortTakes()
    for path in [good, other, good, other] {
      #expect(try Self.answer(path, short) == Self.answer(path, nil), "\(sql)")
    }
  }

  /// Damage is reported for its take alone, and does not affect the next one.
  @Test func damagedTakesDoNoHarm() throws {
    let folder = try TakeFolder()
    let good = try folder.record(SampleSteps.call(packets: 30, payload: 900), as: "good.take")
    let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: good)))
    let short = ShortTakes()
    for place in stride(from: 0, to: whole.count, by: 8_192) {
      var bytes = whole
      for offset in place..<min(place + 300, bytes.count) { bytes[offset] ^= 0x5a }
      let path = folder.file("damaged.take")
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      #expect(try Self.answer(path, short) == Self.answer(path, nil), "page at \(place)")
      #expect(try Self.answer(good, short) == Self.answer(good, nil), "after page at \(place)")
    }
    let cut = folder.file("cut.take")
    try Data(whole.dropLast(5_000)).write(to: URL(fileURLWithPath: cut))
    #expect(try Self.answer(cut, short) == Self.answer(cut, nil))
  }

  /// A take that is being recorded has a log beside it, whose rows are read.
  @Test func takesThatAreBeingRecordedAreReadWithTheirLogs() throws {
    let folder = try TakeFolder()
    let short = ShortTakes()
    let good = try folder.record(SampleSteps.call(packets: 5, payload: 9), as: "good.take")
    _ = try Self.answer(good, short)
    let other = try folder.record(SampleSteps.call(packets: 7, payload: 9), as: "other.take")
    let connection = try SQLiteConnection(path: other, mode: .readWrite)
    try connection.execute("PRAGMA journal_mode = WAL; UPDATE peer SET label = 'in the log'")
    let answer = try Self.answer(other, short)
    #expect(answer.contains("in the log"))
    #expect(try answer == Self.answer(other, nil))
  }
}

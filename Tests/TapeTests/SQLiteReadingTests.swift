import Foundation
import Testing

@testable import Tape

/// Tests the limits on statements that a user writes.
struct SQLiteReadingTests {
  private func restricted(_ cellBytes: Int32 = 1_000) throws -> SQLiteConnection {
    let path = FileManager.default.temporaryDirectory.path + "/reading-\(UUID().uuidString).db"
    try Data().write(to: URL(fileURLWithPath: path))
    let connection = try SQLiteConnection(path: path, mode: .readWrite)
    try connection.execute(
      "CREATE TABLE t (a INTEGER, b BLOB); INSERT INTO t VALUES (1, x'0102');"
        + " CREATE INDEX i ON t (a)")
    try connection.restrict(SQLiteReadLimits(cellBytes: cellBytes))
    try FileManager.default.removeItem(atPath: path)
    return connection
  }

  @Test(arguments: [
    "SELECT a, hex(b) FROM t ORDER BY b", "WITH RECURSIVE n(i) AS (SELECT 1) SELECT i FROM n",
    "SELECT sum(a) OVER (ORDER BY b) FROM t", "PRAGMA table_info(t)", "PRAGMA user_version",
    "SELECT value FROM json_each('[1]')", "SELECT name FROM pragma_table_info('t')",
    "EXPLAIN QUERY PLAN SELECT * FROM t", "VALUES (1)", "PRAGMA integrity_check",
    "SELECT file FROM pragma_database_list", "SELECT name FROM pragma_module_list",
    "SELECT name FROM pragma_collation_list", "SELECT name FROM pragma_pragma_list",
    "SELECT name FROM pragma_index_xinfo('i')", "SELECT user_version FROM pragma_user_version",
    "SELECT * FROM pragma_integrity_check", "SELECT page_size FROM pragma_page_size",
  ])
  func readingIsAllowed(sql: String) throws {
    let connection = try restricted()
    let statement = try connection.prepare(sql)
    #expect(try statement.step())
  }

  @Test(arguments: [
    "ATTACH ':memory:' AS x", "ATTACH '/etc/passwd' AS x", "VACUUM INTO '/tmp/x.db'", "VACUUM",
    "PRAGMA temp_store_directory = '/tmp'", "PRAGMA user_version = 3", "PRAGMA writable_schema = 1",
    "PRAGMA journal_mode = DELETE", "PRAGMA mmap_size = 9", "PRAGMA hard_heap_limit = 0",
    "PRAGMA temp_store = FILE", "INSERT INTO t VALUES (1, 2)", "DELETE FROM t", "DROP TABLE t",
    "CREATE TABLE x (a)", "CREATE TEMP TABLE x (a)", "CREATE TEMP VIEW x AS SELECT 1",
    "CREATE VIRTUAL TABLE temp.x USING fts5(a)", "SELECT load_extension('x')", "BEGIN", "COMMIT",
    "SAVEPOINT s", "ANALYZE", "DETACH main", "ALTER TABLE t ADD COLUMN c",
    "SELECT * FROM pragma_journal_mode('delete')", "SELECT * FROM pragma_temp_store_directory",
  ])
  func allElseIsRefused(sql: String) throws {
    let connection = try restricted()
    #expect(throws: SQLiteError.self) {
      let statement = try connection.prepare(sql)
      _ = try statement.step()
    }
  }

  @Test(arguments: [
    "SELECT zeroblob(2000)", "SELECT replace(hex(zeroblob(400)), '0', 'xxx')",
    "SELECT group_concat(hex(zeroblob(400))) FROM json_each('[1, 2, 3]')",
  ])
  func cellsHaveALimit(sql: String) throws {
    let connection = try restricted()
    let statement = try? connection.prepare(sql)
    if let statement { #expect(throws: SQLiteError.self) { _ = try statement.step() } }
  }

  /// A read-only reader gets this version's views, not the file's.
  @Test(arguments: [false, true])
  func queriesUseTheViewsOfThisVersion(keepsInMemory: Bool) throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    try folder.alter(
      path, "DROP VIEW round_trip; CREATE VIEW round_trip AS SELECT 'of the file' AS peer")
    let connection = try TakeFile.openForQueries(path, keepsInMemory: keepsInMemory)
    try connection.restrict(SQLiteReadLimits(cellBytes: 1 << 20))
    for view in TakeSchema.views {
      let rows = try connection.prepare("SELECT * FROM \(view.name)")
      while try rows.step() { #expect(rows.text(0) != "of the file") }
    }
  }

  @Test func aValueThatIsNotBoundIsAnError() throws {
    let connection = try restricted()
    let statement = try connection.prepare("SELECT ?")
    statement.bind(1, at: 1)
    #expect(try statement.step() && statement.integer(0) == 1)
    statement.reset()
    statement.bind(2, at: 2)
    #expect(throws: SQLiteError.self) { try statement.step() }
    statement.reset()
    #expect(try statement.step())
    // A running statement accepts no values.
    statement.bind(3, at: 1)
    #expect(throws: SQLiteError.self) { try statement.step() }
  }
}

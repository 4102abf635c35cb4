import CSQLite
import Glibc
import Wire

/// An open SQLite database with one owner; used from one thread at a time.
///
/// Statements may outlive it: SQLite closes the file when the last of them is gone.
package struct SQLiteConnection: ~Copyable {
  /// How a database is opened.
  package enum Mode: Sendable {
    /// Reading and writing a file that is there.
    case readWrite
    case readOnly
  }

  let handle: OpaquePointer

  /// Opens a database by path or, when it begins with `file:///`, by URI.
  package init(path: String, mode: Mode) throws(SQLiteError) {
    var opened: OpaquePointer?
    let flags =
      (mode == .readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_NOMUTEX
      | SQLITE_OPEN_EXRESCODE | (path.hasPrefix("file:///") ? SQLITE_OPEN_URI : 0)
    let code = sqlite3_open_v2(path.systemPath, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let error = SQLiteConnection.error(code, of: opened)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, SQLiteConnection.lengthLimit)
    sqlite3_busy_timeout(handle, 2_000)
  }

  deinit { sqlite3_close_v2(handle) }

  /// The longest row that is written or read, so that a hostile file cannot ask for gigabytes.
  private static let lengthLimit: Int32 = 256 << 20

  static func error(_ code: Int32, of handle: OpaquePointer?) -> SQLiteError {
    let words = handle.flatMap { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)
    return SQLiteError(
      code: SQLiteError.Code(rawValue: code), message: words.map { String(cString: $0) } ?? "")
  }

  /// Has somebody asked now and then while statements run, who may end them with the code
  /// `interrupted`; nil ends the asking.
  ///
  /// The watch has to outlive the statements: it is not kept.
  package func setWatch(_ watch: SQLiteWatch?) {
    guard let watch else { return sqlite3_progress_handler(handle, 0, nil, nil) }
    sqlite3_progress_handler(
      handle, SQLiteConnection.operationsPerQuestion,
      { context in
        guard let context else { return 0 }
        let watch = Unmanaged<SQLiteWatch>.fromOpaque(context).takeUnretainedValue()
        return watch.goesOn() ? 0 : 1
      }, Unmanaged.passUnretained(watch).toOpaque())
  }

  /// Operations of SQLite's virtual machine, of which most take far less than a microsecond.
  private static let operationsPerQuestion: Int32 = 2_000

  /// Runs statements that give no rows.
  package func execute(_ sql: String) throws(SQLiteError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw SQLiteConnection.error(code, of: handle) }
  }

  /// Compiles one statement; text after it is refused, so that nothing is silently left out.
  package func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteConnection.prepare(sql, on: handle)
  }

  /// The same for a connection that somebody else keeps open.
  static func prepare(
    _ sql: String, on handle: OpaquePointer
  ) throws(SQLiteError) -> SQLiteStatement {
    var compiled: OpaquePointer?
    var rest = 0
    let code = sql.withCString { text in
      var tail: UnsafePointer<CChar>?
      let code = sqlite3_prepare_v3(
        handle, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &compiled, &tail)
      rest = tail.map { strspn($0, " \t\r\n;") == strlen($0) ? 0 : 1 } ?? 0
      return code
    }
    guard code == SQLITE_OK else { throw SQLiteConnection.error(code, of: handle) }
    guard let compiled else {
      throw SQLiteError(code: .misuse, message: "an empty statement")
    }
    let statement = SQLiteStatement(compiled, of: handle)
    guard rest == 0 else {
      throw SQLiteError(code: .misuse, message: "more than one statement; give one at a time")
    }
    return statement
  }

  /// The first column of the first row as an integer; nil when there is no row.
  package func integer(_ sql: String) throws(SQLiteError) -> Int64? {
    let statement = try prepare(sql)
    return try statement.step() ? statement.integer(0) : nil
  }

  /// The first column of the first row as bytes; nil when there is no row.
  func bytes(_ sql: String) throws(SQLiteError) -> [UInt8]? {
    let statement = try prepare(sql)
    return try statement.step() ? statement.bytes(0) : nil
  }

  /// Refuses values of more bytes from here on, whether they are read or made.
  func limitCells(to bytes: Int32) { sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, bytes) }

  /// The bytes that the database has as a file; none where memory is short.
  func serialized() -> [UInt8] {
    var count: sqlite3_int64 = 0
    guard let bytes = sqlite3_serialize(handle, "main", &count, 0) else { return [] }
    defer { sqlite3_free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }

  /// Makes the module of computed views and the functions of queries known.
  func addViewModule() throws(SQLiteError) {
    try ViewModule.install(on: handle)
    try SQLiteFunctions.install(on: handle)
  }

  /// How many bytes the file has, by the pages it counts.
  package func byteCount() throws(SQLiteError) -> Int64 {
    (try integer("PRAGMA page_count") ?? 0) * (try integer("PRAGMA page_size") ?? 0)
  }
}

/// Somebody who is asked whether statements that run shall continue.
package final class SQLiteWatch {
  let goesOn: () -> Bool

  package init(_ goesOn: @escaping () -> Bool) { self.goesOn = goesOn }
}

import CSQLite
import Glibc

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

  private let handle: OpaquePointer

  /// Opens a database by path or, when it begins with `file:///`, by URI.
  package init(path: String, mode: Mode) throws(SQLiteError) {
    var opened: OpaquePointer?
    let flags =
      (mode == .readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_NOMUTEX
      | SQLITE_OPEN_EXRESCODE | (path.hasPrefix("file:///") ? SQLITE_OPEN_URI : 0)
    let code = sqlite3_open_v2(path, &opened, flags, nil)
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

  fileprivate static func error(_ code: Int32, of handle: OpaquePointer?) -> SQLiteError {
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
    var statement = try prepare(sql)
    return try statement.step() ? statement.integer(0) : nil
  }

  /// How many bytes the file has, by the pages it counts.
  package func byteCount() throws(SQLiteError) -> Int64 {
    (try integer("PRAGMA page_count") ?? 0) * (try integer("PRAGMA page_size") ?? 0)
  }
}

/// Somebody who is asked whether statements that run shall go on.
package final class SQLiteWatch {
  let goesOn: () -> Bool

  package init(_ goesOn: @escaping () -> Bool) { self.goesOn = goesOn }
}

/// A compiled statement with one owner.
package struct SQLiteStatement: ~Copyable {
  private let statement: OpaquePointer
  private let connection: OpaquePointer

  fileprivate init(_ statement: OpaquePointer, of connection: OpaquePointer) {
    self.statement = statement
    self.connection = connection
  }

  deinit { sqlite3_finalize(statement) }

  /// Goes to the next row; false when there is none.
  package mutating func step() throws(SQLiteError) -> Bool {
    switch sqlite3_step(statement) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw SQLiteConnection.error(code, of: connection)
    }
  }

  /// Makes the statement ready to run again; what was bound stays.
  package mutating func reset() { sqlite3_reset(statement) }

  /// Binds an integer to a parameter, counted from 1.
  package mutating func bind(_ value: Int64, at index: Int32) {
    sqlite3_bind_int64(statement, index, value)
  }

  package mutating func bindNull(at index: Int32) { sqlite3_bind_null(statement, index) }

  /// Runs an insert: an optional row number, then the values in their order, none of them copied.
  ///
  /// - Parameter gap: a value that is not bound, and how many parameters stand in its place.
  package mutating func insert(
    row: Int64?, _ values: ArraySlice<Value>, gap: (index: Int, parameters: Int)? = nil
  ) throws(SQLiteError) {
    var index: Int32 = 1
    if let row {
      sqlite3_bind_int64(statement, index, row)
      index += 1
    }
    let code = run(values, parameter: index, gap: gap)
    sqlite3_reset(statement)
    guard code == SQLITE_DONE else { throw SQLiteConnection.error(code, of: connection) }
  }

  /// Binds what is left and runs.
  ///
  /// Text and bytes are borrowed for the length of the inner call, so each of them nests one level.
  private func run(
    _ values: ArraySlice<Value>, parameter: Int32, gap: (index: Int, parameters: Int)?
  ) -> Int32 {
    var index = parameter
    for position in values.indices {
      if let gap, gap.index == position {
        index += Int32(gap.parameters)
        continue
      }
      switch values[position] {
      case .null: sqlite3_bind_null(statement, index)
      case .integer(let value): sqlite3_bind_int64(statement, index, value)
      case .real(let value): sqlite3_bind_double(statement, index, value)
      case .text(var text):
        return text.withUTF8 { bytes in
          _ = bytes.withMemoryRebound(to: CChar.self) { characters in
            // A null pointer would bind NULL; an empty text has none of its own.
            if let base = characters.baseAddress {
              sqlite3_bind_text(statement, index, base, Int32(characters.count), nil)
            } else {
              sqlite3_bind_text(statement, index, "", 0, transient)
            }
          }
          return run(values[(position + 1)...], parameter: index + 1, gap: gap)
        }
      case .blob(let blob):
        return blob.withUnsafeBytes { bytes in
          if let base = bytes.baseAddress, !bytes.isEmpty {
            sqlite3_bind_blob(statement, index, base, Int32(bytes.count), nil)
          } else {
            sqlite3_bind_zeroblob(statement, index, 0)
          }
          return run(values[(position + 1)...], parameter: index + 1, gap: gap)
        }
      }
      index += 1
    }
    return sqlite3_step(statement)
  }
}

/// Tells SQLite to copy what is bound.
private var transient: sqlite3_destructor_type {
  unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}

// The columns of the present row, counted from 0.
extension SQLiteStatement {
  package var columnCount: Int { Int(sqlite3_column_count(statement)) }

  /// The name of a result column.
  package func columnName(_ column: Int) -> String {
    sqlite3_column_name(statement, Int32(column)).map { String(cString: $0) } ?? ""
  }

  /// Whether the statement leaves the file as it is.
  package var isReadOnly: Bool { sqlite3_stmt_readonly(statement) != 0 }

  /// Whether a column has no value.
  package func isNull(_ column: Int) -> Bool {
    sqlite3_column_type(statement, Int32(column)) == SQLITE_NULL
  }

  package func integer(_ column: Int) -> Int64 { sqlite3_column_int64(statement, Int32(column)) }

  /// The number of a column; 0 for NULL.
  package func real(_ column: Int) -> Double { sqlite3_column_double(statement, Int32(column)) }

  /// The text of a column; nil for NULL.
  package func text(_ column: Int) -> String? {
    guard let start = sqlite3_column_text(statement, Int32(column)) else { return nil }
    let count = Int(sqlite3_column_bytes(statement, Int32(column)))
    return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }

  /// The bytes of a column, borrowed until the statement moves on.
  @_lifetime(borrow self)
  package func blob(_ column: Int) -> RawSpan {
    let start = sqlite3_column_blob(statement, Int32(column))
    let count = Int(sqlite3_column_bytes(statement, Int32(column)))
    let span = RawSpan(
      _unsafeBytes: UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    return _overrideLifetime(span, borrowing: self)
  }

  /// The bytes of a column, copied; none for NULL.
  package func bytes(_ column: Int) -> [UInt8] {
    blob(column).withUnsafeBytes { [UInt8]($0) }
  }

  /// Adds the values of several columns to a list; text that is not UTF-8 becomes null, with false.
  func append(_ columns: Range<Int>, to rows: inout RowList) -> Bool {
    var isGood = true
    for column in columns {
      let value = value(column)
      rows.append(value ?? .null)
      isGood = isGood && value != nil
    }
    return isGood
  }

  /// The value of a column as it is kept; nil for text that is not UTF-8.
  package func value(_ column: Int) -> Value? {
    let index = Int32(column)
    switch sqlite3_column_type(statement, index) {
    case SQLITE_INTEGER: return .integer(sqlite3_column_int64(statement, index))
    case SQLITE_FLOAT: return .real(sqlite3_column_double(statement, index))
    case SQLITE_TEXT:
      guard let start = sqlite3_column_text(statement, index) else { return .text("") }
      let bytes = UnsafeBufferPointer(
        start: start, count: Int(sqlite3_column_bytes(statement, index)))
      return String(validating: bytes, as: UTF8.self).map { .text($0) }
    case SQLITE_BLOB:
      guard let start = sqlite3_column_blob(statement, index) else { return .blob([]) }
      let bytes = UnsafeRawBufferPointer(
        start: start, count: Int(sqlite3_column_bytes(statement, index)))
      return .blob([UInt8](bytes))
    default: return .null
    }
  }
}

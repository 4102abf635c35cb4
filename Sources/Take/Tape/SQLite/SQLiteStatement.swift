import CSQLite
import Glibc

/// A compiled statement with a single owner; its parameters can be bound.
package struct SQLiteStatement: ~Copyable {
  private let statement: OpaquePointer
  private let connection: OpaquePointer
  /// The store to which the statement returns after use; nil if the statement is destroyed then.
  private let home: StatementStore.Home?
  private let binding = Binding()

  /// The first error of `bind`, which `step` reports.
  private final class Binding {
    var code = SQLITE_OK
  }

  init(
    _ statement: OpaquePointer, of connection: OpaquePointer, _ home: StatementStore.Home? = nil
  ) {
    self.statement = statement
    self.connection = connection
    self.home = home
  }

  deinit {
    if let home { home.receive(statement) } else { sqlite3_finalize(statement) }
  }

  /// Advances to the next row; returns false if there is none.
  ///
  /// An error of a previous `bind` is thrown here.
  package func step() throws(SQLiteError) -> Bool {
    guard binding.code == SQLITE_OK else {
      throw SQLiteConnection.error(binding.code, of: connection)
    }
    switch sqlite3_step(statement) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw SQLiteConnection.error(code, of: connection)
    }
  }

  /// Resets the statement for another run with the same bindings.
  package func reset() {
    binding.code = SQLITE_OK
    sqlite3_reset(statement)
  }

  /// Binds an integer to a parameter, counted from 1.
  package func bind(_ value: Int64, at index: Int32) {
    bound(sqlite3_bind_int64(statement, index, value))
  }

  package func bindNull(at index: Int32) { bound(sqlite3_bind_null(statement, index)) }

  /// Keeps the first error until the statement runs.
  private func bound(_ code: Int32) { if binding.code == SQLITE_OK { binding.code = code } }

  /// Runs an INSERT whose parameters are the given values.
  package func insert(_ values: [Value]) throws(SQLiteError) {
    let bytes = ValueBytes(values)
    try insert(row: nil, bytes, 0..<bytes.count)
  }

  /// Runs an INSERT with an optional row number and a range of values, which are not copied.
  ///
  /// - Parameter gap: the index of a value that is not bound, and the number of parameters in its
  ///   place.
  func insert(
    row: Int64?, _ values: borrowing ValueBytes, _ range: Range<Int>,
    gap: (index: Int, parameters: Int)? = nil
  ) throws(SQLiteError) {
    // The bindings borrow the bytes while this closure runs.
    let code = values.withBytes { _ in
      var parameter: Int32 = 1
      // If a binding fails, the statement must not run, because it would insert NULL.
      var failed = SQLITE_OK
      if let row {
        failed = sqlite3_bind_int64(statement, parameter, row)
        parameter += 1
      }
      var offset = range.lowerBound
      var index = 0
      while offset < range.upperBound {
        if let gap, gap.index == index {
          parameter += Int32(gap.parameters)
        } else {
          let code = bind(values, offset, at: parameter)
          if failed == SQLITE_OK { failed = code }
          parameter += 1
        }
        offset = values.end(ofValueAt: offset)
        index += 1
      }
      return failed == SQLITE_OK ? sqlite3_step(statement) : failed
    }
    try conclude(code)
  }

  /// Resets the statement after an INSERT; throws an error if it failed.
  private func conclude(_ code: Int32) throws(SQLiteError) {
    guard code != SQLITE_DONE else {
      sqlite3_reset(statement)
      return
    }
    // The message is read first, because resetting replaces it.
    let error = SQLiteConnection.error(code, of: connection)
    sqlite3_reset(statement)
    throw error
  }

  /// Binds the value at an offset, whose bytes are not copied.
  private func bind(
    _ values: borrowing ValueBytes, _ offset: Int, at parameter: Int32
  ) -> Int32 {
    switch values.form(at: offset) {
    case .null: sqlite3_bind_null(statement, parameter)
    case .integer(let number): sqlite3_bind_int64(statement, parameter, number)
    case .real(let number): sqlite3_bind_double(statement, parameter, number)
    case .text:
      values.withContents(at: offset) { text in
        sqlite3_bind_text64(
          statement, parameter, text.baseAddress?.assumingMemoryBound(to: CChar.self),
          sqlite3_uint64(text.count), nil, UInt8(SQLITE_UTF8))
      }
    case .blob:
      values.withContents(at: offset) { blob in
        bind(blob, at: parameter)
      }
    }
  }

  /// Binds bytes, which are not copied; an empty array is an empty blob, not NULL.
  private func bind(_ blob: UnsafeRawBufferPointer, at parameter: Int32) -> Int32 {
    blob.isEmpty
      ? sqlite3_bind_zeroblob(statement, parameter, 0)
      : sqlite3_bind_blob64(
        statement, parameter, blob.baseAddress, sqlite3_uint64(blob.count), nil)
  }

  /// Runs an INSERT with a row number and a blob, which is not copied.
  func insert(row: Int64, blob: UnsafeRawBufferPointer) throws(SQLiteError) {
    var code = sqlite3_bind_int64(statement, 1, row)
    if code == SQLITE_OK {
      code =
        blob.baseAddress == nil
        ? sqlite3_bind_null(statement, 2)
        : sqlite3_bind_blob64(
          statement, 2, blob.baseAddress, sqlite3_uint64(blob.count), nil)
    }
    if code == SQLITE_OK { code = sqlite3_step(statement) }
    try conclude(code)
  }
}

// Columns of the current row, counted from 0.
extension SQLiteStatement {
  package var columnCount: Int { Int(sqlite3_column_count(statement)) }

  /// Returns the name of a column in the result; empty if there is no such column.
  package func columnName(_ column: Int) -> String {
    sqlite3_column_name(statement, Int32(column)).map { String(cString: $0) } ?? ""
  }

  /// Whether the statement does not change the database.
  package var isReadOnly: Bool { sqlite3_stmt_readonly(statement) != 0 }

  package func isNull(_ column: Int) -> Bool {
    sqlite3_column_type(statement, Int32(column)) == SQLITE_NULL
  }

  /// Returns an integer that is safe to compute with: clamped to ±`Int64.largestRead`, and 0 for
  /// NULL.
  package func integer(_ column: Int) -> Int64 {
    min(max(exactInteger(column), -Int64.largestRead), Int64.largestRead)
  }

  /// Returns an integer exactly as stored, for checks.
  func exactInteger(_ column: Int) -> Int64 { sqlite3_column_int64(statement, Int32(column)) }

  /// Returns the real number in a column; 0 for NULL.
  package func real(_ column: Int) -> Double { sqlite3_column_double(statement, Int32(column)) }

  /// Returns the text in a column; nil for NULL.
  package func text(_ column: Int) -> String? {
    guard let start = sqlite3_column_text(statement, Int32(column)) else { return nil }
    let count = Int(sqlite3_column_bytes(statement, Int32(column)))
    return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }

  /// Lends the bytes of a column, which are valid until the statement is stepped or reset.
  package func withBlob<Result>(_ column: Int, _ body: (RawSpan) -> Result) -> Result {
    body(RawSpan(_unsafeBytes: lentBytes(column)))
  }

  /// Lends the bytes of a column; the caller must not use them after stepping the statement.
  func lentBytes(_ column: Int) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(statement, Int32(column))
    let count = Int(sqlite3_column_bytes(statement, Int32(column)))
    return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
  }

  /// Returns a copy of the bytes in a column; empty for NULL.
  package func bytes(_ column: Int) -> [UInt8] {
    [UInt8](lentBytes(column))
  }

  /// Appends the values of columns; a string that is not UTF-8 becomes null, and false is returned.
  func append(_ columns: Range<Int>, to bytes: inout ValueBytes) -> Bool {
    var isGood = true
    for column in columns where !append(column, to: &bytes) { isGood = false }
    return isGood
  }

  private func append(_ column: Int, to bytes: inout ValueBytes) -> Bool {
    // Looks the column up once instead of in each call below; no other thread uses the connection.
    let value = sqlite3_column_value(statement, Int32(column))
    switch sqlite3_value_type(value) {
    case SQLITE_INTEGER: bytes.append(integer: sqlite3_value_int64(value))
    case SQLITE_FLOAT: bytes.append(real: sqlite3_value_double(value))
    case SQLITE_TEXT:
      let text = UnsafeBufferPointer(
        start: sqlite3_value_text(value), count: Int(sqlite3_value_bytes(value)))
      guard isUTF8(text) else {
        bytes.appendNull()
        return false
      }
      bytes.appendText(text)
    case SQLITE_BLOB:
      bytes.append(
        blob: UnsafeRawBufferPointer(
          start: sqlite3_value_blob(value), count: Int(sqlite3_value_bytes(value))))
    default: bytes.appendNull()
    }
    return true
  }

  /// The type of a stored value, which may differ from the column's declared type.
  package enum StorageClass: Sendable {
    case null
    case integer
    case real
    case text
    case blob
  }

  /// The types of the values in the current row.
  package var storageClasses: [StorageClass] {
    (0..<columnCount).map { storageClass($0) }
  }

  package func storageClass(_ column: Int) -> StorageClass {
    switch sqlite3_column_type(statement, Int32(column)) {
    case SQLITE_INTEGER: .integer
    case SQLITE_FLOAT: .real
    case SQLITE_TEXT: .text
    case SQLITE_BLOB: .blob
    default: .null
    }
  }

  /// Returns whether a column contains the value, with the same SQLite type.
  package func has(_ value: Value, _ column: Int) -> Bool {
    let index = Int32(column)
    let type = sqlite3_column_type(statement, index)
    switch value {
    case .null: return type == SQLITE_NULL
    case .integer(let number):
      return type == SQLITE_INTEGER && sqlite3_column_int64(statement, index) == number
    case .real(let number):
      return type == SQLITE_FLOAT && sqlite3_column_double(statement, index) == number
    case .text(let text):
      return type == SQLITE_TEXT && lentBytes(column).elementsEqual(text.utf8)
    case .blob(let bytes):
      return type == SQLITE_BLOB && lentBytes(column).elementsEqual(bytes)
    }
  }

  /// Returns the value in a column as it is stored; nil for a string that is not UTF-8.
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

extension Int64 {
  /// The largest magnitude of integers in computed answers; sums and differences of two of them fit
  /// into 64 bits.
  ///
  /// In nanoseconds it is 146 years; as Unix time, the year 2116.
  package static let largestRead: Int64 = 1 << 62 - 1
}

private func isUTF8(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
  do throws(UTF8.ValidationError) {
    _ = try UTF8Span(validating: text.span)
    return true
  } catch {
    return false
  }
}

import CSQLite
import Glibc

/// A compiled statement with one owner.
package struct SQLiteStatement: ~Copyable {
  private let statement: OpaquePointer
  private let connection: OpaquePointer
  /// Where it goes after its use; nil: nowhere.
  private let home: StatementStore.Home?
  private let binding = Binding()

  /// What became of the values that were bound one by one.
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

  /// Goes to the next row; false when there is none.
  ///
  /// A value that could not be bound is told of here.
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

  /// Makes the statement ready to run again; what was bound stays.
  package func reset() {
    binding.code = SQLITE_OK
    sqlite3_reset(statement)
  }

  /// Binds an integer to a parameter, counted from 1.
  package func bind(_ value: Int64, at index: Int32) {
    bound(sqlite3_bind_int64(statement, index, value))
  }

  package func bindNull(at index: Int32) { bound(sqlite3_bind_null(statement, index)) }

  /// Keeps the first failure until the statement is run.
  private func bound(_ code: Int32) { if binding.code == SQLITE_OK { binding.code = code } }

  /// Runs an insert of values, in their order.
  package func insert(_ values: [Value]) throws(SQLiteError) {
    let bytes = ValueBytes(values)
    try insert(row: nil, bytes, 0..<bytes.count)
  }

  /// Runs an insert: an optional row number, then the values in a range of bytes in their order,
  /// none of them copied.
  ///
  /// - Parameter gap: a value that is not bound, and how many parameters stand in its place.
  func insert(
    row: Int64?, _ values: borrowing ValueBytes, _ range: Range<Int>,
    gap: (index: Int, parameters: Int)? = nil
  ) throws(SQLiteError) {
    // What is bound is borrowed for as long as the bytes are lent.
    let code = values.withBytes { _ in
      var parameter: Int32 = 1
      // A value that is not bound would be NULL in the row.
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

  /// Makes the statement ready to run again after an insert that ended with a code.
  private func conclude(_ code: Int32) throws(SQLiteError) {
    guard code != SQLITE_DONE else {
      sqlite3_reset(statement)
      return
    }
    // The words are those of this failure, and not those of the reset.
    let error = SQLiteConnection.error(code, of: connection)
    sqlite3_reset(statement)
    throw error
  }

  /// Binds the value that begins at an offset, without a copy of its bytes.
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

  /// Binds bytes, which are not copied; none of them are an empty blob, and not NULL.
  private func bind(_ blob: UnsafeRawBufferPointer, at parameter: Int32) -> Int32 {
    blob.isEmpty
      ? sqlite3_bind_zeroblob(statement, parameter, 0)
      : sqlite3_bind_blob64(
        statement, parameter, blob.baseAddress, sqlite3_uint64(blob.count), nil)
  }

  /// Runs an insert of a row number and bytes, which are not copied.
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

  /// The number of a column, for answers: one beyond `Int64.largestRead` becomes that one; 0 for
  /// NULL.
  package func integer(_ column: Int) -> Int64 {
    min(max(exactInteger(column), -Int64.largestRead), Int64.largestRead)
  }

  /// The number of a column as it is stored, which may be any, for whoever checks it.
  func exactInteger(_ column: Int) -> Int64 { sqlite3_column_int64(statement, Int32(column)) }

  /// The number of a column; 0 for NULL.
  package func real(_ column: Int) -> Double { sqlite3_column_double(statement, Int32(column)) }

  /// The text of a column; nil for NULL.
  package func text(_ column: Int) -> String? {
    guard let start = sqlite3_column_text(statement, Int32(column)) else { return nil }
    let count = Int(sqlite3_column_bytes(statement, Int32(column)))
    return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }

  /// Lends the bytes of a column; they are gone when the statement moves on, so that nobody keeps
  /// them.
  package func withBlob<Result>(_ column: Int, _ body: (RawSpan) -> Result) -> Result {
    body(RawSpan(_unsafeBytes: lentBytes(column)))
  }

  /// The same for whoever alone steps the statement, and takes no notice of them after that.
  func lentBytes(_ column: Int) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(statement, Int32(column))
    let count = Int(sqlite3_column_bytes(statement, Int32(column)))
    return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
  }

  /// The bytes of a column, copied; none for NULL.
  package func bytes(_ column: Int) -> [UInt8] {
    [UInt8](lentBytes(column))
  }

  /// Appends the values of several columns; text that is not UTF-8 becomes null, with false.
  func append(_ columns: Range<Int>, to bytes: inout ValueBytes) -> Bool {
    var isGood = true
    for column in columns where !append(column, to: &bytes) { isGood = false }
    return isGood
  }

  private func append(_ column: Int, to bytes: inout ValueBytes) -> Bool {
    // One look-up of the column instead of one for each question; nobody else has the connection.
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

  /// What a column holds, whatever the table says of it.
  package enum StorageClass: Sendable {
    case null
    case integer
    case real
    case text
    case blob
  }

  /// What the columns of the present row hold, in their order.
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

  /// Whether a column has a value, of its own type.
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

extension Int64 {
  /// The largest magnitude of a number that answers are computed of: the sum and the difference of
  /// any two still fit, whatever a file holds.
  ///
  /// In nanoseconds it is 146 years, and of Unix time the year 2116.
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

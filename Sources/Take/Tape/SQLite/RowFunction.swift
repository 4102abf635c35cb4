import CSQLite

/// The values of the row that a query is at, counted from 0.
struct RowValues {
  fileprivate let values: UnsafeMutablePointer<OpaquePointer?>

  /// Returns an integer for computing answers, clamped like those of `SQLiteStatement`; 0 for NULL.
  func integer(_ column: Int) -> Int64 {
    min(max(sqlite3_value_int64(values[column]), -Int64.largestRead), Int64.largestRead)
  }

  func isNull(_ column: Int) -> Bool { sqlite3_value_type(values[column]) == SQLITE_NULL }
}

/// A function of SQL that receives each row of a table.
///
/// SQLite passes all values of a row in one call. A statement that stops at each row, and is asked
/// for each column, takes half as long again.
final class RowFunction {
  private static let name = "retake_row"
  /// Receives the rows of the current query and returns whether to continue; nil between queries.
  private var receive: ((RowValues) -> Bool)?
  private let handle: OpaquePointer

  /// Registers the function with a connection, which retains it.
  init(on handle: OpaquePointer) throws(SQLiteError) {
    self.handle = handle
    let code = sqlite3_create_function_v2(
      handle, Self.name, -1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
      Unmanaged.passRetained(self).toOpaque(),
      { context, _, values in
        guard let values, let owner = sqlite3_user_data(context) else { return }
        let function = Unmanaged<RowFunction>.fromOpaque(owner).takeUnretainedValue()
        guard let receive = function.receive, !receive(RowValues(values: values)) else { return }
        sqlite3_result_error(context, "the take has more rows than are held in memory", -1)
      }, nil, nil,
      { owner in
        guard let owner else { return }
        Unmanaged<RowFunction>.fromOpaque(owner).release()
      })
    guard code == SQLITE_OK else { throw SQLiteConnection.error(code, of: handle) }
  }

  /// Passes a table's rows to a closure in their order; throws if the closure returns false.
  func forEachRow(
    of table: String, _ columns: String, _ statements: StatementStore?,
    _ body: (RowValues) -> Bool
  ) throws(SQLiteError) {
    try withoutActuallyEscaping(body) { (body) throws(SQLiteError) in
      let statement = try SQLiteConnection.prepare(
        "SELECT 1 FROM \(table) WHERE \(Self.name)(\(columns)) ORDER BY row", on: handle,
        statements)
      receive = body
      defer { receive = nil }
      // The function returns NULL, so no row is left over.
      _ = try statement.step()
    }
  }
}

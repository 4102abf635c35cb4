import Queries
public import Tape

extension Take {
  /// Runs one read-only SQL statement; `Schema` explains every table and column.
  ///
  ///     let states = try take.query("SELECT machine, to_state FROM state").all()
  ///
  /// - Throws: `TakeError` with the place `sql` when the query cannot be run.
  public func query(_ sql: String) throws(TakeError) -> TakeReader<TakeRow> {
    let source = try QuerySource(path: path, sql: sql)
    return TakeReader { () throws(TakeError) in try source.next() }
  }

  /// Runs one read-only SQL statement and reads its columns, in order, as the given types.
  ///
  ///     let rows = try take.query(
  ///       "SELECT kind, since_connected_ms FROM first_frame", as: String.self, Double?.self)
  ///     while let (kind, delay) = try rows.next() { print(kind, delay ?? 0) }
  ///
  /// - Throws: `TakeError` when the query cannot be run; the reader throws it when a column has
  ///   a value of another type.
  public func query<each Field: TakeReadable>(
    _ sql: String, as types: repeat (each Field).Type
  ) throws(TakeError) -> TakeReader<(repeat each Field)> {
    let source = try QuerySource(path: path, sql: sql)
    return TakeReader { () throws(TakeError) -> (repeat each Field)? in
      guard let row = try source.next() else { return nil }
      var column = -1
      func field<Value: TakeReadable>(_ type: Value.Type) throws(TakeError) -> Value {
        column += 1
        return try row.value(at: column)
      }
      return try (repeat field((each Field).self))
    }
  }

  /// Runs one read-only SQL statement and reads its first column as a type.
  public func query<Field: TakeReadable>(
    _ sql: String, as type: Field.Type
  ) throws(TakeError) -> TakeReader<Field> {
    let source = try QuerySource(path: path, sql: sql)
    return TakeReader { () throws(TakeError) -> Field? in
      guard let row = try source.next() else { return nil }
      // Without the explicit type, an optional field that is nil would be taken for the end.
      let field: Field = try row.value(at: 0)
      return field
    }
  }

  /// All rows of a type, in the order of its query: that of their steps.
  public func rows<Record: TakeRecord>(of type: Record.Type) throws(TakeError)
    -> TakeReader<Record>
  {
    let source = try QuerySource(path: path, sql: Record.query)
    return TakeReader { () throws(TakeError) in
      guard let row = try source.next() else { return nil }
      return try Record(row)
    }
  }
}

/// A running query.
private final class QuerySource {
  private let path: String
  private let statement: SQLiteStatement
  private let columns: [String]

  init(path: String, sql: String) throws(TakeError) {
    self.path = path
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      let statement = try connection.prepare(sql)
      guard statement.isReadOnly else {
        throw SQLiteError(code: .readOnly, message: "a take is only read, never written")
      }
      columns = (0..<statement.columnCount).map { statement.columnName($0) }
      self.statement = statement
    } catch {
      throw QuerySource.error(error, path)
    }
  }

  func next() throws(TakeError) -> TakeRow? {
    do throws(SQLiteError) {
      guard try statement.step() else { return nil }
    } catch {
      throw QuerySource.error(error, path)
    }
    let values = columns.indices.map { TakeValue(statement.value($0) ?? .null) }
    return TakeRow(path: path, table: "", columns: columns, values: values)
  }

  private static func error(_ error: SQLiteError, _ path: String) -> TakeError {
    switch error.code.primary {
    case .corrupt, .notADatabase, .inputOutput, .busy: TakeError(path: path, error)
    default:
      TakeError(path: path, place: SQLConsole.queryPlace, reason: error.message, kind: .failed)
    }
  }
}

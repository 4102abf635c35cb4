package import Tape
package import Wire

/// Runs SQL over a take and prints what it gives.
package enum SQLConsole {
  /// How rows are printed.
  package enum Format: String, CaseIterable, Sendable {
    /// Aligned columns with their names.
    case table
    /// RFC 4180, with a line of names.
    case csv
    /// An array of objects, one row on a line.
    case json
    /// JSON lines: an object a line.
    case jsonl
    /// A table of Markdown, as GitHub shows it.
    case markdown
  }

  /// Runs one statement that reads, and hands the text over in pieces as the rows come.
  ///
  /// Bytes are printed in hexadecimal: shortened in tables, whole in CSV and JSON.
  ///
  /// - Parameter isWanted: false when what follows may be left out; asked with every row, and now
  ///   and then while the next one is looked for.
  /// - Returns: how many rows there were.
  @discardableResult
  package static func run(
    path: String, sql: String, format: Format = .table, look: TableLook = TableLook(),
    isWanted: @escaping () -> Bool = { true }, write: @escaping (String) -> Void
  ) throws(TapeError) -> Int {
    let connection = try TakeFile.openForQueries(path)
    try TakeRelations.put(namedIn: sql, over: connection, path: path)
    return try run(
      on: connection, path: path, sql: sql, format: format, look: look, isWanted: isWanted,
      write: write)
  }

  /// The same through a connection that is there, and that is good for this one query.
  @discardableResult
  package static func run(
    on connection: borrowing SQLiteConnection, path: String, sql: String, format: Format,
    look: TableLook, isWanted: @escaping () -> Bool, write: @escaping (String) -> Void
  ) throws(TapeError) -> Int {
    do throws(SQLiteError) {
      try connection.restrict(limits)
      let statement = try connection.prepare(sql)
      // What gives no rows asks nothing.
      guard statement.isReadOnly, statement.columnCount > 0 else {
        throw SQLiteError(code: .readOnly, message: "a take is only read, never written")
      }
      let names = (0..<statement.columnCount).map { statement.columnName($0) }
      let printer = RowPrinter(format, names, look, write)
      let watch = SQLiteWatch {
        printer.handOver()
        return isWanted()
      }
      connection.setWatch(watch)
      let isComplete = try printer.printAll(statement, isWanted)
      connection.setWatch(nil)
      withExtendedLifetime(watch) {}
      printer.finish(isComplete: isComplete)
      return printer.count
    } catch {
      switch error.code.primary {
      case .corrupt, .notADatabase, .inputOutput, .busy: throw TapeError(path: path, error)
      default:
        throw TapeError(
          path: path, place: queryPlace, reason: error.refusal ?? error.message, kind: .failed)
      }
    }
  }

  /// What a query may ask for that somebody runs on a machine of theirs: sorting may fill the disk.
  static let limits = SQLiteReadLimits(cellBytes: 256 << 20)

  /// The place in errors about the query itself rather than the take.
  package static let queryPlace = "sql"
}

extension RowPrinter {
  /// Prints the rows of a statement; false when somebody did not want all of them.
  fileprivate func printAll(_ statement: borrowing SQLiteStatement, _ isWanted: () -> Bool)
    throws(SQLiteError) -> Bool
  {
    do throws(SQLiteError) {
      while isWanted() {
        guard try statement.step() else { return true }
        print(statement)
      }
      return false
    } catch {
      // What came before a failure is shown, and so is what came before an interruption.
      finish(isComplete: false)
      guard error.code.primary == .interrupted else { throw error }
      return false
    }
  }
}

extension Value {
  /// The value as JSON; bytes as a string of hexadecimal digits.
  package var json: JSONText {
    switch self {
    case .null: .null
    case .integer(let value): .integer(value)
    case .real(let value): .number(value)
    case .text(let value): .text(value)
    case .blob(let bytes): .text(hexadecimal(bytes))
    }
  }
}

package import Tape
import Wire

/// Runs a query on each of many takes; the results are concatenated in take order, with a column
/// for the take.
///
/// The takes are read in parallel. Only a few rows of later takes wait in memory until the rows of
/// earlier takes have been delivered.
package struct TakesQuery: Sendable {
  let takes: [String]
  let sql: String
  let jobs: Int
  let isWanted: @Sendable () -> Bool
  /// The query's columns, without the added column for the take.
  package let columns: [String]

  static let takeColumn = "take"
  /// The size of a piece, in rows and in bytes.
  private static let pieceRows = 256
  private static let pieceBytes = 64 << 10

  /// Compiles a query against an empty take.
  ///
  /// - Throws: an error in the query, with the place `SQLConsole.queryPlace`.
  package init(
    _ list: TakeList, sql: String, jobs: Int, isWanted: @escaping @Sendable () -> Bool
  ) throws(TapeError) {
    func refusal(_ reason: String) -> TapeError {
      TapeError(path: "", place: SQLConsole.queryPlace, reason: reason, kind: .failed)
    }
    do throws(SQLiteError) {
      let empty = try TakeSchema.emptyTake()
      try TakeRelations.make(TakeRelations.named(in: sql), in: empty)
      try empty.restrict(SQLConsole.limits)
      columns = try Self.columns(of: try empty.prepare(sql))
    } catch {
      let asksForTake = error.message == "no such column: \(Self.takeColumn)"
      throw refusal(
        asksForTake
          ? "it runs on each take separately, where there is no column take: leave it out, because "
            + "it is added in front of the rows, and use it in --over"
          : error.refusal ?? error.message)
    }
    if columns.contains(where: { $0.lowercased() == Self.takeColumn }) {
      throw refusal(
        "the query has a column called take, which is the name of the added column; rename it")
    }
    takes = list.entries.map(\.path)
    self.sql = sql
    self.jobs = jobs
    self.isWanted = isWanted
  }

  private static func columns(of statement: borrowing SQLiteStatement) throws(SQLiteError)
    -> [String]
  {
    // A statement without a result is not a query.
    guard statement.isReadOnly, statement.columnCount > 0 else {
      throw SQLiteError(code: .readOnly, message: "a take is only read, never written")
    }
    return (0..<statement.columnCount).map { statement.columnName($0) }
  }

  // MARK: Running

  /// Runs the query and delivers its rows, each preceded by its take.
  ///
  /// - Returns: the errors for takes whose rows are missing or incomplete.
  func run<Failure: Error>(
    _ deliver: ([Value]) throws(Failure) -> Void
  ) throws(Failure) -> [TapeError] {
    var failures: [TapeError] = []
    try ParallelTakes.run(takes.count, jobs: jobs, discard: { $0.cancel() }) {
      (index: Int, post: (RowChannel) -> Void) in
      let channel = RowChannel()
      post(channel)
      ask(takes[index], channel)
    } deliver: { (index, channel) throws(Failure) in
      defer { channel.cancel() }
      let take = Value.text(takes[index])
      var order: [Int] = []
      while true {
        switch channel.next() {
        case .columns(let found):
          order = columns.compactMap { found.firstIndex(of: $0) }
          guard found.count == columns.count, order.count == columns.count else {
            failures.append(
              TapeError(
                path: takes[index], place: SQLConsole.queryPlace,
                reason: "its columns differ from those of a take of this version: "
                  + "\(found.joined(separator: ", ")); list the columns by name"))
            return
          }
          // Columns with equal names are matched by position.
          if Set(columns).count < columns.count { order = Array(columns.indices) }
        case .rows(let rows):
          for row in rows { try deliver([take] + order.map { row[$0] }) }
        case .end(let failure):
          if let failure { failures.append(failure) }
          return
        }
      }
    }
    return failures
  }

  /// Runs the query on one take and puts its rows into the channel.
  private func ask(_ path: String, _ channel: RowChannel) {
    var failure: TapeError?
    do throws(TapeError) {
      try rows(of: path, channel)
    } catch {
      failure = error
    }
    _ = channel.put(.end(failure))
  }

  private func rows(of path: String, _ channel: RowChannel) throws(TapeError) {
    guard isWanted() else { return }
    let connection = try TakeFile.openForQueries(path)
    try TakeRelations.put(namedIn: sql, over: connection, path: path, isWanted: isWanted)
    let watch = SQLiteWatch(isWanted)
    connection.setWatch(watch)
    defer { withExtendedLifetime(watch) {} }
    do throws(SQLiteError) {
      try connection.restrict(SQLConsole.limits)
      let statement = try connection.prepare(sql)
      guard channel.put(.columns(try Self.columns(of: statement))) else { return }
      var rows: [[Value]] = []
      var bytes = 0
      while try statement.step() {
        let row = (0..<statement.columnCount).map { statement.value($0) ?? .null }
        bytes += row.reduce(0) { $0 + $1.byteCount }
        rows.append(row)
        guard rows.count == Self.pieceRows || bytes >= Self.pieceBytes else { continue }
        guard channel.put(.rows(rows)) else { return }
        (rows, bytes) = ([], 0)
      }
      _ = channel.put(.rows(rows))
    } catch {
      guard error.code.primary != .interrupted else { return }
      switch error.code.primary {
      case .corrupt, .notADatabase, .inputOutput, .busy: throw TapeError(path: path, error)
      default:
        throw TapeError(
          path: path, place: SQLConsole.queryPlace, reason: error.refusal ?? error.message)
      }
    }
  }

  // MARK: Answers

  /// Prints all rows.
  ///
  /// - Returns: the number of rows, and the failed takes' errors.
  package func print(
    format: SQLConsole.Format, look: TableLook, write: @escaping (String) -> Void
  ) -> (rows: Int, failures: [TapeError]) {
    let printer = RowPrinter(format, [Self.takeColumn] + columns, look, write)
    let failures = run { row in printer.print(ValueRow(values: row)) }
    printer.finish(isComplete: isWanted())
    return (printer.count, failures)
  }

  /// Collects all rows in a table `rows` and prints a second query's result.
  ///
  /// - Returns: the number of rows that the second query returned, and the failed takes' errors.
  package func print(
    over second: String, format: SQLConsole.Format, look: TableLook,
    write: @escaping (String) -> Void
  ) throws(TapeError) -> (rows: Int, failures: [TapeError]) {
    let names = [Self.takeColumn] + columns
    var failures: [TapeError] = []
    let united: CatalogueDatabase
    do throws(SQLiteError) {
      united = CatalogueDatabase(try Self.table(names))
      // The second query is prepared first, so that an error in it is reported before the takes
      // are read.
      _ = try united.connection.prepare(second)
      let marks = names.map { _ in "?" }.joined(separator: ", ")
      let insert = try united.connection.prepare("INSERT INTO rows VALUES (\(marks))")
      try united.connection.execute("BEGIN")
      failures = try run { (row) throws(SQLiteError) in try insert.insert(row) }
      try united.connection.execute("COMMIT; PRAGMA query_only = ON")
    } catch {
      throw TapeError(
        path: "", place: SQLConsole.queryPlace, reason: error.refusal ?? error.message,
        kind: .failed)
    }
    guard isWanted() else { return (0, failures) }
    let count = try SQLConsole.run(
      on: united.connection, path: "", sql: second, format: format, look: look, isWanted: isWanted,
      write: write)
    return (count, failures)
  }

  /// Creates the table in a temporary file, so that many rows do not fill the memory.
  private static func table(_ names: [String]) throws(SQLiteError) -> SQLiteConnection {
    var seen: Set<String> = []
    for name in names where !seen.insert(name.lowercased()).inserted {
      throw SQLiteError(
        code: .misuse, message: "two columns are called \(name): rename one with AS")
    }
    let connection = try SQLiteConnection(path: "", mode: .readWrite)
    try connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    let columns = names.map { "\"\($0.replacing("\"", with: "\"\""))\"" }
    try connection.execute("CREATE TABLE rows (\(columns.joined(separator: ", ")))")
    return connection
  }
}

extension Value {
  /// About how much memory the value uses, in bytes.
  fileprivate var byteCount: Int {
    switch self {
    case .text(let text): 16 + text.utf8.count
    case .blob(let bytes): 16 + bytes.count
    default: 16
    }
  }
}

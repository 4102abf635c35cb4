package import Tape
package import Wire

/// A row whose values are asked for by their columns.
protocol PrintedRow: ~Copyable {
  func value(_ column: Int) -> Value?
}

extension SQLiteStatement: PrintedRow {}

/// A row that was read before.
struct ValueRow: PrintedRow {
  var values: [Value]

  func value(_ column: Int) -> Value? { values.indices.contains(column) ? values[column] : nil }
}

/// Prints the rows of a query as they come: those of a table once there are enough to know how wide
/// its columns are, or when they have waited for a moment.
final class RowPrinter {
  /// How many rows came.
  private(set) var count = 0

  private let format: SQLConsole.Format
  private let names: [String]
  private let look: TableLook
  private var pieces: Pieces
  /// The first rows of a table, until the widths are taken.
  private var first: [[String]] = []
  private var isNumber: [Bool]
  private var layout: TableLayout?
  /// When text began to wait.
  private var waitsSince: ContinuousClock.Instant?
  private var isFinished = false

  /// How many rows tell the widths of the columns at most.
  private static let firstMaximum = 200

  init(
    _ format: SQLConsole.Format, _ names: [String], _ look: TableLook,
    _ write: @escaping (String) -> Void
  ) {
    self.format = format
    self.names = names
    self.look = look
    pieces = Pieces(write)
    isNumber = names.map { _ in true }
    switch format {
    case .table: break
    case .csv: pieces.add(CSVText.line(names))
    case .markdown:
      pieces.add(markdown(names))
      pieces.add("|" + names.map { _ in " --- |" }.joined() + "\n")
    case .json, .jsonl: break
    }
  }

  /// How long rows wait for others at most: a person who looks on, less than a program.
  private var patience: Duration { look.columns == nil ? .seconds(1) : .milliseconds(200) }

  /// Prints a row, such as that which a statement stands on.
  func print<Row: PrintedRow & ~Copyable>(_ row: borrowing Row) {
    count += 1
    if waitsSince == nil { waitsSince = .now }
    switch format {
    case .table: addLine(row)
    case .csv: pieces.add(csv(row))
    case .json:
      pieces.add((count == 1 ? "[" : ",\n") + json(row))
    case .jsonl: pieces.add(json(row) + "\n")
    case .markdown: pieces.add(markdown(row))
    }
    // The clock is looked at while the next row is made, and where rows come fast now and then.
    if count & 63 == 0 { handOver() }
  }

  /// Hands over what has waited long enough.
  func handOver() {
    guard let since = waitsSince, !isFinished, .now - since >= patience else { return }
    if format == .table { takeWidths() }
    pieces.flush()
    waitsSince = nil
  }

  /// Hands over all that is left; what is not complete does not look so to a program.
  func finish(isComplete: Bool) {
    guard !isFinished else { return }
    isFinished = true
    if format == .table {
      takeWidths()
      pieces.add(layout?.foot ?? "")
    }
    if format == .json, isComplete { pieces.add(count == 0 ? "[]\n" : "]\n") }
    pieces.flush()
  }

  // MARK: Tables

  private func addLine<Row: PrintedRow & ~Copyable>(_ row: borrowing Row) {
    var cells: [String] = []
    for column in names.indices {
      let value = row.value(column) ?? .null
      switch value {
      case .null: cells.append("")
      case .integer, .real: cells.append(value.summary)
      case .text(let text):
        isNumber[column] = isNumber[column] && layout != nil
        cells.append(TextTable.plain(text))
      case .blob(let bytes):
        isNumber[column] = isNumber[column] && layout != nil
        cells.append(hexadecimal(bytes, limit: 16))
      }
    }
    if let layout { return pieces.add(layout.line(cells)) }
    first.append(cells)
    if first.count == RowPrinter.firstMaximum { takeWidths() }
  }

  /// Lays the table out by the rows that came so far.
  private func takeWidths() {
    guard layout == nil else { return }
    let made = TableLayout(
      TextTable(columns: names, rows: first, alignsRight: isNumber), look)
    layout = made
    pieces.add(made.head + first.map { made.line($0) }.joined())
    first = []
  }

  // MARK: CSV and JSON

  private func csv<Row: PrintedRow & ~Copyable>(_ row: borrowing Row) -> String {
    var line = ""
    for column in names.indices {
      if column > 0 { line += "," }
      switch row.value(column) ?? .null {
      case .null: break
      case .text(let text): line += CSVText.field(text)
      case .blob(let bytes): line += hexadecimal(bytes)
      case let value: line += value.summary
      }
    }
    return line + "\r\n"
  }

  private func markdown<Row: PrintedRow & ~Copyable>(_ row: borrowing Row) -> String {
    var cells: [String] = []
    for column in names.indices {
      switch row.value(column) ?? .null {
      case .null: cells.append("")
      case .text(let text): cells.append(text)
      case .blob(let bytes): cells.append(hexadecimal(bytes, limit: 16))
      case let value: cells.append(value.summary)
      }
    }
    return markdown(cells)
  }

  /// A line of a table; what would end a cell or the line stands for itself.
  private func markdown(_ cells: [String]) -> String {
    let plain = cells.map { cell in
      cell.replacing("\\", with: "\\\\").replacing("|", with: "\\|")
        .replacing("\r", with: "").replacing("\n", with: "<br>")
    }
    return "|" + plain.map { " \($0) |" }.joined() + "\n"
  }

  private func json<Row: PrintedRow & ~Copyable>(_ row: borrowing Row) -> String {
    var members: [(String, JSONText?)] = []
    for column in names.indices {
      members.append((names[column], (row.value(column) ?? .null).json))
    }
    return JSONText.object(members).text
  }
}

/// Comma-separated values (RFC 4180).
package enum CSVText {
  /// A field, in quotes where its text would end it.
  package static func field(_ text: String) -> String {
    let needsQuotes = text.utf8.contains { [0x22, 0x2c, 0x0a, 0x0d].contains($0) }
    return needsQuotes ? "\"" + text.replacing("\"", with: "\"\"") + "\"" : text
  }

  /// A line with its end.
  package static func line(_ fields: some Sequence<String>) -> String {
    fields.map(field).joined(separator: ",") + "\r\n"
  }
}

extension Value {
  /// The value as a field before it is quoted; bytes as hexadecimal digits, NULL as nothing.
  package var csv: String {
    switch self {
    case .null: ""
    case .text(let text): text
    case .blob(let bytes): hexadecimal(bytes)
    case .integer, .real: summary
    }
  }
}

/// Text that is handed over in pieces that are worth a system call.
struct Pieces {
  /// How long a piece is at least, in bytes.
  static let length = 1 << 16

  private let write: (String) -> Void
  /// What waits to be handed over.
  var text = ""

  init(_ write: @escaping (String) -> Void) { self.write = write }

  /// Adds text, and hands over what is enough for a piece.
  mutating func add(_ more: String) {
    text += more
    flush(atLeast: Pieces.length)
  }

  /// Hands over what waits when it has so many bytes.
  mutating func flush(atLeast length: Int = 1) {
    guard text.utf8.count >= length else { return }
    write(text)
    text.removeAll(keepingCapacity: true)
  }
}

// MARK: - SQLConsole

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

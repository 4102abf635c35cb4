package import Tape
package import Wire

/// A row whose values can be read in any order.
protocol PrintedRow: ~Copyable {
  func value(_ column: Int) -> Value?
}

extension SQLiteStatement: PrintedRow {}

struct ValueRow: PrintedRow {
  var values: [Value]

  func value(_ column: Int) -> Value? { values.indices.contains(column) ? values[column] : nil }
}

/// Prints a query's rows as they arrive.
///
/// The first rows of a table are held back until enough are known for the column widths, or a
/// moment has passed.
final class RowPrinter {
  /// The number of rows printed so far, including rows that are held back.
  private(set) var count = 0

  private let format: SQLConsole.Format
  private let names: [String]
  private let look: TableLook
  private var pieces: Pieces
  /// The first rows of a table, held back until the widths are known.
  private var first: [[String]] = []
  private var isNumber: [Bool]
  private var layout: TableLayout?
  /// When the first row since the last hand-over was added; nil if there is none.
  private var waitsSince: ContinuousClock.Instant?
  private var isFinished = false

  /// The maximum number of rows that determine the column widths.
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

  /// How long rows may be held back; a person at a terminal is less patient than a program.
  private var patience: Duration { look.columns == nil ? .seconds(1) : .milliseconds(200) }

  /// Adds a row, and writes pending text that has waited long enough.
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
    // `handOver` is also called while the next row is computed, so fast rows need not read the
    // clock each time.
    if count & 63 == 0 { handOver() }
  }

  /// Writes pending text that has waited long enough.
  func handOver() {
    guard let since = waitsSince, !isFinished, .now - since >= patience else { return }
    if format == .table { fixWidths() }
    pieces.flush()
    waitsSince = nil
  }

  /// Writes all text that is still pending and ends the output.
  ///
  /// An incomplete JSON result lacks its closing bracket, so that no program accepts it as
  /// complete.
  func finish(isComplete: Bool) {
    guard !isFinished else { return }
    isFinished = true
    if format == .table {
      fixWidths()
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
    if first.count == RowPrinter.firstMaximum { fixWidths() }
  }

  /// Sets the column widths to fit the rows so far.
  private func fixWidths() {
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

  /// Formats a row of a Markdown table, escaping characters that would end a cell.
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

/// Formats comma-separated values (RFC 4180).
package enum CSVText {
  /// Returns a field, in quotes if it contains a comma, quote or line break.
  package static func field(_ text: String) -> String {
    let needsQuotes = text.utf8.contains { [0x22, 0x2c, 0x0a, 0x0d].contains($0) }
    return needsQuotes ? "\"" + text.replacing("\"", with: "\"\"") + "\"" : text
  }

  /// Returns a line of fields, which ends with CR and LF.
  package static func line(_ fields: some Sequence<String>) -> String {
    fields.map(field).joined(separator: ",") + "\r\n"
  }
}

extension Value {
  /// The value as a field before quoting: bytes in hexadecimal, NULL as an empty field.
  package var csv: String {
    switch self {
    case .null: ""
    case .text(let text): text
    case .blob(let bytes): hexadecimal(bytes)
    case .integer, .real: summary
    }
  }
}

/// Collects text into pieces large enough to be worth a system call.
struct Pieces {
  /// The size in bytes from which collected text is written.
  static let length = 1 << 16

  private let write: (String) -> Void
  var text = ""

  init(_ write: @escaping (String) -> Void) { self.write = write }

  /// Adds text, and writes all of it once it reaches `length`.
  mutating func add(_ more: String) {
    text += more
    flush(atLeast: Pieces.length)
  }

  /// Writes pending text if it has at least this many bytes.
  mutating func flush(atLeast length: Int = 1) {
    guard text.utf8.count >= length else { return }
    write(text)
    text.removeAll(keepingCapacity: true)
  }
}

// MARK: - SQLConsole

/// Prints the rows of users' queries.
package enum SQLConsole {
  /// The notation that rows are printed in.
  package enum Format: String, CaseIterable, Sendable {
    /// Aligned columns with a header.
    case table
    /// RFC 4180, with a header line.
    case csv
    /// An array of objects, one row per line.
    case json
    /// JSON Lines: one object per line.
    case jsonl
    /// A Markdown table, as GitHub renders it.
    case markdown
  }

  /// Runs a read-only statement and writes the formatted rows in pieces as they arrive.
  ///
  /// Bytes are printed in hexadecimal: shortened in tables, complete in CSV and JSON.
  ///
  /// - Parameter isWanted: asked for each row and while the next is computed; false stops the
  ///   query.
  /// - Returns: the number of rows.
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

  /// Runs a statement through an open connection, which from then on permits only reading.
  @discardableResult
  package static func run(
    on connection: borrowing SQLiteConnection, path: String, sql: String, format: Format,
    look: TableLook, isWanted: @escaping () -> Bool, write: @escaping (String) -> Void
  ) throws(TapeError) -> Int {
    do throws(SQLiteError) {
      try connection.restrict(limits)
      let statement = try connection.prepare(sql)
      // Statements that return no columns, such as PRAGMA settings, are not queries.
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

  /// The limits for the local user's queries, which may be sorted on disk.
  static let limits = SQLiteReadLimits(cellBytes: 256 << 20)

  /// The place stated in errors about the query rather than the take.
  package static let queryPlace = "sql"
}

extension RowPrinter {
  /// Prints a statement's rows; returns false if it was stopped.
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
      // The rows before an error or an interruption are printed.
      finish(isComplete: false)
      guard error.code.primary == .interrupted else { throw error }
      return false
    }
  }
}

extension Value {
  /// The value as JSON, with bytes as a hexadecimal string.
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

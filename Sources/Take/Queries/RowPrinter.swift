import Tape
import Wire

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

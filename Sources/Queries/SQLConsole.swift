import Stats
package import Tape
import Wire

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
  }

  /// Runs one statement that reads, and hands the text over in pieces.
  ///
  /// Bytes are printed in hexadecimal: shortened in tables, whole in CSV and JSON.
  ///
  /// - Parameter isWanted: false when what follows may be left out.
  package static func run(
    path: String, sql: String, format: Format = .table, isWanted: () -> Bool = { true },
    write: @escaping (String) -> Void
  ) throws(TapeError) {
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      var statement = try connection.prepare(sql)
      guard statement.isReadOnly else {
        throw SQLiteError(code: .readOnly, message: "a take is only read, never written")
      }
      switch format {
      case .table: try printTable(&statement, isWanted, write)
      case .csv: try printCSV(&statement, isWanted, write)
      case .json: try printJSON(&statement, isWanted, write)
      }
    } catch {
      switch error.code.primary {
      case .corrupt, .notADatabase, .inputOutput, .busy: throw TapeError(path: path, error)
      default: throw TapeError(path: path, place: queryPlace, reason: error.message, kind: .failed)
      }
    }
  }

  /// The place in errors about the query itself rather than the take.
  package static let queryPlace = "sql"

  private static func names(_ statement: borrowing SQLiteStatement) -> [String] {
    (0..<statement.columnCount).map { statement.columnName($0) }
  }

  // MARK: Table

  private static func printTable(
    _ statement: inout SQLiteStatement, _ isWanted: () -> Bool,
    _ write: @escaping (String) -> Void
  ) throws(SQLiteError) {
    let names = names(statement)
    var isNumber = [Bool](repeating: true, count: names.count)
    var rows: [[String]] = []
    while isWanted(), try statement.step() {
      var row: [String] = []
      for column in names.indices {
        let value = statement.value(column) ?? .null
        switch value {
        case .null: row.append("")
        case .integer, .real: row.append(value.summary)
        case .text(let text):
          isNumber[column] = false
          row.append(oneLine(text))
        case .blob(let bytes):
          isNumber[column] = false
          row.append(hexadecimal(bytes, limit: 16))
        }
      }
      rows.append(row)
    }
    write(TextTable(columns: names, rows: rows, alignsRight: isNumber).text)
  }

  private static func oneLine(_ text: String) -> String {
    let line = text.replacing("\r\n", with: "\\n").replacing("\n", with: "\\n")
    return line.count > 100 ? String(line.prefix(97)) + "..." : line
  }

  // MARK: CSV and JSON

  private static func printCSV(
    _ statement: inout SQLiteStatement, _ isWanted: () -> Bool,
    _ write: @escaping (String) -> Void
  ) throws(SQLiteError) {
    let names = names(statement)
    var pieces = Pieces(write)
    pieces.add(names.map { quoted($0) }.joined(separator: ",") + "\r\n")
    while isWanted(), try statement.step() {
      let row = names.indices.map { column in
        switch statement.value(column) ?? .null {
        case .null: ""
        case .text(let text): quoted(text)
        case .blob(let bytes): hexadecimal(bytes)
        case let value: value.summary
        }
      }
      pieces.add(row.joined(separator: ",") + "\r\n")
    }
    pieces.flush()
  }

  private static func quoted(_ text: String) -> String {
    let needsQuotes = text.utf8.contains { [0x22, 0x2c, 0x0a, 0x0d].contains($0) }
    return needsQuotes ? "\"" + text.replacing("\"", with: "\"\"") + "\"" : text
  }

  private static func printJSON(
    _ statement: inout SQLiteStatement, _ isWanted: () -> Bool,
    _ write: @escaping (String) -> Void
  ) throws(SQLiteError) {
    let names = names(statement).map { jsonString($0) }
    var pieces = Pieces(write)
    var separator = "["
    while isWanted(), try statement.step() {
      let members = names.indices.map { column in
        "\(names[column]):\((statement.value(column) ?? .null).json)"
      }
      pieces.add("\(separator){\(members.joined(separator: ","))}")
      separator = ",\n"
    }
    pieces.add(separator == "[" ? "[]\n" : "]\n")
    pieces.flush()
  }
}

extension Value {
  /// The value as JSON; bytes as a string of hexadecimal digits.
  package var json: String {
    switch self {
    case .null: "null"
    case .integer(let value): String(value)
    case .real(let value): StatsValue.number(value).json
    case .text(let value): jsonString(value)
    case .blob(let bytes): "\"\(hexadecimal(bytes))\""
    }
  }
}

/// Rows as aligned columns.
package struct TextTable: Sendable {
  package var columns: [String]
  package var rows: [[String]]
  package var alignsRight: [Bool]

  package init(columns: [String], rows: [[String]], alignsRight: [Bool] = []) {
    self.columns = columns
    self.rows = rows
    self.alignsRight = alignsRight
  }

  /// The table with its names and a rule, ended by a line feed.
  package var text: String {
    var widths = columns.map(\.count)
    for row in rows {
      for (column, cell) in row.enumerated() where column < widths.count {
        widths[column] = max(widths[column], cell.count)
      }
    }
    var text =
      line(columns, widths) + line(widths.map { String(repeating: "-", count: $0) }, widths)
    for row in rows { text += line(row, widths) }
    return text
  }

  private func line(_ cells: [String], _ widths: [Int]) -> String {
    var text = ""
    for (column, cell) in cells.enumerated() where column < widths.count {
      let padding = String(repeating: " ", count: widths[column] - cell.count)
      let isRight = column < alignsRight.count && alignsRight[column]
      text += (column == 0 ? "" : "  ") + (isRight ? padding + cell : cell + padding)
    }
    while text.last == " " { text.removeLast() }
    return text + "\n"
  }
}

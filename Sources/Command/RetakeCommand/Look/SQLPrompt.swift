import FoundationEssentials
import Glibc
import Queries
import Tape
import Wire

/// The prompt of `retake sql TAKE`: queries that end with a semicolon, with history and completion.
final class SQLPrompt {
  private let take: String
  private let look: TableLook
  private let limit: Double?
  private var format: SQLConsole.Format
  private let schema: QuerySchema

  init(take: String, format: SQLConsole.Format, look: TableLook, limit: Double?) throws {
    (self.take, self.format, self.look, self.limit) = (take, format, look, limit)
    schema = QuerySchema()
    // Report an unreadable take before the first prompt.
    try reading { () throws(TapeError) in _ = try TakeFile.openForQueries(take) }
  }

  /// The path of `sql_history`, next to the debugger's history; nil without a home directory.
  private static var historyFile: String? {
    LineEditor.usualHistory.map {
      URL(fileURLWithPath: $0).deletingLastPathComponent().path + "/sql_history"
    }
  }

  /// Runs an interactive session: failures are reported, and the session continues.
  func run() throws {
    try Output.line("\(take): queries end with a semicolon; .help lists the commands")
    let editor = LineEditor(history: Self.historyFile) { [schema] in schema.completions(of: $0) }
    Interruption.notice()
    var begun = ""
    while true {
      Interruption.forget()
      switch editor.readLine(prompt: begun.isEmpty ? "sql> " : "...> ") {
      case .end: return try Output.line("")
      case .cancelled: begun = ""
      case .text(let line):
        if begun.isEmpty, line.isEmpty { continue }
        if begun.isEmpty, line.hasPrefix(".") {
          editor.remember(line)
          guard try command(line) else { return }
          continue
        }
        begun += begun.isEmpty ? line : "\n" + line
        guard SQLScript.isComplete(begun) else { continue }
        editor.remember(begun.split(separator: "\n").joined(separator: " "))
        let statements = SQLScript.statements(in: begun)
        begun = ""
        for statement in statements { try answer(statement) }
      }
    }
  }

  private func answer(_ statement: String) throws {
    let run = QueryRun(take: take, query: statement, format: format, look: look, limit: limit)
    let form: Output.Form = [.json, .jsonl].contains(format) ? .json : .text
    do {
      try run.answer { (text) throws(CommandFailure) in try Output.write(text, as: form) }
    } catch let failure as CommandFailure {
      guard failure.status != .inputOutput, failure.status != .readerIsGone else { throw failure }
      printError("retake: \(failure.message)")
    }
  }

  /// Executes a dot command; returns false to end the session.
  private func command(_ line: String) throws -> Bool {
    let words = line.split(separator: " ").map(String.init)
    switch words.first {
    case ".quit", ".exit": return false
    case ".help": try Output.line(Self.help)
    case ".tables": try Output.write(schema.tableText(look))
    case ".schema": try Output.write(schema.text(of: words.count > 1 ? words[1] : nil))
    case ".examples":
      for (number, example) in QueryExample.all.enumerated() {
        try Output.line("\(number + 1). \(example.question)")
      }
      try Output.line(".example NUMBER runs one of them")
    case ".example":
      guard words.count == 2, let number = Int(words[1]), QueryExample.all.indices ~= number - 1
      else {
        try Output.line(".example needs a number from 1 to \(QueryExample.all.count)")
        return true
      }
      try Output.line(QueryExample.all[number - 1].sql + ";")
      try answer(QueryExample.all[number - 1].sql)
    case ".format":
      let names = SQLConsole.Format.allCases.map(\.rawValue).joined(separator: ", ")
      guard words.count == 2, let chosen = SQLConsole.Format(rawValue: words[1]) else {
        try Output.line(".format needs one of \(names); it is now \(format.rawValue)")
        return true
      }
      format = chosen
    default: try Output.line("\(line.prefix(100)) is not a command; .help lists them")
    }
    return true
  }

  private static let help = """
    A query ends with a semicolon and may have several lines. Ctrl-C cancels a line or a query,
    Ctrl-D exits, Tab completes names, Ctrl-R searches earlier queries.

    .tables         tables and views, with what a row of each is
    .schema NAME    the columns of one of them; without a name, all
    .examples       questions with their queries; .example NUMBER runs one
    .format NAME    table, csv, json, jsonl or markdown
    .quit           exits
    """
}

/// Splits text into statements: from standard input, a file, or the prompt.
enum SQLScript {
  /// The text of a statement without its semicolon, or the rest after the last semicolon.
  private struct Piece {
    var text: String
    /// Whether the piece contains more than white space and comments.
    var hasWords: Bool
    var isEnded: Bool
  }

  /// Returns the statements in a string, without the semicolons between them.
  static func statements(in text: String) -> [String] {
    pieces(of: text).filter(\.hasWords).map(\.text)
  }

  /// Returns whether a string ends with a complete statement.
  static func isComplete(_ text: String) -> Bool {
    let pieces = pieces(of: text)
    return pieces.last?.hasWords == false && pieces.contains { $0.isEnded }
  }

  /// Splits a string at semicolons outside of strings, quoted names and comments.
  private static func pieces(of text: String) -> [Piece] {
    let bytes = Array(text.utf8)
    var pieces: [Piece] = []
    var (start, place, hasWords) = (0, 0, false)
    func end(of first: Int, _ closing: [UInt8]) -> Int {
      var place = first
      while place < bytes.count, !bytes[place...].starts(with: closing) { place += 1 }
      return min(bytes.count, place + closing.count)
    }
    func add(_ isEnded: Bool) {
      let text = String(decoding: bytes[start..<place], as: UTF8.self)
      pieces.append(Piece(text: text.trimmed, hasWords: hasWords, isEnded: isEnded))
    }
    while place < bytes.count {
      switch bytes[place] {
      case UInt8(ascii: ";"):
        add(true)
        place += 1
        (start, hasWords) = (place, false)
      case UInt8(ascii: "-") where bytes[place...].starts(with: "--".utf8):
        place = end(of: place, [UInt8(ascii: "\n")])
      case UInt8(ascii: "/") where bytes[place...].starts(with: "/*".utf8):
        place = end(of: place + 2, Array("*/".utf8))
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"):
        place += 1
      case let quote where "\"'`[".utf8.contains(quote):
        hasWords = true
        place = end(of: place + 1, [quote == UInt8(ascii: "[") ? UInt8(ascii: "]") : quote])
      default:
        hasWords = true
        place += 1
      }
    }
    add(false)
    return pieces
  }

  /// The maximum size of a query file in bytes.
  private static let byteMaximum = 10 << 20

  /// Returns the text of a query file, or of standard input.
  static func read(_ path: String) throws -> String {
    if path == "-" {
      var text = ""
      while let line = readLine(strippingNewline: false) {
        text += line
        guard text.utf8.count <= byteMaximum else {
          throw CommandFailure(
            .usage, "standard input has more than \(byteMaximum) bytes of queries")
        }
      }
      return text
    }
    switch FileBytes.read(path, atMost: byteMaximum + 1) {
    case .success(let bytes):
      guard bytes.count <= byteMaximum, let text = String(validating: bytes, as: UTF8.self) else {
        throw CommandFailure(
          .usage, "\(path): it is not UTF-8 text of up to \(byteMaximum) bytes")
      }
      return text
    case .failure(let code):
      throw CommandFailure(
        code.number == ENOENT ? .noSuchFile : .inputOutput, "\(path): it cannot be read: \(code)")
    }
  }
}

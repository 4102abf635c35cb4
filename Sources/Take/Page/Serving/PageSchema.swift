import Stats
package import Tape
import Wire

/// The schema for writing queries: tables and views with their columns and comments.
package enum PageSchema {
  /// Returns the relations as a JSON array of `{name, kind, comment, columns: [{name, comment}]}`.
  ///
  /// Relations are in schema order; storage tables are omitted, because each has a view.
  package static func json(path: String) throws(TapeError) -> String {
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      var relations: [JSONText] = []
      for relation in SchemaComments.all where !relation.name.hasSuffix("_store") {
        let columns = try columns(of: relation, connection)
        if columns.isEmpty { continue }
        relations.append(
          .object([
            ("name", .text(relation.name)), ("kind", .text(relation.isView ? "view" : "table")),
            ("comment", .text(relation.comment)), ("columns", .list(columns)),
          ]))
      }
      return JSONText.list(relations, separator: ",\n").text
    } catch {
      throw TapeError(path: path, error)
    }
  }

  /// Comments for columns that nearly all tables have and that only the head of the schema
  /// explains.
  private static let common = [
    "row": "step * 65536 + the position in the step: the exact order of events",
    "step": "the step that it belongs to", "peer": "the number of the peer: see peer",
    "at_ns": "nanoseconds since the take began", "direction": "'in': received, 'out': sent",
    "from_ns": "nanoseconds since the take began", "to_ns": "nanoseconds since the take began",
  ]

  /// Returns the columns that queries can see, according to SQLite.
  private static func columns(
    of relation: SchemaComments.Relation, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [JSONText] {
    let statement = try connection.prepare("SELECT * FROM \"\(relation.name)\" LIMIT 0")
    return (0..<statement.columnCount).map { column in
      let name = statement.columnName(column)
      return .object([
        ("name", .text(name)),
        ("comment", .text(relation.columns[name] ?? common[name] ?? "")),
      ])
    }
  }
}

/// The schema's comments, by table or view and by column.
struct SchemaComments {
  struct Relation {
    let name: String
    let isView: Bool
    /// The comment before the CREATE statement.
    let comment: String
    /// The comments after columns, or on lines before them.
    var columns: [String: String] = [:]
  }

  /// All relations, in the order of the migrations that create them.
  static let all: [Relation] = TakeSchema.migrations.flatMap { SchemaComments($0).relations }

  private(set) var relations: [Relation] = []
  private var before: [Substring] = []
  /// The comment before a CASE expression, kept until the expression's last line names the column.
  private var pending = ""

  /// Parses a migration's text line by line, in the layout of `Schema/`.
  init(_ sql: String) {
    var open: Relation?
    for line in sql.split(separator: "\n", omittingEmptySubsequences: false) {
      let text = line.trimmed
      if text.hasPrefix("--") {
        before.append(text.dropFirst(2).trimmed)
      } else if var relation = open {
        read(line, of: &relation)
        open = relation
        if Self.code(line).hasSuffix(";") {
          relations.append(relation)
          open = nil
          before = []
        }
      } else if let relation = begun(by: text) {
        open = relation
        before = []
      } else {
        before = []
      }
    }
  }

  private func begun(by line: Substring) -> Relation? {
    for (start, isView) in [("CREATE TABLE ", false), ("CREATE VIEW ", true)] {
      guard line.hasPrefix(start) else { continue }
      // Names that are keywords in other dialects are quoted.
      let name = line.dropFirst(start.count).drop { $0 == "\"" }
        .prefix { $0.isLetter || $0.isNumber || $0 == "_" }
      return Relation(name: String(name), isView: isView, comment: joined(before))
    }
    return nil
  }

  private mutating func read(_ line: Substring, of relation: inout Relation) {
    let code = Self.code(line)
    let behind = line.dropFirst(code.count).trimmed.drop { $0 == "-" }.trimmed
    defer { before = [] }
    // Deeper indentation belongs to a part of a query.
    guard code.hasPrefix("  "), !code.hasPrefix("   ") else { return }
    var comment = joined(before + (behind.isEmpty ? [] : [behind]))
    if relation.isView, code == "  CASE" { pending = comment }
    if code.hasPrefix("  END AS "), comment.isEmpty { comment = pending }
    guard !comment.isEmpty else { return }
    for name in relation.isView ? Self.named(code) : Self.declared(code) {
      relation.columns[name] = comment
    }
  }

  /// Returns the line without its trailing comment; no string in the schema contains two hyphens.
  private static func code(_ line: Substring) -> Substring {
    line[..<(line.firstRange(of: "--")?.lowerBound ?? line.endIndex)].trimmedAtEnd
  }

  /// Returns the column that a table's line declares: its first word.
  private static func declared(_ code: Substring) -> [String] {
    [String(code.trimmed.prefix { $0.isLetter || $0.isNumber || $0 == "_" })]
  }

  /// Returns the column that a view's line names, usually by ending in `AS name,`.
  ///
  /// A definition of several lines, such as a CASE, is named on its last line.
  private static func named(_ code: Substring) -> [String] {
    let words = code.split { " ,;()".contains($0) }
    guard words.count > 1, words[words.count - 2] == "AS", let name = words.last else {
      return words.count == 1 ? words.map(String.init) : []
    }
    return [String(name)]
  }

  private func joined(_ lines: [Substring]) -> String {
    lines.joined(separator: " ").trimmedText
  }
}

extension Substring {
  fileprivate var trimmed: Substring { drop { $0 == " " }.trimmedAtEnd }

  fileprivate var trimmedAtEnd: Substring {
    var text = self
    while text.last == " " { text.removeLast() }
    return text
  }
}

extension String {
  fileprivate var trimmedText: String { String(self[...].trimmed) }
}

import Tape
import Wire

/// The tables and views that queries can read, with their columns and the schema's comments.
package struct QuerySchema: Sendable {
  /// A column with its comment in the schema.
  package struct Column: Sendable, Hashable {
    package var name: String
    /// The declared type; empty for a view's column.
    package var type: String
    package var comment: String
  }

  /// A table or view with its comments.
  package struct Table: Sendable, Hashable {
    package var name: String
    package var isView: Bool
    package var comment: String
    package var columns: [Column]
  }

  package private(set) var tables: [Table] = []

  /// Reads the newest format's schema, because queries see every take in that format.
  package init() {
    let described = Self.described(TakeSchema.migrations)
    for (name, isView, columns) in (try? TakeSchema.columns()) ?? [] {
      let (comment, remarks) = described[name] ?? ("", [:])
      tables.append(
        Table(
          name: name, isView: isView, comment: comment,
          columns: columns.map { column in
            Column(name: column.name, type: column.type, comment: remarks[column.name] ?? "")
          }))
    }
  }

  // MARK: Comments

  private typealias Remarks = (comment: String, columns: [String: String])

  /// Extracts the SQL comments on tables, views and columns from the migrations.
  private static func described(_ migrations: [String]) -> [String: Remarks] {
    var found: [String: Remarks] = [:]
    for migration in migrations {
      var waiting: [String] = []
      var name: String?
      var above: [String] = []
      for line in migration.split(separator: "\n", omittingEmptySubsequences: false) {
        let words = line.split(separator: " ")
        if let open = name {
          read(line, &above, into: &found[open, default: ("", [:])].columns)
          if line.hasSuffix(";"), !words[0].hasPrefix("--") { name = nil }
        } else if line.hasPrefix("--") {
          waiting.append(String(line.dropFirst(2).drop { $0 == " " }))
        } else if words.count > 2, words[0] == "CREATE", ["TABLE", "VIEW"].contains(words[1]) {
          let made = words[2].filter { $0 != "\"" }
          found[made] = (waiting.joined(separator: " "), [:])
          (name, waiting, above) = (made, [], [])
        } else {
          waiting = []
        }
      }
    }
    return found
  }

  /// Reads a column's definition and its comment, which follows on the same line or precedes that
  /// line.
  private static func read(
    _ line: Substring, _ above: inout [String], into remarks: inout [String: String]
  ) {
    let plain = line.drop { $0 == " " }
    if plain.hasPrefix("--") {
      // The line may also continue a trailing comment, indented far to the right.
      above.append(String(plain.dropFirst(2).drop { $0 == " " }))
      return
    }
    defer { above = [] }
    let parts = line.split(separator: "--", maxSplits: 1, omittingEmptySubsequences: false)
    let behind = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
    let words = parts[0].split { " ,()".contains($0) }.map { $0.filter { $0 != "\"" } }
    guard let first = words.first, !line.hasPrefix("    ") else { return }
    let name =
      words.lastIndex(of: "AS").flatMap { $0 + 1 < words.count ? words[$0 + 1] : nil } ?? first
    let comment = behind.isEmpty ? above.joined(separator: " ") : behind
    if !comment.isEmpty, remarks[name] == nil { remarks[name] = comment }
  }

  // MARK: Texts

  /// What a page's query editor needs, as JSON: tables, functions, JSON keys and examples.
  package var json: String {
    let tables = tables.map { table in
      JSONText.object([
        ("name", .text(table.name)), ("kind", .text(table.isView ? "view" : "table")),
        ("comment", .text(table.comment)),
        (
          "columns",
          .list(
            table.columns.map { column in
              .object([
                ("name", .text(column.name)), ("type", .text(column.type)),
                ("comment", .text(column.comment)),
              ])
            })
        ),
      ])
    }
    let examples = QueryExample.all.map { example in
      JSONText.object([("question", .text(example.question)), ("sql", .text(example.sql))])
    }
    let keys = JSONKey.all.map { key in
      JSONText.object([
        ("column", .text(key.column)), ("type", key.type.map { .text($0) } ?? .null),
        ("key", .text(key.key)), ("meaning", .text(key.meaning)),
      ])
    }
    return JSONText.object([
      ("tables", .list(tables)), ("functions", .text(TakeSchema.functionsText)),
      ("json_keys", .list(keys)), ("examples", .list(examples)),
    ]).text
  }

  /// Formats a list of tables and views, each with the meaning of its rows.
  package func tableText(_ look: TableLook) -> String {
    let rows = tables.filter { !$0.name.hasSuffix("_store") }.map { table in
      [table.name, table.isView ? "view" : "table", Self.sentence(table.comment)]
    }
    return TextTable(
      columns: ["name", "kind", "one row for"], rows: rows, alignsRight: [false, false, false],
      wraps: true
    ).text(look)
  }

  private static func sentence(_ text: String) -> String {
    guard let end = text.firstRange(of: ". ") else { return text }
    return String(text[..<end.lowerBound]) + "."
  }

  /// Describes the columns of a table or view, or of all of them if the name is nil.
  package func text(of name: String?) -> String {
    let chosen = tables.filter { name == nil || $0.name == name }
    guard !chosen.isEmpty else { return "there is no \(name ?? "table"); .tables lists them\n" }
    return chosen.map { table in
      var text = "\(table.name): \(table.comment)\n"
      let width = table.columns.map(\.name.count).max() ?? 0
      for column in table.columns {
        let space = String(repeating: " ", count: width - column.name.count + 2)
        text += "  \(column.name)\(column.comment.isEmpty ? "" : space + column.comment)\n"
      }
      return text
    }.joined(separator: "\n")
  }

  /// Returns completions of a line's last word: names of tables and columns, SQL keywords and
  /// functions, and the prompt's commands.
  package func completions(of line: String) -> [String] {
    let words = line.split(omittingEmptySubsequences: false) { " (,=".contains($0) }
    let last = String(words.last ?? "")
    guard !last.isEmpty else { return [] }
    let commands = [".tables", ".schema ", ".examples", ".example ", ".format ", ".help", ".quit"]
    let names = tables.map(\.name) + Set(tables.flatMap { $0.columns.map(\.name) }).sorted()
    let all = line.hasPrefix(".") && !line.contains(" ") ? commands : names + Self.words
    return all.filter { $0.lowercased().hasPrefix(last.lowercased()) }
  }

  private static let words = [
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "percentile(", "median(",
    "stddev(", "REGEXP",
  ]
}

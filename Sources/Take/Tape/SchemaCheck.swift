/// Whether the tables of a file are those of a take, which is asked before any of them is read.
///
/// A file can hold anything under the name of a table: a view that never ends, a virtual table,
/// columns that compute what they show, an index that says other things than its table. None of it
/// would be under the digest. So each table has to be what its format's migration makes, to the
/// word. What else the file holds is listed, and nothing of Retake reads it.
package struct SchemaCheck: Sendable {
  /// Tables, views and triggers that are not of a take, such as `view notes`; the first of them.
  package private(set) var additions: [String] = []
  /// How many views of a take have another text than those of this version, which are read in their
  /// place: of another version, or altered.
  package private(set) var otherViews = 0

  private static let additionLimit = 50

  /// Reads the schema of a file that claims to have a format.
  package init(
    _ connection: borrowing SQLiteConnection, path: String, format: Int64
  ) throws(TapeError) {
    var missing = Self.tables(format: format)
    do throws(SQLiteError) {
      let rows = try connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema")
      while try rows.step() {
        let (type, name, table, sql) = rows.values(
          String.self, String.self, String.self, String.self)
        if let reason = Self.fault(type, name, table, sql, format, &missing) {
          throw SQLiteError(code: .misuse, message: reason)
        }
        if type == "view", let text = Self.viewTexts[name] {
          otherViews += sql == text || sql == Self.quoted(text, name) ? 0 : 1
        } else if type != "index", type != "table" || Self.newest[name] == nil,
          additions.count < Self.additionLimit
        {
          additions.append("\(type) \(name)")
        }
      }
    } catch {
      guard error.code == .misuse else { throw TapeError(path: path, error) }
      throw TapeError(path: path, place: "", reason: error.message)
    }
    if let name = missing.sorted().first {
      throw TapeError(
        path: path, place: "",
        reason: "the table \(name) is missing, which a take of format \(format) has; "
          + "restore the file from a copy")
    }
  }

  /// What is wrong with one entry of the schema; nil when nothing is.
  private static func fault(
    _ type: String, _ name: String, _ table: String, _ sql: String, _ format: Int64,
    _ missing: inout Set<String>
  ) -> String? {
    if type == "index" {
      guard newest[table.lowercased()] != nil else { return nil }
      return "the index \(name) is not of a take and could change what is read; "
        + "remove it: DROP INDEX \(name)"
    }
    // SQLite looks names up without regard to case, and in the order of the schema.
    guard type != "trigger", newest[name.lowercased()] != nil else { return nil }
    let isFirst = missing.remove(name) != nil || isLater(name, format)
    guard isFirst, type == "table", hasColumns(name, sql, format) else {
      return "its \(type) \(name) is not the table that a take of format \(format) has under that "
        + "name; restore the file from a copy"
    }
    return nil
  }

  private static func hasColumns(_ name: String, _ sql: String, _ format: Int64) -> Bool {
    // Most takes are of the newest format, and their text is that of the migrations.
    if format == TakeHeader.currentFormat, texts.contains(sql) { return true }
    guard let found = TableStatement(sql), found.name == name, let all = newest[name] else {
      return false
    }
    // A copy of an older take has the tables of the format that copied it; what that format added
    // is not read from it.
    return (format...TakeHeader.currentFormat).contains { format in
      let later = columnsAfter(format, of: name)
      return found.columns == all.columns.filter { !later.contains(TableStatement.name(of: $0)) }
    }
  }

  private static func isLater(_ name: String, _ format: Int64) -> Bool {
    Table.allCases.contains { $0.storageName == name && $0.since > format }
  }

  /// The text of a view whose name stands in quotes, because it is a word of another dialect.
  private static func quoted(_ text: String, _ name: String) -> String {
    let head = "CREATE VIEW "
    return "\(head)\"\(name)\"\(text.dropFirst(head.count + name.count))"
  }

  // MARK: What the migrations make

  private static let viewTexts = Dictionary(
    TakeSchema.views.map { ($0.name, "CREATE VIEW \($0.name) AS\n\($0.query)") },
    uniquingKeysWith: { first, _ in first })

  /// The tables of the newest format.
  private static let newest: [String: TableStatement] = {
    var tables: [String: TableStatement] = [:]
    for statement in statements {
      if let table = TableStatement(statement) {
        tables[table.name] = table
      } else if let (name, column) = TableStatement.addedColumn(statement) {
        tables[name]?.columns.append(column)
      }
    }
    return tables
  }()

  /// The tables that no later migration changed, as the file of a take has them.
  private static let texts = Set(statements.filter { TableStatement($0) != nil }).filter {
    TableStatement($0).map { newest[$0.name] == $0 } ?? false
  }

  /// The statements about tables, without their semicolons.
  private static let statements: [String] = {
    var statements: [String] = []
    var lines: [Substring] = []
    for line in TakeSchema.migrations.flatMap({ $0.split(separator: "\n") }) {
      if lines.isEmpty {
        guard line.hasPrefix("CREATE TABLE ") || line.hasPrefix("ALTER TABLE ") else { continue }
      }
      let isComment = line.drop { $0 == " " }.hasPrefix("--")
      if line.hasSuffix(";"), !isComment {
        statements.append((lines + [line.dropLast()]).joined(separator: "\n"))
        lines = []
      } else {
        lines.append(line)
      }
    }
    return statements
  }()

  /// The names of the tables that a take of a format has.
  private static func tables(format: Int64) -> Set<String> {
    let later = Table.allCases.filter { $0.since > format }.map(\.storageName)
    return Set(newest.keys).subtracting(later)
  }

  /// The columns that came to a table after a format.
  private static func columnsAfter(_ format: Int64, of name: String) -> Set<String> {
    if name == "take" {
      return format < TakeHeader.revisionFormat ? ["revision"] : []
    }
    guard let table = Table.allCases.first(where: { $0.storageName == name }) else { return [] }
    return Set(table.storageColumns()).subtracting(table.storageColumns(format: format))
  }
}

/// A CREATE TABLE statement without comments and needless spaces.
struct TableStatement: Hashable {
  var name: String
  /// The definitions of its columns, such as `row INTEGER PRIMARY KEY`.
  var columns: [String]

  /// Reads a statement; nil for another one, and for a table that is more than its columns.
  init?(_ sql: String) {
    let tokens = Self.tokens(sql)
    guard tokens.count > 5, tokens[0] == "CREATE", tokens[1] == "TABLE", tokens[3] == "(" else {
      return nil
    }
    name = tokens[2]
    columns = []
    var column: [String] = []
    var depth = 1
    for (place, token) in tokens.enumerated().dropFirst(4) {
      if token == "(" { depth += 1 }
      if token == ")" { depth -= 1 }
      let isLast = depth == 0
      if isLast || (depth == 1 && token == ",") {
        columns.append(column.joined(separator: " "))
        column = []
      } else {
        column.append(token)
      }
      guard !isLast || place == tokens.count - 1 else { return nil }
    }
    guard depth == 0 else { return nil }
  }

  /// The table and the column of an `ALTER TABLE name ADD COLUMN definition`; nil for another one.
  static func addedColumn(_ sql: String) -> (table: String, column: String)? {
    let tokens = tokens(sql)
    guard tokens.count > 5, tokens[0] == "ALTER", tokens[3] == "ADD", tokens[4] == "COLUMN" else {
      return nil
    }
    return (tokens[2], tokens.dropFirst(5).joined(separator: " "))
  }

  /// The name that a definition of a column begins with.
  static func name(of column: String) -> String {
    String(column.prefix { $0 != " " })
  }

  /// Words, strings and signs.
  private static func tokens(_ sql: String) -> [String] {
    let bytes = Array(sql.utf8)
    var tokens: [String] = []
    var place = 0
    while place < bytes.count {
      let end = endOfToken(bytes, place)
      if !isSpace(bytes[place]), !isComment(bytes, place) {
        tokens.append(String(decoding: bytes[place..<end], as: UTF8.self))
      }
      place = end
    }
    return tokens
  }

  private static func endOfToken(_ bytes: [UInt8], _ start: Int) -> Int {
    func end(_ belongs: (UInt8) -> Bool) -> Int {
      bytes[start...].firstIndex { !belongs($0) } ?? bytes.count
    }
    if isComment(bytes, start) { return end { $0 != UInt8(ascii: "\n") } }
    if isSpace(bytes[start]) { return end(isSpace) }
    if isWord(bytes[start]) { return end(isWord) }
    return start + 1
  }

  /// Comments in slashes and stars stay as they are: no migration has one, so no table may.
  private static func isComment(_ bytes: [UInt8], _ place: Int) -> Bool {
    bytes[place...].starts(with: "--".utf8)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (9...13).contains(byte) }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...:
      true
    default: false
    }
  }
}

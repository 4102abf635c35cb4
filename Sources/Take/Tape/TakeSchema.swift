import CFiles

/// The schema of takes: the numbered files in Schema/, which are embedded in the binary.
package enum TakeSchema {
  /// The SQL of every file in order; together they create the newest format.
  package static var migrations: [String] {
    var migrations: [String] = []
    while let sql = cfiles_schema(UInt32(migrations.count)) {
      migrations.append(String(cString: sql))
    }
    return migrations
  }

  /// The migrations' lines, split by bytes: splitting by characters would slow down every program
  /// start by several milliseconds.
  fileprivate static var lines: [Substring] {
    migrations.flatMap { $0.utf8.split(separator: UInt8(ascii: "\n")).map { Substring($0) } }
  }

  /// The newest format's views in order: names and queries.
  package static let views: [(name: String, query: String)] = {
    var views: [(name: String, query: String)] = []
    var open: (name: String, lines: [Substring])?
    for line in lines {
      if let begun = open {
        open?.lines.append(line)
        let isComment = line.drop { $0 == " " }.hasPrefix("--")
        guard line.hasSuffix(";"), !isComment else { continue }
        views.append(
          (begun.name, (begun.lines + [line.dropLast()]).joined(separator: "\n")))
        open = nil
      } else if line.hasPrefix("CREATE VIEW "), line.hasSuffix(" AS") {
        // Names that are keywords in other SQL dialects are quoted.
        let name = line.dropFirst("CREATE VIEW ".count).dropLast(" AS".count)
        open = (name.filter { $0 != "\"" }, [])
      }
    }
    return views
  }()

  /// Shadows the file's views with this version's, so that views from an untrusted file never run.
  ///
  /// Tables and columns that an older format lacks are empty, so that queries work on every take.
  static func putViews(
    over connection: borrowing SQLiteConnection, format: Int64
  ) throws(SQLiteError) {
    var statements: [String] = []
    for table in Table.allCases {
      let (name, columns) = (table.storageName, table.storageColumns())
      let known = table.storageColumns(format: format)
      if table.since > format {
        statements.append(
          "CREATE TEMP TABLE \(name) (row, step, \(columns.joined(separator: ", ")));")
      } else if known.count < columns.count {
        statements.append("CREATE TEMP VIEW \(name) AS \(rows(of: table, format: format));")
      }
    }
    let isComputed = try mayCompute(connection)
    let computed = Set(isComputed ? ComputedView.all.map(\.name) : [])
    for view in views {
      statements.append(
        computed.contains(view.name)
          ? "CREATE VIRTUAL TABLE temp.\(view.name) USING \(ViewModule.name) (\(view.name));"
          : "CREATE TEMP VIEW \(view.name) AS\n\(view.query);")
    }
    try connection.addViewModule()
    try connection.execute("PRAGMA query_only = OFF")
    try connection.execute(statements.joined(separator: "\n"))
    try connection.execute("PRAGMA query_only = ON")
  }

  /// Returns whether a take has few enough packets to hold them in memory; otherwise the views are
  /// plain SQL.
  private static func mayCompute(
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    let maximum = Int64(PacketFacts.maximum)
    // A row takes more than 16 bytes, so the rows of most takes need not be counted.
    guard try rowBytes(connection.handle, nil) > maximum * 16 else { return true }
    return try connection.integer(
      "SELECT 1 FROM packet_store LIMIT 1 OFFSET \(maximum)") == nil
  }

  /// Returns the size of all tables but those of bytes, `wire` and `media`.
  static func rowBytes(
    _ handle: OpaquePointer, _ statements: StatementStore?
  ) throws(SQLiteError) -> Int64 {
    func number(_ sql: String) throws(SQLiteError) -> Int64 {
      let statement = try SQLiteConnection.prepare(sql, on: handle, statements)
      return try statement.step() ? statement.integer(0) : 0
    }
    let pages = min(try number("PRAGMA main.page_count"), Int64(UInt32.max))
    var pieces: Int64 = 0
    for table in ["wire", "media"] {
      pieces += min(max(0, try number("SELECT max(piece) FROM main.\(table)")), Int64(UInt32.max))
    }
    return max(0, pages * (try number("PRAGMA main.page_size")) - pieces * Int64(WirePiece.length))
  }

  /// The documentation of the functions that `retake sql` and `retake open` add, as SQL comments.
  package static var functionsText: String { SQLiteFunctions.text }

  /// Returns all of the newest format's tables and views with their columns, in order.
  package static func columns() throws(SQLiteError) -> [(
    name: String, isView: Bool, columns: [(name: String, type: String)]
  )] {
    let connection = try SQLiteConnection(path: ":memory:", mode: .readWrite)
    try create(in: connection)
    let names = try connection.prepare("SELECT name, type FROM sqlite_schema ORDER BY rowid")
    var found: [(name: String, isView: Bool, columns: [(name: String, type: String)])] = []
    while try names.step() {
      let (name, kind) = names.values(String.self, String.self)
      var columns: [(name: String, type: String)] = []
      // A view declares no column types, and SQLite infers only some of them: leave them out.
      let rows = try connection.prepare(
        "SELECT name, type FROM pragma_table_xinfo('\(name)')")
      while try rows.step() {
        columns.append((rows.text(0) ?? "", kind == "view" ? "" : rows.text(1) ?? ""))
      }
      found.append((name, kind == "view", columns))
    }
    return found
  }

  /// Returns a query for a storage table's rows with the newest format's columns, on any take.
  package static func rows(of table: Table, format: Int64) -> String {
    let columns = table.storageColumns()
    let known = table.storageColumns(format: format)
    guard known.count < columns.count else { return "SELECT * FROM main.\(table.storageName)" }
    // Before format 4 every actor was an endpoint with its peer's number.
    let added = columns.filter { !known.contains($0) }.map {
      "\(table == PeerRow.table && $0 == "actor" ? "peer" : "NULL") AS \($0)"
    }
    let list = (known + added).joined(separator: ", ")
    return "SELECT row, row >> 16 AS step, \(list) FROM main.\(table.storageName)"
  }

  /// Creates the tables in an empty database.
  static func create(in connection: borrowing SQLiteConnection) throws(SQLiteError) {
    for sql in migrations { try connection.execute(sql) }
    try connection.execute("PRAGMA application_id = \(TakeHeader.applicationID)")
    try mark(connection, format: TakeHeader.currentFormat)
  }

  /// Returns an empty in-memory take in the newest format, for checking names in queries.
  package static func emptyTake() throws(SQLiteError) -> SQLiteConnection {
    let connection = try SQLiteConnection(path: ":memory:", mode: .readWrite)
    try create(in: connection)
    return connection
  }

  /// Stores a take's format; its tables are the newest format's.
  static func mark(
    _ connection: borrowing SQLiteConnection, format: Int64
  ) throws(SQLiteError) {
    try connection.execute("PRAGMA user_version = \(format)")
  }

  /// An empty take's file, cached because SQLite needs milliseconds to create the schema.
  static let emptyFile = Result { () throws(SQLiteError) in
    let connection = try SQLiteConnection(path: ":memory:", mode: .readWrite)
    try connection.execute("PRAGMA page_size = \(pageSize)")
    try create(in: connection)
    return connection.serialized()
  }

  /// An empty take's file; nil if SQLite cannot create it.
  package static var emptyBytes: [UInt8]? { try? emptyFile.get() }

  /// A take's page size in bytes.
  static let pageSize = 8_192
}

// MARK: - SchemaCheck

/// Checks that a file's tables are a take's, before any of them is read.
///
/// A file can have anything under a table's name: a view that never ends, a virtual table, computed
/// columns, an index that disagrees with its table. The digest would cover none of these. So each
/// table must be what its format's migration creates, token by token. Anything else is listed, and
/// Retake never reads it.
package struct SchemaCheck: Sendable {
  /// Tables, views and triggers that do not belong to a take, such as `view notes`; only the first
  /// few.
  package private(set) var additions: [String] = []
  /// The number of views with another text than this version's, which replace them: they come from
  /// another version or were altered.
  package private(set) var otherViews = 0

  private static let additionLimit = 50

  /// Checks the schema of a file that claims a format.
  package init(
    _ connection: borrowing SQLiteConnection, path: String, format: Int64
  ) throws(TapeError) {
    if let known = connection.statements?.schema {
      self = known
      return
    }
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
          otherViews += Self.isSame(sql, text) || Self.isSame(sql, Self.quoted(text, name)) ? 0 : 1
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

  /// Returns a schema entry's fault; nil if it is valid.
  private static func fault(
    _ type: String, _ name: String, _ table: String, _ sql: String, _ format: Int64,
    _ missing: inout Set<String>
  ) -> String? {
    if type == "index" {
      guard newest[table.lowercased()] != nil else { return nil }
      return "the index \(name) is not of a take and could change what is read; "
        + "remove it: DROP INDEX \(name)"
    }
    // SQLite resolves names case-insensitively and in schema order.
    guard type != "trigger", newest[name.lowercased()] != nil else { return nil }
    let isFirst = missing.remove(name) != nil || isLater(name, format)
    guard isFirst, type == "table", hasColumns(name, sql, format) else {
      return "its \(type) \(name) is not the table that a take of format \(format) has under that "
        + "name; restore the file from a copy"
    }
    return nil
  }

  private static func hasColumns(_ name: String, _ sql: String, _ format: Int64) -> Bool {
    // Most takes have the newest format and the migrations' exact text.
    if format == TakeHeader.currentFormat, texts.contains(sql) { return true }
    guard let found = TableStatement(sql), found.name == name, let all = newest[name] else {
      return false
    }
    // A copy of an older take has the tables of the format that copied it; columns newer than the
    // take's format are not read.
    return (format...TakeHeader.currentFormat).contains { format in
      let later = columnsAfter(format, of: name)
      return found.columns == all.columns.filter { !later.contains(TableStatement.name(of: $0)) }
    }
  }

  private static func isLater(_ name: String, _ format: Int64) -> Bool {
    Table.allCases.contains { $0.storageName == name && $0.since > format }
  }

  /// Returns a view's text with a quoted name, as for keywords in other SQL dialects.
  private static func quoted(_ text: String, _ name: String) -> String {
    let head = "CREATE VIEW "
    return "\(head)\"\(name)\"\(text.dropFirst(head.count + name.count))"
  }

  /// Returns whether two statements differ at most in comments and spaces.
  private static func isSame(_ statement: String, _ other: String) -> Bool {
    statement == other || TableStatement.tokens(statement) == TableStatement.tokens(other)
  }

  // MARK: Migrations

  private static let viewTexts = Dictionary(
    TakeSchema.views.map { ($0.name, "CREATE VIEW \($0.name) AS\n\($0.query)") },
    uniquingKeysWith: { first, _ in first })

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

  /// The texts of tables that no later migration changed.
  private static let texts = Set(statements.filter { TableStatement($0) != nil }).filter {
    TableStatement($0).map { newest[$0.name] == $0 } ?? false
  }

  /// The statements about tables, without semicolons.
  private static let statements: [String] = {
    var statements: [String] = []
    var lines: [Substring] = []
    for line in TakeSchema.lines {
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

  /// Returns the names of the tables in takes of a format.
  private static func tables(format: Int64) -> Set<String> {
    let later = Table.allCases.filter { $0.since > format }.map(\.storageName)
    return Set(newest.keys).subtracting(later)
  }

  /// Returns the columns that were added to a table after a format.
  private static func columnsAfter(_ format: Int64, of name: String) -> Set<String> {
    if name == "take" {
      return format < TakeHeader.revisionFormat ? ["revision"] : []
    }
    guard let table = Table.allCases.first(where: { $0.storageName == name }) else { return [] }
    return Set(table.storageColumns()).subtracting(table.storageColumns(format: format))
  }
}

/// A CREATE TABLE statement, without comments or redundant whitespace.
struct TableStatement: Hashable {
  var name: String
  /// Its columns' definitions, such as `row INTEGER PRIMARY KEY`.
  var columns: [String]

  /// Parses a statement; fails unless it creates a table from plain columns.
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

  /// Returns the table and column in an `ALTER TABLE name ADD COLUMN definition`; nil for other
  /// statements.
  static func addedColumn(_ sql: String) -> (table: String, column: String)? {
    let tokens = tokens(sql)
    guard tokens.count > 5, tokens[0] == "ALTER", tokens[3] == "ADD", tokens[4] == "COLUMN" else {
      return nil
    }
    return (tokens[2], tokens.dropFirst(5).joined(separator: " "))
  }

  /// Returns the name at the start of a column definition.
  static func name(of column: String) -> String {
    String(column.prefix { $0 != " " })
  }

  /// Splits a statement into words, strings and punctuation.
  fileprivate static func tokens(_ sql: String) -> [String] {
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

  /// Returns whether a comment starts here; block comments are not skipped, because no migration
  /// has one, so no table may.
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

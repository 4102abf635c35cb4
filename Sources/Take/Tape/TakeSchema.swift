import CFiles

/// The schema of takes: the numbered files in Schema/, which are embedded in the binary.
package enum TakeSchema {
  /// The SQL of the files in order, which creates the newest format when executed in sequence.
  package static var migrations: [String] {
    var migrations: [String] = []
    while let sql = cfiles_schema(UInt32(migrations.count)) {
      migrations.append(String(cString: sql))
    }
    return migrations
  }

  /// The lines of the schema's files, in the order of their numbers.
  ///
  /// They are split by bytes, because splitting by characters would delay the start of each program
  /// by milliseconds.
  fileprivate static var lines: [Substring] {
    migrations.flatMap { $0.utf8.split(separator: UInt8(ascii: "\n")).map { Substring($0) } }
  }

  /// The names and queries of the newest format's views, in the order of their definitions.
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
        // A name is quoted if it is a keyword in other SQL dialects.
        let name = line.dropFirst("CREATE VIEW ".count).dropLast(" AS".count)
        open = (name.filter { $0 != "\"" }, [])
      }
    }
    return views
  }()

  /// Replaces the file's views with this version's, so that views from an untrusted file never run.
  ///
  /// Tables and columns that an older format lacks are empty, so that the same queries work on all
  /// takes.
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

  /// Returns whether a take's packets fit into memory; if not, the views are plain SQL.
  private static func mayCompute(
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    let maximum = Int64(PacketFacts.maximum)
    // A row has more than 16 bytes, so the size usually shows that the packets fit.
    guard try rowBytes(connection.handle, nil) > maximum * 16 else { return true }
    return try connection.integer(
      "SELECT 1 FROM packet_store LIMIT 1 OFFSET \(maximum)") == nil
  }

  /// Returns the size in bytes of all tables except `wire` and `media`, which contain byte streams.
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

  /// The description of the functions that `retake sql` and `retake open` add, as SQL comments.
  package static var functionsText: String { SQLiteFunctions.text }

  /// Returns the tables and views of the newest format with their columns, in order.
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
      // A view has no column types, and SQLite can infer only some of them, so all types are left
      // out.
      let rows = try connection.prepare(
        "SELECT name, type FROM pragma_table_xinfo('\(name)')")
      while try rows.step() {
        columns.append((rows.text(0) ?? "", kind == "view" ? "" : rows.text(1) ?? ""))
      }
      found.append((name, kind == "view", columns))
    }
    return found
  }

  /// Returns a query for the rows of a table with the newest format's columns, whatever the take's
  /// format.
  package static func rows(of table: Table, format: Int64) -> String {
    let columns = table.storageColumns()
    let known = table.storageColumns(format: format)
    guard known.count < columns.count else { return "SELECT * FROM main.\(table.storageName)" }
    // Before format 4, all actors were endpoints, with the same number as actor and as peer.
    let added = columns.filter { !known.contains($0) }.map {
      "\(table == PeerRow.table && $0 == "actor" ? "peer" : "NULL") AS \($0)"
    }
    let list = (known + added).joined(separator: ", ")
    return "SELECT row, row >> 16 AS step, \(list) FROM main.\(table.storageName)"
  }

  /// Creates the tables and views in an empty database.
  static func create(in connection: borrowing SQLiteConnection) throws(SQLiteError) {
    for sql in migrations { try connection.execute(sql) }
    try connection.execute("PRAGMA application_id = \(TakeHeader.applicationID)")
    try mark(connection, format: TakeHeader.currentFormat)
  }

  /// Returns an empty take in memory, which can be used to check the names in queries.
  package static func emptyTake() throws(SQLiteError) -> SQLiteConnection {
    let connection = try SQLiteConnection(path: ":memory:", mode: .readWrite)
    try create(in: connection)
    return connection
  }

  /// Stores the format of a take, whose tables and columns always match the newest format.
  static func mark(
    _ connection: borrowing SQLiteConnection, format: Int64
  ) throws(SQLiteError) {
    try connection.execute("PRAGMA user_version = \(format)")
  }

  /// The bytes of an empty take, which are kept because SQLite needs milliseconds to create the
  /// schema.
  static let emptyFile = Result { () throws(SQLiteError) in
    let connection = try SQLiteConnection(path: ":memory:", mode: .readWrite)
    try connection.execute("PRAGMA page_size = \(pageSize)")
    try create(in: connection)
    return connection.serialized()
  }

  /// The bytes of an empty take; nil if SQLite cannot create it.
  package static var emptyBytes: [UInt8]? { try? emptyFile.get() }

  /// The size in bytes of a page of a take.
  static let pageSize = 8_192
}

// MARK: - SchemaCheck

/// Checks that the tables in a file are defined as in a take, before any of them is read.
///
/// A file may have anything under the name of a table: a view that never ends, a virtual table,
/// computed columns, or an index that contradicts its table. No digest covers these. Each table
/// must therefore be defined exactly as in the migrations, token by token. Everything else is
/// listed and never read.
package struct SchemaCheck: Sendable {
  /// Tables, views and triggers that do not belong to a take, such as `view notes`; only the first
  /// few.
  package private(set) var additions: [String] = []
  /// The number of views in the file that differ from this version's views.
  ///
  /// They come from another version or were altered, and this version's views replace them.
  package private(set) var otherViews = 0

  private static let additionLimit = 50

  /// Checks the schema of a file against the format that it claims.
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

  /// Returns what is wrong with a schema entry; nil if it is valid.
  private static func fault(
    _ type: String, _ name: String, _ table: String, _ sql: String, _ format: Int64,
    _ missing: inout Set<String>
  ) -> String? {
    if type == "index" {
      guard newest[table.lowercased()] != nil else { return nil }
      return "the index \(name) does not belong to a take and could change what is read; remove it "
        + "with DROP INDEX \(name)"
    }
    // SQLite ignores case in names, and the first entry with a name counts.
    guard type != "trigger", newest[name.lowercased()] != nil else { return nil }
    let isFirst = missing.remove(name) != nil || isLater(name, format)
    guard isFirst, type == "table", hasColumns(name, sql, format) else {
      return "its \(type) \(name) is not the table that a take of format \(format) has under that "
        + "name; restore the file from a copy"
    }
    return nil
  }

  private static func hasColumns(_ name: String, _ sql: String, _ format: Int64) -> Bool {
    // In most takes, the text is exactly the newest format's text.
    if format == TakeHeader.currentFormat, texts.contains(sql) { return true }
    guard let found = TableStatement(sql), found.name == name, let all = newest[name] else {
      return false
    }
    // A copy of an older take has the tables of the version that made it; columns newer than the
    // take's format are not read.
    return (format...TakeHeader.currentFormat).contains { format in
      let later = columnsAfter(format, of: name)
      return found.columns == all.columns.filter { !later.contains(TableStatement.name(of: $0)) }
    }
  }

  private static func isLater(_ name: String, _ format: Int64) -> Bool {
    Table.allCases.contains { $0.storageName == name && $0.since > format }
  }

  /// Returns a view's definition with its name in quotes, as needed for keywords of other dialects.
  private static func quoted(_ text: String, _ name: String) -> String {
    let head = "CREATE VIEW "
    return "\(head)\"\(name)\"\(text.dropFirst(head.count + name.count))"
  }

  /// Returns whether two statements are equal except for comments and spaces.
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

  /// The definitions of tables that no later migration changes.
  private static let texts = Set(statements.filter { TableStatement($0) != nil }).filter {
    TableStatement($0).map { newest[$0.name] == $0 } ?? false
  }

  /// The migrations' statements about tables, without semicolons.
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

  /// Returns the names of the tables that takes of a format have.
  private static func tables(format: Int64) -> Set<String> {
    let later = Table.allCases.filter { $0.since > format }.map(\.storageName)
    return Set(newest.keys).subtracting(later)
  }

  /// Returns the columns of a table that newer formats added.
  private static func columnsAfter(_ format: Int64, of name: String) -> Set<String> {
    if name == "take" {
      return format < TakeHeader.revisionFormat ? ["revision"] : []
    }
    guard let table = Table.allCases.first(where: { $0.storageName == name }) else { return [] }
    return Set(table.storageColumns()).subtracting(table.storageColumns(format: format))
  }
}

/// A CREATE TABLE statement without comments and with single spaces.
struct TableStatement: Hashable {
  var name: String
  /// The definitions of the columns, such as `row INTEGER PRIMARY KEY`.
  var columns: [String]

  /// Parses a statement; fails unless it creates a table of plain columns.
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

  /// Returns the table and the definition in `ALTER TABLE name ADD COLUMN definition`; nil for
  /// other statements.
  static func addedColumn(_ sql: String) -> (table: String, column: String)? {
    let tokens = tokens(sql)
    guard tokens.count > 5, tokens[0] == "ALTER", tokens[3] == "ADD", tokens[4] == "COLUMN" else {
      return nil
    }
    return (tokens[2], tokens.dropFirst(5).joined(separator: " "))
  }

  /// Returns a column's name: the first word of its definition.
  static func name(of column: String) -> String {
    String(column.prefix { $0 != " " })
  }

  /// Splits a statement into words and individual punctuation characters, dropping whitespace and
  /// comments.
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

  /// Returns whether a comment begins at a place.
  ///
  /// Block comments are not recognized: no migration has one, so no table of a take may have one.
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

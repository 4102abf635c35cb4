import CFiles

/// The schema of takes: the numbered files of Schema/, embedded in the binary.
package enum TakeSchema {
  /// The SQL of every file in order; together they make the newest format.
  package static var migrations: [String] {
    var migrations: [String] = []
    while let sql = cfiles_schema(UInt32(migrations.count)) {
      migrations.append(String(cString: sql))
    }
    return migrations
  }

  /// The views of the newest format: their names and the queries behind them, in their order.
  package static let views: [(name: String, query: String)] = {
    var views: [(name: String, query: String)] = []
    var open: (name: String, lines: [Substring])?
    for line in migrations.flatMap({ $0.split(separator: "\n") }) {
      if let begun = open {
        open?.lines.append(line)
        let isComment = line.drop { $0 == " " }.hasPrefix("--")
        guard line.hasSuffix(";"), !isComment else { continue }
        views.append(
          (begun.name, (begun.lines + [line.dropLast()]).joined(separator: "\n")))
        open = nil
      } else if line.hasPrefix("CREATE VIEW "), line.hasSuffix(" AS") {
        // Some names are words of other dialects, and quoted for them.
        let name = line.dropFirst("CREATE VIEW ".count).dropLast(" AS".count)
        open = (name.filter { $0 != "\"" }, [])
      }
    }
    return views
  }()

  /// Puts the views of this version over those in the file: what a stranger wrote into a file as a
  /// view is not run.
  ///
  /// What an older format does not have is there without rows, so that queries work on every take.
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

  /// Whether the packets of a take are few enough to be held at once; else the views are plain SQL.
  private static func mayCompute(
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    guard try connection.byteCount() > packetMaximum * 60 else { return true }
    return try connection.integer(
      "SELECT 1 FROM packet_store LIMIT 1 OFFSET \(packetMaximum)") == nil
  }

  /// Ten times as many as a call of an hour usually has.
  private static let packetMaximum: Int64 = 6_000_000

  /// What `retake sql` and `retake open` have beside the functions of SQLite, as comments of SQL.
  package static var functionsText: String { SQLiteFunctions.text }

  /// All tables and views of the newest format with their columns, in their order.
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
      // Views have no types of their own.
      let rows = try connection.prepare(
        "SELECT name, type FROM pragma_table_xinfo('\(name)')")
      while try rows.step() {
        columns.append((rows.text(0) ?? "", kind == "view" ? "" : rows.text(1) ?? ""))
      }
      found.append((name, kind == "view", columns))
    }
    return found
  }

  /// The rows of a storage table as a query: with the columns of the newest format, on any take.
  package static func rows(of table: Table, format: Int64) -> String {
    let columns = table.storageColumns()
    let known = table.storageColumns(format: format)
    guard known.count < columns.count else { return "SELECT * FROM main.\(table.storageName)" }
    // Endpoints alone have the numbers of their peers.
    let added = columns.filter { !known.contains($0) }.map {
      "\(table == PeerRow.table && $0 == "actor" ? "peer" : "NULL") AS \($0)"
    }
    let list = (known + added).joined(separator: ", ")
    return "SELECT row, row >> 16 AS step, \(list) FROM main.\(table.storageName)"
  }

  /// Makes the tables in an empty database.
  static func create(in connection: borrowing SQLiteConnection) throws(SQLiteError) {
    for sql in migrations { try connection.execute(sql) }
    try connection.execute("PRAGMA application_id = \(TakeHeader.applicationID)")
    try mark(connection, format: TakeHeader.currentFormat)
  }

  /// A take of the newest format without a row, in memory: what a query can name.
  package static func emptyTake() throws(SQLiteError) -> SQLiteConnection {
    let connection = try SQLiteConnection(path: ":memory:", mode: .readWrite)
    try create(in: connection)
    return connection
  }

  /// Names the format of a take; the newest has the tables of all others.
  static func mark(
    _ connection: borrowing SQLiteConnection, format: Int64
  ) throws(SQLiteError) {
    try connection.execute("PRAGMA user_version = \(format)")
  }

  /// The file of a take without a row, for a process that makes many: it takes SQLite milliseconds
  /// to make the tables and views anew.
  static let emptyFile = Result { () throws(SQLiteError) in
    let connection = try SQLiteConnection(path: ":memory:", mode: .readWrite)
    try connection.execute("PRAGMA page_size = \(pageSize)")
    try create(in: connection)
    return connection.serialized()
  }

  /// How many bytes a page of the file has.
  static let pageSize = 8_192
}

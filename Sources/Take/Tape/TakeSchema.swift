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
  package static var views: [(name: String, query: String)] {
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
        open = (String(line.dropFirst("CREATE VIEW ".count).dropLast(" AS".count)), [])
      }
    }
    return views
  }

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
        // Endpoints alone have the numbers of their peers.
        let added = columns.filter { !known.contains($0) }.map {
          "\(table == PeerRow.table && $0 == "actor" ? "peer" : "NULL") AS \($0)"
        }
        let list = (known + added).joined(separator: ", ")
        statements.append(
          "CREATE TEMP VIEW \(name) AS SELECT row, row >> 16 AS step, \(list) FROM main.\(name);")
      }
    }
    statements += views.map { "CREATE TEMP VIEW \($0.name) AS\n\($0.query);" }
    try connection.execute("PRAGMA query_only = OFF")
    try connection.execute(statements.joined(separator: "\n"))
    try connection.execute("PRAGMA query_only = ON")
  }

  /// Creates the tables in an empty database.
  static func create(in connection: borrowing SQLiteConnection) throws(SQLiteError) {
    for sql in migrations { try connection.execute(sql) }
    try connection.execute("PRAGMA application_id = \(TakeHeader.applicationID)")
    try mark(connection, format: TakeHeader.currentFormat)
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

/// Puts the rows of steps into the tables of a take, and bytes that stand in a stream into that.
final class RowInserts {
  /// How the rows of a table are inserted.
  private struct Entry {
    let statement: InsertStatement
    /// Where the bytes of the last column go; nil when they stay in the row.
    let stream: WireStore?
    /// Whether the table says how many bytes they are in a column of its own.
    let addsSize: Bool
    /// How many values come before them.
    let columnsBefore: Int
  }

  private var entries: [Entry] = []
  private var streams: [WireStore] = []

  /// Prepares an insert for every table, with the columns that takes of a format have.
  init(_ connection: borrowing SQLiteConnection, format: Int64) throws(SQLiteError) {
    var stores: [ByteStream: WireStore] = [:]
    for stream in ByteStream.allCases {
      let store = WireStore(
        try connection.prepare("INSERT OR REPLACE INTO \(stream.rawValue) VALUES (?, ?)"))
      stores[stream] = store
      streams.append(store)
    }
    for table in Table.allCases {
      let definition = table.definition
      // What a format does not have gets no rows, so any columns will do.
      let format = max(format, table.since)
      let names = definition.storageColumns(format: format)
      let columns = names.joined(separator: ", ")
      let places = names.map { _ in "?" }.joined(separator: ", ")
      let sql = "INSERT INTO \(table.storageName) (row, \(columns)) VALUES (?, \(places))"
      entries.append(
        Entry(
          statement: InsertStatement(try connection.prepare(sql)),
          stream: definition.stream.flatMap { stores[$0] }, addsSize: definition.addsSize,
          columnsBefore: table.columnNames(format: format).count - 1))
    }
  }

  /// Inserts the rows of a step; gives how many of them were datagrams.
  func insert(_ rows: borrowing RowList, _ range: Range<Int>, step: Int) throws(SQLiteError) -> Int
  {
    guard range.count <= RowNumber.perStep else {
      throw SQLiteError(code: .misuse, message: "a step with more than 65536 rows")
    }
    let first = RowNumber.first(ofStep: step) - Int64(range.lowerBound)
    var packets = 0
    for row in range {
      let table = rows.table(row)
      if table == .packet { packets += 1 }
      let entry = entries[Int(table.rawValue) - 1]
      var values = rows.row(row)
      // Shortening a slice in place would copy the rows of the whole step.
      if let stream = entry.stream, case .blob(let bytes)? = values.last {
        values = values.dropLast()
        // Behind the number of the row, counted from 1.
        var place = entry.columnsBefore + 2
        if entry.addsSize {
          entry.statement.bind(Int64(bytes.count), at: place)
          place += 1
        }
        entry.statement.bind(stream.position, at: place)
        try stream.append(bytes)
      }
      try entry.statement.run(row: first + Int64(row), values)
    }
    return packets
  }

  /// Writes the pieces that are not full yet, before a transaction ends.
  func flush() throws(SQLiteError) {
    for stream in streams { try stream.flush() }
  }
}

/// A prepared insert that can stand in an array.
final class InsertStatement {
  private var statement: SQLiteStatement

  init(_ statement: consuming SQLiteStatement) { self.statement = statement }

  /// Binds a value that `run` does not get, by its place counted from 1.
  func bind(_ value: Int64, at place: Int) { statement.bind(value, at: Int32(place)) }

  func run(row: Int64? = nil, _ values: ArraySlice<Value>) throws(SQLiteError) {
    try statement.insert(row: row, values)
  }
}

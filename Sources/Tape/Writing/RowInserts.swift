/// Puts the rows of steps into the tables of a take, and their bytes into `wire` and `media`.
final class RowInserts {
  private var inserts: [InsertStatement] = []
  private let wire: WireStore
  private let media: WireStore
  /// How many values a row of `packet` and of `frame` has.
  private let packetColumns: Int
  private let frameColumns: Int

  /// Prepares an insert for every table, with the columns that takes of a format have.
  init(_ connection: borrowing SQLiteConnection, format: Int64) throws(SQLiteError) {
    packetColumns = Table.packet.columns(format: format).count
    frameColumns = Table.frame.columns(format: format).count
    for table in Table.allCases {
      // What a format does not have gets no rows, so any columns will do.
      let names = table.storageColumns(format: max(format, table.since))
      let columns = names.joined(separator: ", ")
      let places = names.map { _ in "?" }.joined(separator: ", ")
      let sql = "INSERT INTO \(table.storageName) (row, \(columns)) VALUES (?, \(places))"
      inserts.append(InsertStatement(try connection.prepare(sql)))
    }
    wire = WireStore(try connection.prepare("INSERT OR REPLACE INTO wire VALUES (?, ?)"))
    media = WireStore(try connection.prepare("INSERT OR REPLACE INTO media VALUES (?, ?)"))
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
      let insert = inserts[Int(table.rawValue) - 1]
      var values = rows.row(row)
      // Shortening a slice in place would copy the rows of the whole step.
      if table == .packet, case .blob(let bytes)? = values.last {
        values = values.dropLast()
        packets += 1
        insert.bind(Int64(bytes.count), at: packetColumns + 1)
        insert.bind(wire.position, at: packetColumns + 2)
        try wire.append(bytes)
      } else if table == .frame, case .blob(let bytes)? = values.last {
        values = values.dropLast()
        insert.bind(media.position, at: frameColumns + 1)
        try media.append(bytes)
      }
      try insert.run(row: first + Int64(row), values)
    }
    return packets
  }

  /// Writes the pieces that are not full yet, before a transaction ends.
  func flush() throws(SQLiteError) {
    try wire.flush()
    try media.flush()
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

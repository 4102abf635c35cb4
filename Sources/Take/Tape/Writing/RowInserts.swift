/// Puts the rows of steps into the tables of a take, and bytes that stand in a stream into that.
final class RowInserts {
  private var inserts: [TableInsert] = []
  private var streams: [WireStore] = []
  /// Whether video frames are stored compressed; who has fallen behind stores them as they are.
  var compresses = true

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
      inserts.append(
        try TableInsert(
          definition, format: format, connection, definition.stream.flatMap { stores[$0] }))
    }
  }

  /// Inserts the rows of a step; returns how many of them were datagrams.
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
      let insert = inserts[Int(table.rawValue) - 1]
      if compresses, let coded = ContentCoding.coded(rows, row, in: range) {
        try insert.insert(rows, row, coded: coded, number: first + Int64(row))
      } else {
        try insert.insert(rows, row, number: first + Int64(row))
      }
    }
    return packets
  }

  /// Writes the pieces that are not full yet, before a transaction ends.
  func flush() throws(SQLiteError) {
    for stream in streams { try stream.flush() }
  }
}

/// Inserts the rows of one table.
final class TableInsert {
  private let statement: SQLiteStatement
  /// Where the bytes of a column go; nil when they stay in the row.
  private let stream: WireStore?
  /// Which column that is, and how many say instead how many bytes they are and where they begin.
  private let column: Int
  private let places: Int
  /// Whether a last column says how the one before is stored, and its parameter.
  private let isCoded: Bool
  private let codingParameter: Int32

  /// Prepares the insert, with the columns that takes of a format have.
  init(
    _ definition: TableDefinition, format: Int64, _ connection: borrowing SQLiteConnection,
    _ stream: WireStore?
  ) throws(SQLiteError) {
    let names = definition.storageColumns(format: format)
    let columns = names.joined(separator: ", ")
    let parameters = names.map { _ in "?" }.joined(separator: ", ")
    statement = try connection.prepare(
      "INSERT INTO \(definition.storageName) (row, \(columns)) VALUES (?, \(parameters))")
    self.stream = stream
    column = definition.streamColumn ?? 0
    places = definition.placeColumns.count
    isCoded = definition.hasCoding(format: format)
    codingParameter = Int32(1 + names.count)
  }

  /// Inserts a row whose last value is stored smaller, where the format of the take knows how.
  func insert(
    _ rows: borrowing RowList, _ row: Int, coded: (ContentCoding, bytes: [UInt8]), number: Int64
  ) throws(SQLiteError) {
    guard isCoded else { return try insert(rows, row, number: number) }
    let values = ValueBytes(
      rows.row(row).dropLast() + [.blob(coded.bytes), .text(coded.0.rawValue)])
    try statement.insert(row: number, values, 0..<values.count)
  }

  /// Inserts a row with all its columns.
  func insert(_ rows: borrowing RowList, _ row: Int, number: Int64) throws(SQLiteError) {
    let range = rows.range(row)
    guard let stream else {
      // What a row before was stored as is still bound.
      if isCoded { statement.bindNull(at: codingParameter) }
      return try statement.insert(row: number, rows.bytes, range)
    }
    // Behind the number of the row, counted from 1.
    let parameter = Int32(2 + column)
    let last = parameter + Int32(places) - 1
    let position = stream.position
    if let length = try stream.append(rows, row, column) {
      if places > 1 { statement.bind(Int64(length), at: parameter) }
      statement.bind(position, at: last)
    } else {
      for place in parameter...last { statement.bindNull(at: place) }
    }
    try statement.insert(row: number, rows.bytes, range, gap: (column, places))
  }
}

/// A prepared insert that can stand in an array.
final class InsertStatement {
  private let statement: SQLiteStatement

  init(_ statement: consuming SQLiteStatement) { self.statement = statement }

  func run(_ values: [Value]) throws(SQLiteError) { try statement.insert(values) }
}

/// The rows of one table in their order, one ahead.
final class TableCursor {
  let table: Table
  /// The number of the row that comes next; the largest number at the end.
  private(set) var next: Int64 = .min
  private var statement: SQLiteStatement
  private let stream: WireCursor
  /// How many values a row has in the format of the take.
  private let count: Int

  init(
    _ table: Table, format: Int64, _ connection: borrowing SQLiteConnection, _ stream: WireCursor
  ) throws(SQLiteError) {
    self.table = table
    self.stream = stream
    count = table.columns(format: format).count
    let columns = table.storageColumns(format: format).joined(separator: ", ")
    statement = try connection.prepare(
      "SELECT row, \(columns) FROM \(table.storageName) ORDER BY \(table.key)")
    try advance()
  }

  private func advance() throws(SQLiteError) {
    next = try statement.step() ? statement.integer(0) : .max
  }

  /// What is wrong with a row that could not be read.
  var damage: String {
    switch table {
    case .packet: "the bytes of a datagram are not where they were"
    case .frame: "the bytes of a frame are not where they were"
    default: "a text was changed"
    }
  }

  /// The columns that say where the row's bytes stand in the stream, when they stand there.
  private func place(_ column: Int) -> (size: Int, position: Int)? {
    switch table {
    case .packet: (column, column + 1)
    case .frame: statement.isNull(column) ? nil : (TableCursor.frameSizeColumn, column)
    default: nil
    }
  }

  /// Where a row of `frame_store` says how many bytes it has; `row` comes before the columns.
  private static let frameSizeColumn = 1 + Table.frame.column("size")

  /// Reads the present row and goes to the next; false when it is damaged.
  func read(into rows: inout RowList) throws(SQLiteError) -> Bool {
    rows.begin(table)
    var isGood = true
    for column in 1...count {
      if column == count, let place = place(column) {
        isGood = isGood && statement.integer(place.position) == stream.position
        if let bytes = try stream.take(statement.integer(place.size)) {
          rows.append(.blob(bytes))
          continue
        }
      } else if let value = statement.value(column) {
        rows.append(value)
        continue
      }
      rows.append(.null)
      isGood = false
    }
    try advance()
    return isGood
  }
}

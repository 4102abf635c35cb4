/// The rows of one table in their order, one ahead.
final class TableCursor {
  let table: Table
  /// The number of the row that comes next; the largest number at the end.
  private(set) var next: Int64 = .min
  private var statement: SQLiteStatement
  /// Where the bytes of the last column stand; nil when they stand in the table.
  private let stream: WireCursor?
  /// The result column that says how many bytes they are.
  private let sizeColumn: Int
  /// The result columns that hold the values, behind that of the row's number.
  private let columns: Range<Int>

  /// - Parameter streams: what the bytes of tables stand in.
  init(
    _ table: Table, format: Int64, _ connection: borrowing SQLiteConnection,
    _ streams: [ByteStream: WireCursor]
  ) throws(SQLiteError) {
    self.table = table
    let definition = table.definition
    stream = definition.stream.flatMap { streams[$0] }
    let names = definition.storageColumns(format: format)
    sizeColumn = 1 + (names.firstIndex(of: "size") ?? 0)
    // Bytes in a stream have no column here: where they begin stands in the last one.
    let kept = table.columnNames(format: format).count - (stream == nil ? 0 : 1)
    columns = 1..<1 + kept
    positionColumn = names.count
    statement = try connection.prepare(
      "SELECT row, \(names.joined(separator: ", ")) FROM \(table.storageName) "
        + "ORDER BY \(definition.key)")
    try advance()
  }

  /// The result column that says where bytes begin in their stream.
  private let positionColumn: Int

  private func advance() throws(SQLiteError) {
    next = try statement.step() ? statement.integer(0) : .max
  }

  /// What is wrong with a row that could not be read.
  var damage: String {
    stream == nil
      ? "a text was changed" : "the bytes of its \(table.name) rows are not where they were"
  }

  /// Reads the present row and goes to the next; false when it is damaged.
  func read(into rows: inout RowList) throws(SQLiteError) -> Bool {
    rows.begin(table)
    var isGood = statement.append(columns, to: &rows)
    if let stream {
      let bytes = try bytes(stream)
      rows.append(bytes ?? .null)
      isGood = isGood && bytes != nil
    }
    try advance()
    return isGood
  }

  /// The bytes of the present row, which must be the next of the stream; nil when they are not.
  private func bytes(_ stream: WireCursor) throws(SQLiteError) -> Value? {
    if statement.isNull(positionColumn) { return .null }
    guard statement.integer(positionColumn) == stream.position else { return nil }
    return try stream.take(statement.integer(sizeColumn)).map { .blob($0) }
  }
}

/// The rows of one table in their order, one ahead.
final class TableCursor {
  let table: Table
  /// The number of the row that comes next; the largest number at the end.
  private(set) var next: Int64 = .min
  private let statement: SQLiteStatement
  /// Where the bytes of a column stand; nil when they stand in the table.
  private let stream: WireCursor?
  /// The result columns that hold the values before these bytes, or all of them, and those behind:
  /// the first result column is the number of the row.
  private let columns: Range<Int>
  private let columnsBehind: Range<Int>
  /// The result columns that say how many bytes they are, and where they begin in their stream.
  private let sizeColumn: Int
  private let positionColumn: Int
  /// The result column that says how the one before is stored; nil for a table without one.
  private let codingColumn: Int?

  /// - Parameter streams: what the bytes of tables stand in.
  init(
    _ definition: TableDefinition, format: Int64, _ connection: borrowing SQLiteConnection,
    _ streams: [ByteStream: WireCursor]
  ) throws(SQLiteError) {
    table = definition.table
    stream = definition.stream.flatMap { streams[$0] }
    let names = definition.storageColumns(format: format)
    codingColumn = definition.hasCoding(format: format) ? names.count : nil
    sizeColumn = 1 + (names.firstIndex(of: "size") ?? 0)
    if let place = definition.streamColumn {
      let behind = 1 + place + definition.placeColumns.count
      columns = 1..<1 + place
      positionColumn = behind - 1
      columnsBehind = behind..<1 + names.count
    } else {
      columns = 1..<1 + names.count - (definition.hasCoding(format: format) ? 2 : 0)
      positionColumn = 0
      columnsBehind = 0..<0
    }
    statement = try connection.prepare(
      "SELECT row, \(names.joined(separator: ", ")) FROM \(definition.storageName) "
        + "ORDER BY \(definition.key)")
    try advance()
  }

  private func advance() throws(SQLiteError) {
    guard try statement.step() else {
      next = .max
      return
    }
    // A number of another type is no number of a row, and the largest one stands for the end.
    next = statement.storageClass(0) == .integer ? min(statement.exactInteger(0), .max - 1) : .min
  }

  /// What is wrong with a row that could not be read.
  var damage: String {
    if codingColumn != nil { return "its compressed bytes cannot be read" }
    return stream == nil
      ? "a text was changed" : "the bytes of its \(table.name) rows are not where they were"
  }

  /// Reads the present row and goes to the next; false when it is damaged.
  func read(into rows: inout RowList) throws(SQLiteError) -> Bool {
    rows.begin(table)
    var isGood = statement.append(columns, to: &rows.bytes)
    if let stream {
      guard try readBytes(of: stream, into: &rows.bytes) else {
        rows.removeLast()
        return false
      }
      isGood = statement.append(columnsBehind, to: &rows.bytes) && isGood
    }
    if let codingColumn {
      let bytes = decodedBytes(codingColumn)
      rows.bytes.append(bytes.map { .blob($0) } ?? .null)
      isGood = isGood && bytes != nil
    }
    try advance()
    return isGood
  }

  /// The bytes of the present row as they were before they were stored; nil when that cannot be
  /// told.
  private func decodedBytes(_ codingColumn: Int) -> [UInt8]? {
    let bytes = statement.bytes(codingColumn - 1)
    guard statement.storageClass(codingColumn - 1) == .blob else { return nil }
    switch statement.storageClass(codingColumn) {
    case .null: return bytes
    case .text: break
    default: return nil
    }
    return statement.text(codingColumn).flatMap { ContentCoding(rawValue: $0) }?.decoded(bytes)
  }

  /// Reads the bytes of the present row, which must be the next of the stream; false when they are
  /// not.
  private func readBytes(
    of stream: WireCursor, into bytes: inout ValueBytes
  ) throws(SQLiteError) -> Bool {
    let position = statement.exactInteger(positionColumn)
    switch statement.storageClass(positionColumn) {
    case .null:
      bytes.appendNull()
      return true
    case .integer where statement.storageClass(sizeColumn) == .integer: break
    default: return false
    }
    guard position == stream.position else { return false }
    return try stream.read(statement.exactInteger(sizeColumn), into: &bytes)
  }
}

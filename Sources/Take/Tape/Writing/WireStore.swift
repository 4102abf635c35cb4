/// The `wire` and `media` tables: the bytes of all datagrams, and of all frames, as one stream
/// each, in pieces that fill a page.
///
/// Rows with a kilobyte of payload leave up to a tenth of their pages unused, rows with several a
/// quarter; a stream does not.
enum WirePiece {
  /// The bytes of a full piece: with 8 KiB pages, what one row can hold without an overflow page.
  static let length = 8_152
}

/// Writes a stream of bytes.
final class WireStore {
  private let insert: SQLiteStatement
  private var piece: Int64 = 0
  private var rest: [UInt8] = []
  private var isFlushed = true

  init(_ insert: consuming SQLiteStatement) { self.insert = insert }

  /// Where the next byte will stand.
  var position: Int64 { piece * Int64(WirePiece.length) + Int64(rest.count) }

  /// Adds the bytes of a datagram or frame, a column of a row.
  ///
  /// - Returns: how many they are; nil when it has none.
  func append(_ rows: borrowing RowList, _ row: Int, _ column: Int) throws(SQLiteError) -> Int? {
    guard let place = rows.place(row, column), case .blob = rows.bytes.form(at: place) else {
      return nil
    }
    return try rows.bytes.withContents(at: place) { bytes throws(SQLiteError) in
      try append(bytes)
      return bytes.count
    }
  }

  /// Adds bytes; full pieces are written at once.
  private func append(_ bytes: UnsafeRawBufferPointer) throws(SQLiteError) {
    isFlushed = isFlushed && bytes.isEmpty
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + WirePiece.length - rest.count)
      rest.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
      start = end
      guard rest.count == WirePiece.length else { return }
      try write()
      rest.removeAll(keepingCapacity: true)
      piece += 1
    }
  }

  /// Writes the piece that is not full yet; it is replaced when more comes.
  func flush() throws(SQLiteError) {
    guard !isFlushed else { return }
    isFlushed = true
    if !rest.isEmpty { try write() }
  }

  private func write() throws(SQLiteError) {
    let bytes = rest
    try bytes.span.bytes.withUnsafeBytes { bytes throws(SQLiteError) in
      try insert.insert(row: piece, blob: bytes)
    }
  }
}

/// Reads a stream of bytes from its beginning.
package final class WireCursor {
  private let statement: SQLiteStatement
  private var nextPiece: Int64 = 0
  /// The bytes of the present piece that were not taken yet: the statement lends them until its
  /// next step, and nobody else steps it.
  private var piece = UnsafeRawBufferPointer(start: nil, count: 0)
  private var isFull = true
  /// Where the next byte stands.
  private(set) var position: Int64 = 0

  /// Begins at the first byte of `wire` or `media`.
  package init(_ connection: borrowing SQLiteConnection, table: StaticString) throws(SQLiteError) {
    statement = try connection.prepare("SELECT piece, bytes FROM \(table) ORDER BY piece")
  }

  /// The next bytes of the stream; nil when it does not have so many, or not in good order.
  package func read(_ count: Int64) throws(SQLiteError) -> [UInt8]? {
    var taken: [UInt8] = []
    let isWhole = try read(count) { taken.append(contentsOf: $0) }
    return isWhole ? taken : nil
  }

  /// Appends the next bytes of the stream as a value; false, and nothing useful, when it does not
  /// have so many, or not in good order.
  func read(_ count: Int64, into values: inout ValueBytes) throws(SQLiteError) -> Bool {
    // The count is the file's and may be anything.
    guard count >= 0, let length = Int(exactly: count) else { return false }
    values.beginBlob(length)
    return try read(count) { values.append($0) }
  }

  /// Hands out the next bytes in parts.
  private func read(
    _ count: Int64, _ body: (UnsafeRawBufferPointer) -> Void
  ) throws(SQLiteError) -> Bool {
    guard count >= 0 else { return false }
    var rest = count
    while rest > 0 {
      if piece.isEmpty {
        guard try readPiece() else { return false }
      }
      let part = Int(min(rest, Int64(piece.count)))
      body(UnsafeRawBufferPointer(rebasing: piece[..<part]))
      piece = UnsafeRawBufferPointer(rebasing: piece[part...])
      rest -= Int64(part)
    }
    position += count
    return true
  }

  /// Whether every byte was taken.
  func isAtEnd() throws(SQLiteError) -> Bool {
    guard piece.isEmpty else { return false }
    return try !statement.step()
  }

  private func readPiece() throws(SQLiteError) -> Bool {
    guard isFull, try statement.step(), statement.exactInteger(0) == nextPiece else { return false }
    guard statement.storageClass(1) == .blob else { return false }
    piece = statement.lentBytes(1)
    isFull = piece.count == WirePiece.length
    nextPiece += 1
    return !piece.isEmpty && piece.count <= WirePiece.length
  }
}

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
  private var insert: SQLiteStatement
  private var piece: Int64 = 0
  private var rest: [UInt8] = []
  private var isFlushed = true

  init(_ insert: consuming SQLiteStatement) { self.insert = insert }

  /// Where the next byte will stand.
  var position: Int64 { piece * Int64(WirePiece.length) + Int64(rest.count) }

  /// Adds the bytes of a datagram or frame; full pieces are written at once.
  func append(_ bytes: [UInt8]) throws(SQLiteError) {
    isFlushed = isFlushed && bytes.isEmpty
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + WirePiece.length - rest.count)
      rest.append(contentsOf: bytes[start..<end])
      start = end
      guard rest.count == WirePiece.length else { return }
      try write(rest)
      rest.removeAll(keepingCapacity: true)
      piece += 1
    }
  }

  /// Writes the piece that is not full yet; it is replaced when more comes.
  func flush() throws(SQLiteError) {
    guard !isFlushed else { return }
    isFlushed = true
    if !rest.isEmpty { try write(rest) }
  }

  private func write(_ bytes: [UInt8]) throws(SQLiteError) {
    try insert.insert(row: piece, [.blob(bytes)])
  }
}

/// Reads a stream of bytes from its beginning.
package final class WireCursor {
  private var statement: SQLiteStatement
  private var nextPiece: Int64 = 0
  private var bytes: [UInt8] = []
  private var offset = 0
  /// Where the next byte stands.
  private(set) var position: Int64 = 0

  /// Begins at the first byte of `wire` or `media`.
  package init(_ connection: borrowing SQLiteConnection, table: StaticString) throws(SQLiteError) {
    statement = try connection.prepare("SELECT piece, bytes FROM \(table) ORDER BY piece")
  }

  /// The next bytes of the stream; nil when it does not have so many, or not in good order.
  package func take(_ count: Int64) throws(SQLiteError) -> [UInt8]? {
    guard count >= 0 else { return nil }
    // Most stand in one piece; the count is the file's and may be anything.
    if count <= Int64(bytes.count - offset) {
      let end = offset + Int(count)
      defer { offset = end }
      position += count
      return Array(bytes[offset..<end])
    }
    var taken: [UInt8] = []
    while Int64(taken.count) < count {
      if offset == bytes.count {
        guard try readPiece() else { return nil }
      }
      let part = Int(min(count - Int64(taken.count), Int64(bytes.count - offset)))
      taken.append(contentsOf: bytes[offset..<offset + part])
      offset += part
    }
    position += count
    return taken
  }

  /// Whether every byte was taken.
  func isAtEnd() throws(SQLiteError) -> Bool {
    guard offset == bytes.count else { return false }
    return try !statement.step()
  }

  private func readPiece() throws(SQLiteError) -> Bool {
    guard nextPiece == 0 || bytes.count == WirePiece.length else { return false }
    guard try statement.step() else { return false }
    let (piece, bytes) = statement.values(Int64.self, [UInt8].self)
    guard piece == nextPiece else { return false }
    self.bytes = bytes
    offset = 0
    nextPiece += 1
    return !bytes.isEmpty && bytes.count <= WirePiece.length
  }
}

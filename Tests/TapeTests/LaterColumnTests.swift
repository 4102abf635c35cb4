import Testing

@testable import Tape

/// Tests a column that was added in a later format, after a column whose bytes are stored in a
/// separate stream.
struct LaterColumnTests {
  private struct Note: TableRow, Equatable {
    static var table: Table { Table(rawValue: 99) }
    static var name: String { "note" }
    static var storageName: String { "note_store" }
    static var blank: Self { Self() }

    var title = ""
    var bytes: [UInt8]? = []
    var pages: Int?

    mutating func visit(_ columns: inout some ColumnVisitor) {
      columns.column("title", &title)
      columns.column("bytes", &bytes, in: .wire)
      columns.column("pages", &pages, since: 4)
    }
  }

  private static let notes = [
    Note(title: "a", bytes: [1, 2, 3], pages: 7), Note(title: "b", bytes: nil, pages: 8),
    Note(title: "c", bytes: [UInt8](repeating: 9, count: 20_000), pages: nil),
  ]

  @Test(arguments: [3, 4] as [Int64])
  func aRowIsReadAsItsFormatHasIt(format: Int64) throws {
    let connection = try SQLiteConnection(path: ":memory:", mode: .readWrite)
    let definition = TableDefinition(Note.self)
    let names = definition.storageColumns(format: format)
    #expect(names == ["title", "size", "position"] + (format < 4 ? [] : ["pages"]))
    try connection.execute(
      """
      CREATE TABLE note_store (row INTEGER PRIMARY KEY, \(names.joined(separator: ", ")));
      CREATE TABLE wire (piece INTEGER PRIMARY KEY, bytes BLOB);
      """)

    let store = WireStore(try connection.prepare("INSERT OR REPLACE INTO wire VALUES (?, ?)"))
    let insert = try TableInsert(definition, format: format, connection, store)
    var rows = RowList()
    for note in Self.notes { rows.append(note, format: format) }
    for row in 0..<rows.count { try insert.insert(rows, row, number: Int64(row) + 1, nil) }
    try store.flush()

    let wire = try WireCursor(connection, .wire, format: format)
    let cursor = try TableCursor(definition, format: format, connection, [.wire: wire])
    var read = RowList()
    for _ in Self.notes { #expect(try cursor.read(into: &read)) }
    #expect(cursor.next == .max)
    #expect(read == rows)
    for (row, note) in Self.notes.enumerated() {
      var expected = note
      if format < 4 { expected.pages = nil }
      #expect(Note(read, row) == expected)
    }
  }
}

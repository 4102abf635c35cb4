package import Wire

/// A row of a table as a value with typed fields.
///
/// The type is the one definition of the table: what its columns are called and hold, in which
/// order they are written, read, hashed and compared, and how they are printed.
package protocol TableRow: Sendable {
  static var table: Table { get }
  /// The table's name for people: that of its view, where it has one.
  static var name: String { get }
  /// The table that holds the rows.
  static var storageName: String { get }
  /// Whether the first column is a number of the row that other tables refer to.
  static var isNumbered: Bool { get }
  /// The format of takes that has the table first.
  static var since: Int64 { get }
  /// The format of takes in which the last column is stored smaller; nil for none.
  static var codedSince: Int64? { get }

  /// A row whose fields say nothing yet.
  static var blank: Self { get }

  /// Shows every column to a visitor, which reads or changes its field.
  ///
  /// The order is stored and hashed; a new column comes last, with the format that it came with.
  mutating func visit(_ columns: inout some ColumnVisitor)
}

extension TableRow {
  package static var storageName: String { name }
  package static var isNumbered: Bool { false }
  package static var since: Int64 { 2 }
  package static var codedSince: Int64? { nil }

  /// The columns of the table.
  package static var columns: [TableColumn] {
    var row = Self.blank
    var list = ColumnList(since: since)
    row.visit(&list)
    return list.columns
  }

  /// Reads a row of the list; nil when it is one of another table, or has other values.
  ///
  /// A column that the take's format does not have leaves its field blank.
  package init?(_ rows: borrowing RowList, _ row: Int) {
    guard rows.table(row) == Self.table else { return nil }
    self = Self.blank
    var reader = RowReader(rows.bytes, rows.range(row))
    visit(&reader)
    guard reader.isGood else { return nil }
  }
}

extension TableRow {
  /// Reads a row without its bytes, which are left blank; nil as in reading all of it.
  init?(withoutBlobsOf rows: borrowing RowList, _ row: Int) {
    guard rows.table(row) == Self.table else { return nil }
    self = Self.blank
    var reader = RowReader(rows.bytes, rows.range(row), leavesBlobs: true)
    visit(&reader)
    guard reader.isGood else { return nil }
  }
}

/// A row that says whose it is and when: its first two columns.
package protocol StampedRow: TableRow {
  var peer: PeerNumber { get set }
  var at: Instant { get set }
}

/// Where bytes stand that would waste the pages of their own table.
package enum ByteStream: String, Sendable, CaseIterable {
  case wire
  case media
}

/// What is special about a column.
package struct ColumnTraits: Sendable {
  /// The format that the column came with; nil when it came with its table.
  var since: Int64?
  /// The stream that its bytes stand in.
  var stream: ByteStream?
  /// Whether only a codec knows the value.
  var needsCodec = false
}

/// Goes through the columns of a row.
package protocol ColumnVisitor {
  mutating func visit<Field: ColumnValue>(
    _ name: StaticString, _ field: inout Field, _ traits: ColumnTraits)
}

extension ColumnVisitor {
  /// A column that came with its table.
  @inline(__always)
  package mutating func column(_ name: StaticString, _ field: inout some ColumnValue) {
    visit(name, &field, ColumnTraits())
  }

  /// A column that came later than its table.
  @inline(__always)
  package mutating func column(
    _ name: StaticString, _ field: inout some ColumnValue, since format: Int64
  ) {
    visit(name, &field, ColumnTraits(since: format))
  }

  /// A column whose bytes stand in a stream; a table has one at most.
  @inline(__always)
  package mutating func column(
    _ name: StaticString, _ field: inout some ColumnValue, in stream: ByteStream
  ) {
    visit(name, &field, ColumnTraits(stream: stream))
  }

  /// A column whose value only a codec knows.
  @inline(__always)
  package mutating func column(ofCodec name: StaticString, _ field: inout some ColumnValue) {
    visit(name, &field, ColumnTraits(needsCodec: true))
  }
}

/// A column of a table.
package struct TableColumn: Sendable {
  package let name: String
  package let kind: ColumnKind
  /// Whether it may be null.
  package let isOptional: Bool
  /// The format that it came with.
  package let since: Int64
  /// The stream that its bytes stand in; nil when they stand in the table.
  package let stream: ByteStream?
  /// Whether only a codec knows the value: nobody compares it where none runs.
  package let needsCodec: Bool
}

/// Lists the columns.
private struct ColumnList: ColumnVisitor {
  let since: Int64
  var columns: [TableColumn] = []

  mutating func visit<Field: ColumnValue>(
    _ name: StaticString, _ field: inout Field, _ traits: ColumnTraits
  ) {
    columns.append(
      TableColumn(
        name: "\(name)", kind: Field.kind, isOptional: Field.isOptional,
        since: traits.since ?? since, stream: traits.stream, needsCodec: traits.needsCodec))
  }
}

/// Writes the fields of a row as values; what a format does not have is left out.
struct RowWriter: ColumnVisitor {
  var bytes: ValueBytes
  let format: Int64

  @inline(__always)
  mutating func visit<Field: ColumnValue>(
    _ name: StaticString, _ field: inout Field, _ traits: ColumnTraits
  ) {
    if let since = traits.since, since > format { return }
    field.write(to: &bytes)
  }
}

/// Reads the fields of a row from its values.
private struct RowReader: ColumnVisitor {
  private let bytes: ValueBytes
  private var offset: Int
  private let end: Int
  private(set) var isGood = true
  private let leavesBlobs: Bool

  init(_ bytes: ValueBytes, _ range: Range<Int>, leavesBlobs: Bool = false) {
    self.bytes = bytes
    self.leavesBlobs = leavesBlobs
    offset = range.lowerBound
    end = range.upperBound
  }

  @inline(__always)
  mutating func visit<Field: ColumnValue>(
    _ name: StaticString, _ field: inout Field, _ traits: ColumnTraits
  ) {
    guard offset < end else {
      isGood = isGood && traits.since != nil
      return
    }
    defer { offset = bytes.end(ofValueAt: offset) }
    if leavesBlobs, bytes.isBlob(at: offset) { return }
    if let read = Field(bytes, at: offset) { field = read } else { isGood = false }
  }
}

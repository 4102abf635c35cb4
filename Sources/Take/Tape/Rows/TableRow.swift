package import Wire

/// A table's row as a value with typed fields.
///
/// The type is the table's only definition: its columns' names and types, the order in which they
/// are written, read, hashed and compared, and how they are printed.
package protocol TableRow: Sendable {
  static var table: Table { get }
  /// The name that users see: the view's, if there is one.
  static var name: String { get }
  /// The table that stores the rows.
  static var storageName: String { get }
  /// Whether the first column is a number that other tables refer to.
  static var isNumbered: Bool { get }
  /// The format that introduced the table.
  static var since: Int64 { get }
  /// The format that introduced compression of the last column; nil for none.
  static var codedSince: Int64? { get }

  /// A row with default values.
  static var blank: Self { get }

  /// Passes every column to a visitor, which reads or changes its field.
  ///
  /// The order is stored and hashed; a new column comes last, with the format that introduced it.
  mutating func visit(_ columns: inout some ColumnVisitor)
}

extension TableRow {
  package static var storageName: String { name }
  package static var isNumbered: Bool { false }
  package static var since: Int64 { 2 }
  package static var codedSince: Int64? { nil }

  package static var columns: [TableColumn] {
    var row = Self.blank
    var list = ColumnList(since: since)
    row.visit(&list)
    return list.columns
  }

  /// Reads a row from a list; fails if it belongs to another table or has invalid values.
  ///
  /// Columns that the take's format lacks keep their default.
  package init?(_ rows: borrowing RowList, _ row: Int) {
    guard rows.table(row) == Self.table else { return nil }
    self = Self.blank
    var reader = RowReader(rows.bytes, rows.range(row))
    visit(&reader)
    guard reader.isGood else { return nil }
  }
}

extension TableRow {
  /// Reads a row without its blobs; fails if the row is invalid.
  init?(withoutBlobsOf rows: borrowing RowList, _ row: Int) {
    guard rows.table(row) == Self.table else { return nil }
    self = Self.blank
    var reader = RowReader(rows.bytes, rows.range(row), leavesBlobs: true)
    visit(&reader)
    guard reader.isGood else { return nil }
  }
}

/// A row whose first two columns are the peer and the time.
package protocol StampedRow: TableRow {
  var peer: PeerNumber { get set }
  var at: Instant { get set }
}

/// A stream for bytes that would waste space on their own table's pages.
package enum ByteStream: String, Sendable, CaseIterable {
  case wire
  case media
}

/// A column's special properties.
package struct ColumnTraits: Sendable {
  /// The format that introduced the column; nil if it is as old as its table.
  var since: Int64?
  /// The stream that stores its bytes.
  var stream: ByteStream?
  /// Whether the value depends on running a codec.
  var needsCodec = false
}

/// Visits a row's columns.
package protocol ColumnVisitor {
  mutating func visit<Field: ColumnValue>(
    _ name: StaticString, _ field: inout Field, _ traits: ColumnTraits)
}

extension ColumnVisitor {
  /// Visits a column that is as old as its table.
  @inline(__always)
  package mutating func column(_ name: StaticString, _ field: inout some ColumnValue) {
    visit(name, &field, ColumnTraits())
  }

  /// Visits a column that is newer than its table.
  @inline(__always)
  package mutating func column(
    _ name: StaticString, _ field: inout some ColumnValue, since format: Int64
  ) {
    visit(name, &field, ColumnTraits(since: format))
  }

  /// Visits a column whose bytes are in a stream; a table has at most one.
  @inline(__always)
  package mutating func column(
    _ name: StaticString, _ field: inout some ColumnValue, in stream: ByteStream
  ) {
    visit(name, &field, ColumnTraits(stream: stream))
  }

  /// Visits a column whose value depends on running a codec.
  @inline(__always)
  package mutating func column(ofCodec name: StaticString, _ field: inout some ColumnValue) {
    visit(name, &field, ColumnTraits(needsCodec: true))
  }
}

/// A table's column, and how it is created.
package struct TableColumn: Sendable {
  package let name: String
  package let kind: ColumnKind
  /// Whether it may be null.
  package let isOptional: Bool
  /// The format that introduced it.
  package let since: Int64
  /// The stream that stores its bytes; nil if they are in the table.
  package let stream: ByteStream?
  /// Whether the value depends on running a codec; a replay without codecs does not compare it.
  package let needsCodec: Bool
}

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

/// Writes a row's fields as values, omitting columns that a format lacks.
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

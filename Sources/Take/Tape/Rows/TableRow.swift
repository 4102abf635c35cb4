package import Wire

/// A row of a table as a value with typed fields.
///
/// The type alone defines the table: the names and types of its columns, their order when they are
/// stored, hashed and compared, and how they are shown.
package protocol TableRow: Sendable {
  static var table: Table { get }
  /// The name that queries use: the view's, if the table has one.
  static var name: String { get }
  /// The name of the table that stores the rows.
  static var storageName: String { get }
  /// Whether the rows have numbers that other tables refer to.
  static var isNumbered: Bool { get }
  /// The oldest format that has the table.
  static var since: Int64 { get }
  /// The first format in which the last column may be compressed; nil if it is never compressed.
  static var codedSince: Int64? { get }

  /// A row in which all fields have their defaults.
  static var blank: Self { get }

  /// Passes each column to a visitor, which may read or change the field.
  ///
  /// The order is stored and hashed, so a new column must come last, with the format that
  /// introduced it.
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

  /// Reads a row; fails if it is a row of another table or has an invalid value.
  ///
  /// Fields of columns that the take's format lacks keep their defaults.
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

/// A row whose first columns are a peer and a time.
package protocol StampedRow: TableRow {
  var peer: PeerNumber { get set }
  var at: Instant { get set }
}

/// A stream for bytes that would waste space on the pages of their own table.
package enum ByteStream: String, Sendable, CaseIterable {
  case wire
  case media
}

/// The properties in a column's declaration besides its name and type.
package struct ColumnTraits: Sendable {
  /// The format that introduced the column; nil if it is as old as the table.
  var since: Int64?
  /// The stream that contains the column's bytes; nil if the table contains them.
  var stream: ByteStream?
  /// Whether the value depends on running a codec.
  var needsCodec = false
}

/// Receives the columns of a row one by one, and may change the fields.
package protocol ColumnVisitor {
  mutating func visit<Field: ColumnValue>(
    _ name: StaticString, _ field: inout Field, _ traits: ColumnTraits)
}

extension ColumnVisitor {
  /// Visits a column that is as old as its table and stored in it.
  @inline(__always)
  package mutating func column(_ name: StaticString, _ field: inout some ColumnValue) {
    visit(name, &field, ColumnTraits())
  }

  /// Visits a column that a later format added to its table.
  @inline(__always)
  package mutating func column(
    _ name: StaticString, _ field: inout some ColumnValue, since format: Int64
  ) {
    visit(name, &field, ColumnTraits(since: format))
  }

  /// Visits a column whose bytes are in a stream; a table may have only one.
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

/// A column of a table, with the properties that were declared for it.
package struct TableColumn: Sendable {
  package let name: String
  package let kind: ColumnKind
  /// Whether the column may be null.
  package let isOptional: Bool
  /// The oldest format that has the column.
  package let since: Int64
  /// The stream that contains the column's bytes; nil if the table contains them.
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

/// Writes the fields of a row, without the columns that a format does not have.
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

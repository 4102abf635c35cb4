/// A storage table whose rows are part of steps' transcripts.
///
/// This is only a number and a row type; the row type defines the columns, and Schema/ explains
/// them.
package struct Table: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  private init(_ number: UInt8) { rawValue = number }

  // The numbers are hashed and must never change.
  package static let peer = Table(1)
  package static let path = Table(2)
  package static let format = Table(3)
  package static let content = Table(4)
  package static let network = Table(5)
  package static let callRequest = Table(6)
  package static let callReply = Table(7)
  package static let signaling = Table(8)
  package static let capture = Table(9)
  package static let state = Table(10)
  package static let candidate = Table(11)
  package static let candidatePair = Table(12)
  package static let packet = Table(13)
  package static let track = Table(14)
  package static let rtcp = Table(15)
  package static let frame = Table(16)
  package static let stat = Table(17)
  package static let event = Table(18)
  package static let channel = Table(19)
  package static let message = Table(20)
  package static let level = Table(21)
  package static let speech = Table(22)
  package static let contribution = Table(23)
  package static let clock = Table(24)
  package static let actor = Table(25)
  package static let coverage = Table(26)
  package static let presence = Table(27)
  package static let carriage = Table(28)

  /// Each table's row type, in numeric order.
  package static let rowTypes: [any TableRow.Type] = [
    PeerRow.self, PathRow.self, FormatRow.self, ContentRow.self, NetworkRow.self,
    CallRequestRow.self, CallReplyRow.self, SignalingRow.self, CaptureRow.self, StateRow.self,
    CandidateRow.self, CandidatePairRow.self, PacketRow.self, TrackRow.self, RTCPRow.self,
    FrameRow.self, StatRow.self, EventRow.self, ChannelRow.self, MessageRow.self, LevelRow.self,
    SpeechRow.self, ContributionRow.self, ClockRow.self, ActorRow.self, CoverageRow.self,
    PresenceRow.self, CarriageRow.self,
  ]

  /// All tables, in numeric order.
  package static let allCases = definitions.map(\.table)

  private static let definitions = rowTypes.map { TableDefinition($0) }

  /// The definition derived from the row type.
  var definition: TableDefinition { Table.definitions[Int(rawValue) - 1] }

  /// The name that users see: the view's, if there is one.
  package var name: String { definition.name }
  /// The table that stores the rows.
  package var storageName: String { definition.storageName }
  /// The format that introduced the table.
  package var since: Int64 { definition.since }

  /// The columns after `row` that are written, read, hashed and compared, in this order.
  package var columns: [TableColumn] { definition.columns }
  package var columnNames: [String] { definition.names }

  /// Returns the columns that takes of a format have; later columns come last.
  package func columnNames(format: Int64) -> [String] {
    definition.columns.filter { $0.since <= format }.map(\.name)
  }

  package var rowType: any TableRow.Type { Table.rowTypes[Int(rawValue) - 1] }

  /// The column that orders the rows without sorting.
  var key: String { definition.key }

  /// Whether other tables refer to its rows by number.
  package var isNumbered: Bool { rowType.isNumbered }

  /// Returns the storage table's columns in takes of a format.
  package func storageColumns(format: Int64 = TakeHeader.currentFormat) -> [String] {
    definition.storageColumns(format: format)
  }

  /// Returns a column's index by name; nil if the table lacks it.
  package func column(_ name: String) -> Int? { definition.names.firstIndex(of: name) }
}

extension Table: CustomStringConvertible {
  package var description: String { name }
}

/// A table's definition, derived from its row type.
struct TableDefinition: Sendable {
  let table: Table
  let name: String
  let storageName: String
  let since: Int64
  let columns: [TableColumn]
  let names: [String]
  /// The column that orders the rows without sorting.
  let key: String
  /// The stream that stores one column's bytes, if they are not in the table.
  let stream: ByteStream?
  /// The index of the column whose bytes are in the stream.
  let streamColumn: Int?
  /// The format that introduced compression of the last column, with another column for the
  /// encoding.
  let codedSince: Int64?

  init(_ row: any TableRow.Type) {
    table = row.table
    name = row.name
    storageName = row.storageName
    since = row.since
    codedSince = row.codedSince
    columns = row.columns
    names = columns.map(\.name)
    key = row.isNumbered ? names[0] : "row"
    streamColumn = columns.firstIndex { $0.stream != nil }
    stream = streamColumn.flatMap { [columns] in columns[$0].stream }
  }

  /// Whether the storage table has an extra column for the size of streamed bytes.
  var addsSize: Bool { stream != nil && !names.contains("size") }

  /// Returns the storage table's columns in the given take format; a column of streamed bytes is
  /// replaced with its size and position.
  func storageColumns(format: Int64) -> [String] {
    columns.filter { $0.since <= format }.flatMap { $0.stream == nil ? [$0.name] : placeColumns }
      + (hasCoding(format: format) ? ["coding"] : [])
  }

  /// Returns whether takes of a format end with a column for the encoding of the one before.
  func hasCoding(format: Int64) -> Bool { codedSince.map { $0 <= format } ?? false }

  /// The columns that locate the streamed bytes.
  var placeColumns: [String] { (addsSize ? ["size"] : []) + ["position"] }
}

/// The numbering of a step's rows in the file.
enum RowNumber {
  /// The maximum number of rows in a step.
  static let perStep = 65_536

  static func first(ofStep step: Int) -> Int64 { Int64(step) << 16 }

  static func step(of row: Int64) -> Int { Int(row >> 16) }
}

// MARK: - RowList

/// Rows from any tables in order, stored as the bytes that are hashed and compared, so that neither
/// a step nor a value needs its own allocation.
package struct RowList: Hashable, Sendable {
  /// A row: its table and the offset of its values.
  private struct Head: Hashable, Sendable {
    var table: Table
    var start: Int
  }

  private var heads: [Head] = []
  /// Each row's table number and values.
  package internal(set) var bytes = ValueBytes()

  package init() {}

  package var count: Int { heads.count }

  /// Appends a row, with the columns that takes of a format have.
  package mutating func append<Row: TableRow>(
    _ row: Row, format: Int64 = TakeHeader.currentFormat
  ) {
    begin(Row.table)
    var row = row
    var writer = RowWriter(bytes: ValueBytes(), format: format)
    swap(&writer.bytes, &bytes)
    row.visit(&writer)
    swap(&writer.bytes, &bytes)
  }

  /// Begins a row, whose values must then be appended to `bytes`.
  mutating func begin(_ table: Table) {
    bytes.append(byte: table.rawValue)
    heads.append(Head(table: table, start: bytes.count))
  }

  /// Appends a row with one value per column.
  package mutating func append(_ table: Table, _ row: some Sequence<Value>) {
    begin(table)
    for value in row { bytes.append(value) }
  }

  /// Appends a row from another list.
  package mutating func append(_ other: RowList, _ row: Int) {
    begin(other.table(row))
    bytes.append(other.bytes, other.range(row))
  }

  /// Removes the last row, which may be incomplete.
  mutating func removeLast() {
    guard let head = heads.popLast() else { return }
    bytes.truncate(to: head.start - 1)
  }

  mutating func removeAll() {
    heads.removeAll(keepingCapacity: true)
    bytes.removeAll()
  }

  package func table(_ row: Int) -> Table { heads[row].table }

  /// Returns a row's values in column order.
  package func row(_ row: Int) -> [Value] {
    places(row).map { bytes.value(at: $0) }
  }

  /// Returns whether a row has a column; rows from older formats are shorter.
  package func has(_ column: Int, in row: Int) -> Bool { place(row, column) != nil }

  /// Formats a column's value.
  package func text(_ row: Int, _ column: Int) -> String {
    table(row).columns[column].kind.text(self[row, column])
  }

  /// A column's value; null if the row lacks the column.
  package subscript(row: Int, column: Int) -> Value {
    place(row, column).map { bytes.value(at: $0) } ?? .null
  }

  /// A column's value by name; null if the row lacks the column.
  package subscript(row: Int, column name: String) -> Value {
    table(row).column(name).map { self[row, $0] } ?? .null
  }

  /// Lends the row's bytes that the file stores in a stream; returns nil if it has none.
  package func withStreamBytes<Result>(_ row: Int, _ body: (RawSpan) -> Result) -> Result? {
    guard let column = table(row).definition.streamColumn, let place = place(row, column),
      bytes.isBlob(at: place)
    else { return nil }
    return bytes.withContents(at: place) { body($0.bytes) }
  }

  // MARK: Positions

  /// Returns the range of a row's values in `bytes`.
  func range(_ row: Int) -> Range<Int> {
    let end = row + 1 < heads.count ? heads[row + 1].start - 1 : bytes.count
    return heads[row].start..<end
  }

  /// Returns the range of several rows in `bytes`, including their table numbers.
  func range(_ rows: Range<Int>) -> Range<Int> {
    guard let first = rows.first, let last = rows.last else { return 0..<0 }
    return heads[first].start - 1..<range(last).upperBound
  }

  /// Returns the offsets of a row's values.
  private func places(_ row: Int) -> [Int] {
    var places: [Int] = []
    var offset = heads[row].start
    let end = range(row).upperBound
    while offset < end {
      places.append(offset)
      offset = bytes.end(ofValueAt: offset)
    }
    return places
  }

  /// Returns a value's offset; nil if the row is shorter.
  func place(_ row: Int, _ column: Int) -> Int? {
    let range = range(row)
    var offset = range.lowerBound
    for _ in 0..<column {
      guard offset < range.upperBound else { return nil }
      offset = bytes.end(ofValueAt: offset)
    }
    return offset < range.upperBound ? offset : nil
  }

  // MARK: Comparison

  /// Returns whether rows equal those in another list.
  package func equals(_ rows: Range<Int>, _ other: borrowing RowList, _ others: Range<Int>)
    -> Bool
  {
    rows.count == others.count && bytes.equals(range(rows), other.bytes, other.range(others))
  }

  /// Returns the first column in which two rows of the same table differ, except an ignored one;
  /// nil if they agree.
  ///
  /// Columns that only one row has are not compared.
  package func firstDifference(
    _ row: Int, _ other: borrowing RowList, _ otherRow: Int, ignoring ignored: Int? = nil
  ) -> Int? {
    let (range, otherRange) = (range(row), other.range(otherRow))
    var (offset, otherOffset) = (range.lowerBound, otherRange.lowerBound)
    var column = 0
    while offset < range.upperBound, otherOffset < otherRange.upperBound {
      let end = bytes.end(ofValueAt: offset)
      let otherEnd = other.bytes.end(ofValueAt: otherOffset)
      // Values with different bytes may be equal, such as JSON in another notation.
      if column != ignored, !bytes.equals(offset..<end, other.bytes, otherOffset..<otherEnd),
        bytes.value(at: offset) != other.bytes.value(at: otherOffset)
      {
        return column
      }
      (offset, otherOffset) = (end, otherEnd)
      column += 1
    }
    return nil
  }
}

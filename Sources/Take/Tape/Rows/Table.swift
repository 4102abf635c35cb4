/// A storage table whose rows describe steps.
///
/// A table has a number and a row type. The row type defines the columns, and the files in Schema/
/// explain them.
package struct Table: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  private init(_ number: UInt8) { rawValue = number }

  // The numbers are hashed, so they must never change.
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
  package static let relayed = Table(29)

  /// The row types of all tables, in the order of the tables' numbers.
  package static let rowTypes: [any TableRow.Type] = [
    PeerRow.self, PathRow.self, FormatRow.self, ContentRow.self, NetworkRow.self,
    CallRequestRow.self, CallReplyRow.self, SignalingRow.self, CaptureRow.self, StateRow.self,
    CandidateRow.self, CandidatePairRow.self, PacketRow.self, TrackRow.self, RTCPRow.self,
    FrameRow.self, StatRow.self, EventRow.self, ChannelRow.self, MessageRow.self, LevelRow.self,
    SpeechRow.self, ContributionRow.self, ClockRow.self, ActorRow.self, CoverageRow.self,
    PresenceRow.self, CarriageRow.self, RelayedRow.self,
  ]

  /// All tables, in the order of their numbers.
  package static let allCases = definitions.map(\.table)

  private static let definitions = rowTypes.map { TableDefinition($0) }

  /// The properties that follow from the row type.
  var definition: TableDefinition { Table.definitions[Int(rawValue) - 1] }

  /// The name that queries use: the view's, if the table has one.
  package var name: String { definition.name }
  /// The name of the table that stores the rows.
  package var storageName: String { definition.storageName }
  /// The oldest format that has the table.
  package var since: Int64 { definition.since }

  /// The columns after `row`, in the order in which they are stored, hashed and compared.
  package var columns: [TableColumn] { definition.columns }
  package var columnNames: [String] { definition.names }

  /// Returns the names of the columns in takes of a format; newer columns come last.
  package func columnNames(format: Int64) -> [String] {
    definition.columns.filter { $0.since <= format }.map(\.name)
  }

  package var rowType: any TableRow.Type { Table.rowTypes[Int(rawValue) - 1] }

  /// The column in whose order the rows are stored, so that they can be read without sorting.
  var key: String { definition.key }

  /// Whether the rows have numbers that other tables refer to.
  package var isNumbered: Bool { rowType.isNumbered }

  /// Returns the columns of the storage table in takes of a format.
  package func storageColumns(format: Int64 = TakeHeader.currentFormat) -> [String] {
    definition.storageColumns(format: format)
  }

  /// Returns the index of a column; nil if the table does not have it.
  package func column(_ name: String) -> Int? { definition.names.firstIndex(of: name) }
}

extension Table: CustomStringConvertible {
  package var description: String { name }
}

/// The properties of a table that follow from its row type.
struct TableDefinition: Sendable {
  let table: Table
  let name: String
  let storageName: String
  let since: Int64
  let columns: [TableColumn]
  let names: [String]
  /// The column in whose order the rows are stored, so that they can be read without sorting.
  let key: String
  /// The stream that contains the bytes of one column; nil if the table contains all values.
  let stream: ByteStream?
  /// The index of the column whose bytes are in the stream; nil if the table contains all values.
  let streamColumn: Int?
  /// The format in which compression of the last column began; nil if it is never compressed.
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

  /// Whether the storage table has an extra column for the size of the streamed bytes.
  var addsSize: Bool { stream != nil && !names.contains("size") }

  /// Returns the columns of the storage table in takes of a format.
  ///
  /// Size and position replace a column whose bytes are in a stream.
  func storageColumns(format: Int64) -> [String] {
    columns.filter { $0.since <= format }.flatMap { $0.stream == nil ? [$0.name] : placeColumns }
      + (hasCoding(format: format) ? ["coding"] : [])
  }

  /// Returns whether takes of a format have a column that says how the last column is compressed.
  func hasCoding(format: Int64) -> Bool { codedSince.map { $0 <= format } ?? false }

  /// The columns for the place of the streamed bytes.
  var placeColumns: [String] { (addsSize ? ["size"] : []) + ["position"] }
}

/// How the rows of a step are numbered in the file.
enum RowNumber {
  /// The maximum number of rows of a step.
  static let perStep = 65_536

  static func first(ofStep step: Int) -> Int64 { Int64(step) << 16 }

  static func step(of row: Int64) -> Int { Int(row >> 16) }
}

// MARK: - RowList

/// Rows of any tables in order, stored as the bytes that are hashed and compared.
///
/// Neither a row nor a value needs an allocation of its own.
package struct RowList: Hashable, Sendable {
  /// The table of a row, and the offset of its first value.
  private struct Head: Hashable, Sendable {
    var table: Table
    var start: Int
  }

  private var heads: [Head] = []
  /// For each row, the number of its table and then its values.
  package internal(set) var bytes = ValueBytes()

  package init() {}

  package var count: Int { heads.count }

  /// Appends a row with the columns that takes of a format have.
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

  /// Begins a row; the caller then appends its values to `bytes`.
  mutating func begin(_ table: Table) {
    bytes.append(byte: table.rawValue)
    heads.append(Head(table: table, start: bytes.count))
  }

  /// Appends a row from its values in column order.
  package mutating func append(_ table: Table, _ row: some Sequence<Value>) {
    begin(table)
    for value in row { bytes.append(value) }
  }

  /// Appends a copy of a row in another list.
  package mutating func append(_ other: RowList, _ row: Int) {
    begin(other.table(row))
    bytes.append(other.bytes, other.range(row))
  }

  /// Removes the last row, even if some of its values are missing.
  mutating func removeLast() {
    guard let head = heads.popLast() else { return }
    bytes.truncate(to: head.start - 1)
  }

  mutating func removeAll() {
    heads.removeAll(keepingCapacity: true)
    bytes.removeAll()
  }

  package func table(_ row: Int) -> Table { heads[row].table }

  /// Returns the values of a row in column order.
  package func row(_ row: Int) -> [Value] {
    places(row).map { bytes.value(at: $0) }
  }

  /// Returns whether a row has a column; rows of older formats lack the last columns.
  package func has(_ column: Int, in row: Int) -> Bool { place(row, column) != nil }

  /// Formats the value of a column.
  package func text(_ row: Int, _ column: Int) -> String {
    table(row).columns[column].kind.text(self[row, column])
  }

  /// The value in a column; null if the row does not have the column.
  package subscript(row: Int, column: Int) -> Value {
    place(row, column).map { bytes.value(at: $0) } ?? .null
  }

  /// The value in the column with the given name; null if the row does not have the column.
  package subscript(row: Int, column name: String) -> Value {
    table(row).column(name).map { self[row, $0] } ?? .null
  }

  /// Lends the bytes of a row that the file stores in a stream; nil if the row has none.
  package func withStreamBytes<Result>(_ row: Int, _ body: (RawSpan) -> Result) -> Result? {
    guard let column = table(row).definition.streamColumn, let place = place(row, column),
      bytes.isBlob(at: place)
    else { return nil }
    return bytes.withContents(at: place) { body($0.bytes) }
  }

  // MARK: Positions

  /// Returns the range in `bytes` of a row's values.
  func range(_ row: Int) -> Range<Int> {
    let end = row + 1 < heads.count ? heads[row + 1].start - 1 : bytes.count
    return heads[row].start..<end
  }

  /// Returns the range in `bytes` of several rows, including their table numbers.
  func range(_ rows: Range<Int>) -> Range<Int> {
    guard let first = rows.first, let last = rows.last else { return 0..<0 }
    return heads[first].start - 1..<range(last).upperBound
  }

  /// Returns the offset of each value of a row.
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

  /// Returns the offset of a value; nil if the row does not have the column.
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

  /// Returns whether two ranges of rows have the same tables and values, byte by byte.
  package func equals(_ rows: Range<Int>, _ other: borrowing RowList, _ others: Range<Int>)
    -> Bool
  {
    rows.count == others.count && bytes.equals(range(rows), other.bytes, other.range(others))
  }

  /// Returns the first column in which two rows of a table differ; nil if there is none.
  ///
  /// Neither the ignored column nor columns that only one row has are compared.
  package func firstDifference(
    _ row: Int, _ other: borrowing RowList, _ otherRow: Int, ignoring ignored: Int? = nil
  ) -> Int? {
    let (range, otherRange) = (range(row), other.range(otherRow))
    var (offset, otherOffset) = (range.lowerBound, otherRange.lowerBound)
    var column = 0
    while offset < range.upperBound, otherOffset < otherRange.upperBound {
      let end = bytes.end(ofValueAt: offset)
      let otherEnd = other.bytes.end(ofValueAt: otherOffset)
      // Strings may be equal although their bytes differ, as in composed and decomposed letters.
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

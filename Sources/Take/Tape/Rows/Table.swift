/// A storage table whose rows are the transcript of steps.
///
/// A number and the type of its rows is all there is of one here; the rest stands with that type,
/// and the meaning of every column in Schema/.
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

  /// The type of each table's rows, in the order of the numbers.
  package static let rowTypes: [any TableRow.Type] = [
    PeerRow.self, PathRow.self, FormatRow.self, ContentRow.self, NetworkRow.self,
    CallRequestRow.self, CallReplyRow.self, SignalingRow.self, CaptureRow.self, StateRow.self,
    CandidateRow.self, CandidatePairRow.self, PacketRow.self, TrackRow.self, RTCPRow.self,
    FrameRow.self, StatRow.self, EventRow.self, ChannelRow.self, MessageRow.self, LevelRow.self,
    SpeechRow.self, ContributionRow.self, ClockRow.self, ActorRow.self, CoverageRow.self,
    PresenceRow.self, CarriageRow.self,
  ]

  /// All tables in the order of their numbers.
  package static let allCases = definitions.map(\.table)

  private static let definitions = rowTypes.map { TableDefinition($0) }

  /// What is told of the table by the type of its rows.
  var definition: TableDefinition { Table.definitions[Int(rawValue) - 1] }

  /// The table's name for people: that of its view, where it has one.
  package var name: String { definition.name }
  /// The table that holds the rows.
  package var storageName: String { definition.storageName }
  /// The format of takes that has the table first.
  package var since: Int64 { definition.since }

  /// The columns after `row` that are written, read, hashed and compared, in this order.
  package var columns: [TableColumn] { definition.columns }
  /// Their names.
  package var columnNames: [String] { definition.names }

  /// Those of them that takes of a format have: later ones came behind the others.
  package func columnNames(format: Int64) -> [String] {
    definition.columns.filter { $0.since <= format }.map(\.name)
  }

  /// The type of its rows.
  package var rowType: any TableRow.Type { Table.rowTypes[Int(rawValue) - 1] }

  /// The column that gives the order of the rows without a sort.
  var key: String { definition.key }

  /// Whether rows have a number by which others refer to them.
  package var isNumbered: Bool { rowType.isNumbered }

  /// The columns of the storage table in takes of a format.
  package func storageColumns(format: Int64 = TakeHeader.currentFormat) -> [String] {
    definition.storageColumns(format: format)
  }

  /// Where a column stands in a row; nil for a name that the table does not have.
  package func column(_ name: String) -> Int? { definition.names.firstIndex(of: name) }
}

extension Table: CustomStringConvertible {
  package var description: String { name }
}

/// What the type of a table's rows tells of the table.
struct TableDefinition: Sendable {
  let table: Table
  let name: String
  let storageName: String
  let since: Int64
  let columns: [TableColumn]
  let names: [String]
  /// The column that gives the order of the rows without a sort.
  let key: String
  /// Where the bytes of one column stand, when they do not stand in the table.
  let stream: ByteStream?
  /// Which column that is.
  let streamColumn: Int?
  /// The format in which the last column is stored smaller, and another one says how.
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

  /// Whether the storage table says how many bytes a row has in a column of its own.
  var addsSize: Bool { stream != nil && !names.contains("size") }

  /// The columns of the storage table in takes of a format: instead of bytes that stand in a
  /// stream, how many they are and where they begin.
  func storageColumns(format: Int64) -> [String] {
    columns.filter { $0.since <= format }.flatMap { $0.stream == nil ? [$0.name] : placeColumns }
      + (hasCoding(format: format) ? ["coding"] : [])
  }

  /// Whether takes of a format say in a last column how the one before is stored.
  func hasCoding(format: Int64) -> Bool { codedSince.map { $0 <= format } ?? false }

  /// The columns that say where the bytes of the column in a stream are.
  var placeColumns: [String] { (addsSize ? ["size"] : []) + ["position"] }
}

/// How a row of a step is numbered in the file.
enum RowNumber {
  /// How many rows one step can have.
  static let perStep = 65_536

  static func first(ofStep step: Int) -> Int64 { Int64(step) << 16 }

  static func step(of row: Int64) -> Int { Int(row >> 16) }
}

// MARK: - RowList

/// Rows of one or several tables in their order, kept as the bytes that are hashed and compared, so
/// that neither a step nor a value costs memory of its own.
package struct RowList: Hashable, Sendable {
  /// A row: its table and where its values begin.
  private struct Head: Hashable, Sendable {
    var table: Table
    var start: Int
  }

  private var heads: [Head] = []
  /// For each row the number of its table and its values.
  package internal(set) var bytes = ValueBytes()

  package init() {}

  package var count: Int { heads.count }

  /// Adds a row with the columns that takes of a format have.
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

  /// Begins a row; as many values as its table has columns must follow in `bytes`.
  mutating func begin(_ table: Table) {
    bytes.append(byte: table.rawValue)
    heads.append(Head(table: table, start: bytes.count))
  }

  /// Adds a row with as many values as its table has columns.
  package mutating func append(_ table: Table, _ row: some Sequence<Value>) {
    begin(table)
    for value in row { bytes.append(value) }
  }

  /// Adds a row of another list.
  package mutating func append(_ other: RowList, _ row: Int) {
    begin(other.table(row))
    bytes.append(other.bytes, other.range(row))
  }

  /// Takes the last row back, which may be incomplete.
  mutating func removeLast() {
    guard let head = heads.popLast() else { return }
    bytes.truncate(to: head.start - 1)
  }

  mutating func removeAll() {
    heads.removeAll(keepingCapacity: true)
    bytes.removeAll()
  }

  package func table(_ row: Int) -> Table { heads[row].table }

  /// The values of a row in the order of its table's columns.
  package func row(_ row: Int) -> [Value] {
    places(row).map { bytes.value(at: $0) }
  }

  /// Whether a row has a column: rows of older formats are shorter.
  package func has(_ column: Int, in row: Int) -> Bool { place(row, column) != nil }

  /// The value of a row in a column for people.
  package func text(_ row: Int, _ column: Int) -> String {
    table(row).columns[column].kind.text(self[row, column])
  }

  /// One value of a row; null where the row has no such column.
  package subscript(row: Int, column: Int) -> Value {
    place(row, column).map { bytes.value(at: $0) } ?? .null
  }

  /// The value of a row in a column by its name; null where the row has none.
  package subscript(row: Int, column name: String) -> Value {
    table(row).column(name).map { self[row, $0] } ?? .null
  }

  /// Lends the bytes of a row that stand in a stream in the file; nil when it has none.
  package func withStreamBytes<Result>(_ row: Int, _ body: (RawSpan) -> Result) -> Result? {
    guard let column = table(row).definition.streamColumn, let place = place(row, column),
      bytes.isBlob(at: place)
    else { return nil }
    return bytes.withContents(at: place) { body($0.bytes) }
  }

  // MARK: Where values stand

  /// Where the values of a row stand in `bytes`.
  func range(_ row: Int) -> Range<Int> {
    let end = row + 1 < heads.count ? heads[row + 1].start - 1 : bytes.count
    return heads[row].start..<end
  }

  /// Where rows stand in `bytes`, with the numbers of their tables.
  func range(_ rows: Range<Int>) -> Range<Int> {
    guard let first = rows.first, let last = rows.last else { return 0..<0 }
    return heads[first].start - 1..<range(last).upperBound
  }

  /// Where each value of a row stands.
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

  /// Where one value of a row stands; nil when the row is shorter.
  func place(_ row: Int, _ column: Int) -> Int? {
    let range = range(row)
    var offset = range.lowerBound
    for _ in 0..<column {
      guard offset < range.upperBound else { return nil }
      offset = bytes.end(ofValueAt: offset)
    }
    return offset < range.upperBound ? offset : nil
  }

  // MARK: Comparing

  /// Whether rows are the same as those of another list.
  package func equals(_ rows: Range<Int>, _ other: borrowing RowList, _ others: Range<Int>)
    -> Bool
  {
    rows.count == others.count && bytes.equals(range(rows), other.bytes, other.range(others))
  }

  /// The first column in which two rows of one table differ, apart from one; nil for none.
  ///
  /// What only one of them has is no difference.
  package func firstDifference(
    _ row: Int, _ other: borrowing RowList, _ otherRow: Int, ignoring ignored: Int? = nil
  ) -> Int? {
    let (range, otherRange) = (range(row), other.range(otherRow))
    var (offset, otherOffset) = (range.lowerBound, otherRange.lowerBound)
    var column = 0
    while offset < range.upperBound, otherOffset < otherRange.upperBound {
      let end = bytes.end(ofValueAt: offset)
      let otherEnd = other.bytes.end(ofValueAt: otherOffset)
      // Text that is written otherwise and means the same is no difference.
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

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

/// Rows of one or several tables in their order, kept flat so that a step costs no array of its
/// own.
package struct RowList: Hashable, Sendable {
  /// A row: its table and where its values begin.
  package struct Head: Hashable, Sendable {
    package var table: Table
    package var start: Int
  }

  package private(set) var heads: [Head] = []
  package private(set) var values: [Value] = []

  package init() {}

  package var count: Int { heads.count }

  /// Adds a row with the columns that takes of a format have.
  package mutating func append<Row: TableRow>(
    _ row: Row, format: Int64 = TakeHeader.currentFormat
  ) {
    begin(Row.table)
    var row = row
    var writer = RowWriter(values: [], format: format)
    swap(&writer.values, &values)
    row.visit(&writer)
    swap(&writer.values, &values)
  }

  /// Begins a row; as many values as its table has columns must follow.
  mutating func begin(_ table: Table) { heads.append(Head(table: table, start: values.count)) }

  mutating func append(_ value: consuming Value) { values.append(value) }

  /// Adds a row with as many values as its table has columns.
  package mutating func append(_ table: Table, _ row: [Value]) {
    begin(table)
    values.append(contentsOf: row)
  }

  /// Adds a row of another list.
  package mutating func append(_ other: RowList, _ row: Int) {
    append(other.table(row), Array(other.row(row)))
  }

  mutating func removeAll() {
    heads.removeAll(keepingCapacity: true)
    values.removeAll(keepingCapacity: true)
  }

  package func table(_ row: Int) -> Table { heads[row].table }

  /// Where the values of a row stand in `values`.
  package func range(_ row: Int) -> Range<Int> {
    let end = row + 1 < heads.count ? heads[row + 1].start : values.count
    return heads[row].start..<end
  }

  /// The values of a row in the order of its table's columns.
  package func row(_ row: Int) -> ArraySlice<Value> { values[range(row)] }

  /// Whether a row has a column: rows of older formats are shorter.
  package func has(_ column: Int, in row: Int) -> Bool { column < range(row).count }

  /// The value of a row in a column for people.
  package func text(_ row: Int, _ column: Int) -> String {
    table(row).columns[column].kind.text(self[row, column])
  }

  /// One value of a row.
  package subscript(row: Int, column: Int) -> Value { values[heads[row].start + column] }

  /// The value of a row in a column by its name; null where the row has none.
  package subscript(row: Int, column name: String) -> Value {
    guard let column = table(row).column(name), has(column, in: row) else { return .null }
    return self[row, column]
  }
}

import Glibc
import Wire

/// One value of a row, as SQLite keeps it.
package enum Value: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])

  /// A number as the file gives it back: NaN becomes null and a negative zero a positive one.
  package static func measure(_ value: Double) -> Value {
    if value.isNaN { return .null }
    return .real(value == 0 ? 0 : value)
  }

  package static func measure(_ value: Double?) -> Value { value.map { .measure($0) } ?? .null }

  /// A whole number; one of 64 unsigned bits keeps its bits.
  package static func number(_ value: some BinaryInteger) -> Value {
    .integer(Int64(truncatingIfNeeded: value))
  }

  package static func number(_ value: (some BinaryInteger)?) -> Value {
    value.map { .integer(Int64(truncatingIfNeeded: $0)) } ?? .null
  }

  package static func flag(_ value: Bool) -> Value { .integer(value ? 1 : 0) }

  package static func text(_ value: String?) -> Value { value.map { Value.text($0) } ?? .null }
}

extension Value {
  /// Whether two values are the same.
  ///
  /// Bytes are compared in blocks, because a replay compares every packet.
  package func matches(_ other: Value) -> Bool {
    switch (self, other) {
    case (.integer(let left), .integer(let right)): left == right
    case (.blob(let left), .blob(let right)):
      left.count == right.count
        && left.withUnsafeBytes { left in
          right.withUnsafeBytes { right in
            guard let start = left.baseAddress, let other = right.baseAddress else { return true }
            return memcmp(start, other, left.count) == 0
          }
        }
    default: self == other
    }
  }

  /// The value for people: text as it is, bytes in hexadecimal, shortened when long.
  package var summary: String {
    switch self {
    case .null: "nothing"
    case .integer(let value): String(value)
    case .real(let value): value.description
    case .text(let value): value.count > 120 ? String(value.prefix(117)) + "..." : value
    case .blob(let bytes): hexadecimal(bytes, limit: 24)
    }
  }
}

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

  /// One value of a row.
  package subscript(row: Int, column: Int) -> Value { values[heads[row].start + column] }

  /// The value of a row in a column by its name; null where the row has none.
  package subscript(row: Int, column name: String) -> Value {
    let column = table(row).column(name)
    return has(column, in: row) ? self[row, column] : .null
  }
}

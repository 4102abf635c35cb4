import Glibc
package import Wire

/// A type as which result columns can be read.
package protocol ResultValue {
  init(_ statement: borrowing SQLiteStatement, _ column: Int)
}

extension SQLiteStatement {
  /// Returns consecutive columns of the current row as values of these types.
  ///
  /// - Parameter first: the first value's column, counted from 0.
  package func values<each Field: ResultValue>(
    from first: Int = 0, _ types: repeat (each Field).Type
  ) -> (repeat each Field) {
    var column = first
    return (repeat Self.next((each Field).self, of: self, &column))
  }

  /// Reads a column's value and advances to the next.
  private static func next<Value: ResultValue>(
    _ type: Value.Type, of statement: borrowing SQLiteStatement, _ column: inout Int
  ) -> Value {
    defer { column += 1 }
    return Value(statement, column)
  }
}

extension SQLiteStatement {
  /// Returns one column of the current row.
  package func values<Field: ResultValue>(from column: Int = 0, _ type: Field.Type) -> Field {
    Field(self, column)
  }
}

extension Optional: ResultValue where Wrapped: ResultValue {
  package init(_ statement: borrowing SQLiteStatement, _ column: Int) {
    self = statement.isNull(column) ? nil : Wrapped(statement, column)
  }
}

extension Int64: ResultValue {
  package init(_ statement: borrowing SQLiteStatement, _ column: Int) {
    self = statement.integer(column)
  }
}

extension ResultValue where Self: FixedWidthInteger {
  /// Clamps a number that is out of range.
  package init(_ statement: borrowing SQLiteStatement, _ column: Int) {
    self.init(clamping: statement.integer(column))
  }
}

extension Int: ResultValue {}
extension UInt32: ResultValue {}
extension UInt16: ResultValue {}
extension UInt8: ResultValue {}

extension UInt64: ResultValue {
  /// Keeps all 64 bits of an unsigned number.
  package init(_ statement: borrowing SQLiteStatement, _ column: Int) {
    self.init(bitPattern: statement.exactInteger(column))
  }
}

extension Bool: ResultValue {
  package init(_ statement: borrowing SQLiteStatement, _ column: Int) {
    self = statement.integer(column) != 0
  }
}

extension Double: ResultValue {
  package init(_ statement: borrowing SQLiteStatement, _ column: Int) {
    self = statement.real(column)
  }
}

extension String: ResultValue {
  /// Reads a text; empty for NULL.
  package init(_ statement: borrowing SQLiteStatement, _ column: Int) {
    self = statement.text(column) ?? ""
  }
}

extension [UInt8]: ResultValue {
  /// Reads a blob; empty for NULL.
  package init(_ statement: borrowing SQLiteStatement, _ column: Int) {
    self = statement.bytes(column)
  }
}

extension Value: ResultValue {
  /// Reads a value; null for text that is not UTF-8.
  package init(_ statement: borrowing SQLiteStatement, _ column: Int) {
    self = statement.value(column) ?? .null
  }
}

extension Instant: ResultValue {
  package init(_ statement: borrowing SQLiteStatement, _ column: Int) {
    self.init(nanoseconds: statement.integer(column))
  }
}

// MARK: - Value

/// A value as SQLite stores it.
package enum Value: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])

  /// Creates a real as SQLite returns it after storing: NaN becomes null, and negative zero becomes
  /// positive.
  package static func measure(_ value: Double) -> Value {
    if value.isNaN { return .null }
    return .real(value == 0 ? 0 : value)
  }

  package static func measure(_ value: Double?) -> Value { value.map { .measure($0) } ?? .null }

  /// Creates an integer, keeping all 64 bits of an unsigned number.
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
  /// Returns whether two values are equal.
  ///
  /// Blobs are compared in blocks, because a replay compares every packet.
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

  /// A short form for messages: text verbatim, bytes in hexadecimal, both shortened.
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

import Glibc
package import Wire

/// A type that result columns can be read as.
package protocol ResultValue {
  init(_ statement: borrowing SQLiteStatement, _ column: Int)
}

extension SQLiteStatement {
  /// Returns the values of consecutive columns in the current row.
  ///
  /// - Parameter first: the index of the first column, counted from 0.
  package func values<each Field: ResultValue>(
    from first: Int = 0, _ types: repeat (each Field).Type
  ) -> (repeat each Field) {
    var column = first
    return (repeat Self.next((each Field).self, of: self, &column))
  }

  /// Reads the value of a column and advances the index.
  private static func next<Value: ResultValue>(
    _ type: Value.Type, of statement: borrowing SQLiteStatement, _ column: inout Int
  ) -> Value {
    defer { column += 1 }
    return Value(statement, column)
  }
}

extension SQLiteStatement {
  /// Returns the value of one column in the current row.
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
  /// Reads an integer, clamping it to the type's range.
  package init(_ statement: borrowing SQLiteStatement, _ column: Int) {
    self.init(clamping: statement.integer(column))
  }
}

extension Int: ResultValue {}
extension UInt32: ResultValue {}
extension UInt16: ResultValue {}
extension UInt8: ResultValue {}

extension UInt64: ResultValue {
  /// Reads an unsigned number, which is stored as a signed one with the same 64 bits.
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
  /// Reads a string; empty for NULL.
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
  /// Reads a value of any type; null for a string that is not UTF-8.
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

/// A value as SQLite stores it, with its type.
package enum Value: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])

  /// Creates a real number as SQLite would return it: NaN becomes null, and -0.0 becomes 0.0.
  package static func measure(_ value: Double) -> Value {
    if value.isNaN { return .null }
    return .real(value == 0 ? 0 : value)
  }

  package static func measure(_ value: Double?) -> Value { value.map { .measure($0) } ?? .null }

  /// Creates an integer; an unsigned number keeps its 64 bits.
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
  /// Blobs are compared with `memcmp` instead of byte by byte, because a replay compares every
  /// packet.
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

  /// A short form for messages: text as it is and bytes in hexadecimal, shortened if necessary.
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

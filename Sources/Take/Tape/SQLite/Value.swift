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

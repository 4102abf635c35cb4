import Queries
public import Tape
public import Wire

extension Take {
  /// Runs one read-only SQL statement; `Schema` explains every table and column.
  ///
  ///     let states = try take.query("SELECT machine, to_state FROM state").all()
  ///
  /// - Throws: `TakeError` with the place `sql` if the query cannot be run.
  public func query(_ sql: String) throws(TakeError) -> TakeReader<TakeRow> {
    let source = try QuerySource(path: path, sql: sql)
    return TakeReader { () throws(TakeError) in try source.next() }
  }

  /// Runs one read-only SQL statement and reads its columns, in order, as the given types.
  ///
  ///     let rows = try take.query(
  ///       "SELECT kind, since_connected_ms FROM first_frame", as: String.self, Double?.self)
  ///     while let (kind, delay) = try rows.next() { print(kind, delay ?? 0) }
  ///
  /// - Throws: `TakeError` if the query cannot be run; the reader throws it if a column has a value
  ///   of another type.
  public func query<each Field: TakeReadable>(
    _ sql: String, as types: repeat (each Field).Type
  ) throws(TakeError) -> TakeReader<(repeat each Field)> {
    let source = try QuerySource(path: path, sql: sql)
    return TakeReader { () throws(TakeError) -> (repeat each Field)? in
      guard let row = try source.next() else { return nil }
      var column = -1
      func field<Value: TakeReadable>(_ type: Value.Type) throws(TakeError) -> Value {
        column += 1
        return try row.value(at: column)
      }
      return try (repeat field((each Field).self))
    }
  }

  /// Runs one read-only SQL statement and reads its first column as the given type.
  public func query<Field: TakeReadable>(
    _ sql: String, as type: Field.Type
  ) throws(TakeError) -> TakeReader<Field> {
    let source = try QuerySource(path: path, sql: sql)
    return TakeReader { () throws(TakeError) -> Field? in
      guard let row = try source.next() else { return nil }
      // Without the explicit type, an optional field that is nil would be mistaken for the end.
      let field: Field = try row.value(at: 0)
      return field
    }
  }

  /// Returns a reader for all rows of a record type, in the order of the type's query.
  public func rows<Record: TakeRecord>(of type: Record.Type) throws(TakeError)
    -> TakeReader<Record>
  {
    let source = try QuerySource(path: path, sql: Record.query)
    return TakeReader { () throws(TakeError) in
      guard let row = try source.next() else { return nil }
      return try Record(row)
    }
  }
}

/// Reads a query's rows one by one.
private final class QuerySource {
  private let path: String
  private let statement: SQLiteStatement
  private let columns: [String]

  init(path: String, sql: String) throws(TakeError) {
    self.path = path
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      let statement = try connection.prepare(sql)
      guard statement.isReadOnly else {
        throw SQLiteError(code: .readOnly, message: "a take is only read, never written")
      }
      columns = (0..<statement.columnCount).map { statement.columnName($0) }
      self.statement = statement
    } catch {
      throw QuerySource.error(error, path)
    }
  }

  func next() throws(TakeError) -> TakeRow? {
    do throws(SQLiteError) {
      guard try statement.step() else { return nil }
    } catch {
      throw QuerySource.error(error, path)
    }
    let values = columns.indices.map { TakeValue(statement.value($0) ?? .null) }
    return TakeRow(path: path, table: "", columns: columns, values: values)
  }

  private static func error(_ error: SQLiteError, _ path: String) -> TakeError {
    switch error.code.primary {
    case .corrupt, .notADatabase, .inputOutput, .busy: TakeError(path: path, error)
    default:
      TakeError(path: path, place: SQLConsole.queryPlace, reason: error.message, kind: .failed)
    }
  }
}

// MARK: - TakeRow

/// One row from a table in the take, or from a query's result.
public struct TakeRow: Hashable, Sendable {
  /// The table's name; empty for a query's result.
  public let table: String
  /// The column names.
  public let columns: [String]
  /// The values, in column order.
  public let values: [TakeValue]
  /// The file's path, for errors.
  let path: String

  init(path: String, table: String, columns: [String], values: [TakeValue]) {
    self.path = path
    self.table = table
    self.columns = columns
    self.values = values
  }

  /// The value in a column; nil if there is no such column.
  public subscript(_ column: String) -> TakeValue? {
    columns.firstIndex(of: column).flatMap { values.indices.contains($0) ? values[$0] : nil }
  }

  /// Reads a column as the given type.
  /// - Throws: `TakeError` that names the value's actual type.
  public func value<Field: TakeReadable>(
    _ column: String, as type: Field.Type = Field.self
  ) throws(TakeError) -> Field {
    guard let index = columns.firstIndex(of: column), values.indices.contains(index) else {
      throw TakeError(
        path: path, place: "column \(column)",
        reason: "it does not exist; the row has \(columns.joined(separator: ", "))")
    }
    return try value(at: index)
  }

  /// Reads the column at an index, from 0, as the given type.
  func value<Field: TakeReadable>(at index: Int) throws(TakeError) -> Field {
    guard values.indices.contains(index) else {
      throw TakeError(
        path: path, place: "column \(index + 1)",
        reason: "it does not exist; the row has \(values.count)")
    }
    guard let field = Field(values[index]) else {
      throw TakeError(
        path: path, place: "column \(columns[index])",
        reason: "it has \(values[index].kind), not \(Field.kindOfValue)")
    }
    return field
  }
}

// MARK: - TakeValue

/// A value in a row, in one of SQLite's five storage classes.
public enum TakeValue: Hashable, Sendable {
  /// SQL NULL.
  case null
  /// A signed integer of 64 bits (SQLite INTEGER).
  case integer(Int64)
  /// A floating-point number of 64 bits (SQLite REAL).
  case real(Double)
  /// Text (SQLite TEXT).
  case text(String)
  /// Bytes (SQLite BLOB).
  case bytes([UInt8])

  init(_ value: Value) {
    self =
      switch value {
      case .null: .null
      case .integer(let number): .integer(number)
      case .real(let number): .real(number)
      case .text(let text): .text(text)
      case .blob(let bytes): .bytes(bytes)
      }
  }

  /// A description of the value for error messages.
  var kind: String {
    switch self {
    case .null: "nothing"
    case .integer(let number): "the whole number \(number)"
    case .real(let number): "the number \(number)"
    case .text: "a text"
    case .bytes: "bytes"
    }
  }
}

/// A type that can be read from a row's value: integers that fit, `Double`, `Bool`, `String`,
/// bytes, `Instant`, `TakeValue` itself, and any of these as an optional.
public protocol TakeReadable {
  /// The type's name in error messages.
  static var kindOfValue: String { get }
  /// Converts a row's value; nil if the value has another type.
  init?(_ value: TakeValue)
}

extension TakeValue: TakeReadable {
  /// The name for values of any type.
  public static var kindOfValue: String { "a value" }
  /// Accepts any value, unchanged.
  public init?(_ value: TakeValue) { self = value }
}

extension Optional: TakeReadable where Wrapped: TakeReadable {
  /// The wrapped type's name, followed by `or nothing`.
  public static var kindOfValue: String { Wrapped.kindOfValue + " or nothing" }
  /// Reads NULL as nil.
  public init?(_ value: TakeValue) {
    if value == .null {
      self = .none
    } else {
      guard let wrapped = Wrapped(value) else { return nil }
      self = wrapped
    }
  }
}

extension TakeReadable where Self: FixedWidthInteger {
  /// The name for integers, with the type's range.
  public static var kindOfValue: String { "a whole number from \(Self.min) to \(Self.max)" }
  /// Reads an integer; nil if it does not fit the type.
  public init?(_ value: TakeValue) {
    guard case .integer(let number) = value else { return nil }
    self.init(exactly: number)
  }
}

extension Int: TakeReadable {}
extension Int64: TakeReadable {}
extension Int32: TakeReadable {}
extension UInt32: TakeReadable {}
extension UInt16: TakeReadable {}
extension UInt8: TakeReadable {}
extension Int16: TakeReadable {}
extension Int8: TakeReadable {}
extension UInt: TakeReadable {}
extension UInt64: TakeReadable {}

extension Bool: TakeReadable {
  /// The name for integers.
  public static var kindOfValue: String { "a whole number" }
  /// Reads 0 as false and any other integer as true.
  public init?(_ value: TakeValue) {
    guard case .integer(let number) = value else { return nil }
    self = number != 0
  }
}

extension Double: TakeReadable {
  /// The name for numbers, including integers.
  public static var kindOfValue: String { "a number" }
  /// Reads a floating-point number or an integer.
  public init?(_ value: TakeValue) {
    switch value {
    case .integer(let number): self = Double(number)
    case .real(let number): self = number
    case .null, .text, .bytes: return nil
    }
  }
}

extension String: TakeReadable {
  /// The name for text.
  public static var kindOfValue: String { "a text" }
  /// Reads text.
  public init?(_ value: TakeValue) {
    guard case .text(let text) = value else { return nil }
    self = text
  }
}

extension [UInt8]: TakeReadable {
  /// The name for bytes.
  public static var kindOfValue: String { "bytes" }
  /// Reads bytes.
  public init?(_ value: TakeValue) {
    guard case .bytes(let bytes) = value else { return nil }
    self = bytes
  }
}

extension Instant: TakeReadable {
  /// The name for instants.
  public static var kindOfValue: String { "a time in nanoseconds" }
  /// Reads nanoseconds since the take began.
  public init?(_ value: TakeValue) {
    guard case .integer(let number) = value else { return nil }
    self.init(nanoseconds: number)
  }
}

/// Decodes the integer that columns store: nanoseconds since the take began.
extension Instant: Decodable {
  /// Reads nanoseconds.
  public init(from decoder: any Decoder) throws {
    self.init(nanoseconds: try decoder.singleValueContainer().decode(Int64.self))
  }
}

public import Tape

/// One row of a table of the take, or of the result of a query.
public struct TakeRow: Hashable, Sendable {
  /// The table; empty for the result of a query.
  public let table: String
  /// The names of the columns.
  public let columns: [String]
  /// The values, in order.
  public let values: [TakeValue]
  /// The file, for errors.
  let path: String

  init(path: String, table: String, columns: [String], values: [TakeValue]) {
    self.path = path
    self.table = table
    self.columns = columns
    self.values = values
  }

  /// The value of a column; nil when there is no such column.
  public subscript(_ column: String) -> TakeValue? {
    columns.firstIndex(of: column).flatMap { values.indices.contains($0) ? values[$0] : nil }
  }

  /// Reads a column as a type.
  /// - Throws: `TakeError` with the actual type of the value.
  public func value<Field: TakeReadable>(
    _ column: String, as type: Field.Type = Field.self
  ) throws(TakeError) -> Field {
    guard let index = columns.firstIndex(of: column), values.indices.contains(index) else {
      throw TakeError(
        path: path, place: "column \(column)",
        reason: "there is none; the row has \(columns.joined(separator: ", "))")
    }
    return try value(at: index)
  }

  /// Reads the column at an index from 0 as a type.
  func value<Field: TakeReadable>(at index: Int) throws(TakeError) -> Field {
    guard values.indices.contains(index) else {
      throw TakeError(
        path: path, place: "column \(index + 1)",
        reason: "there is none; the row has \(values.count)")
    }
    guard let field = Field(values[index]) else {
      throw TakeError(
        path: path, place: "column \(columns[index])",
        reason: "it has \(values[index].kind), and not \(Field.kindOfValue)")
    }
    return field
  }
}

import Tape

/// Decodes a record from a row: each property comes from the column that its coding key names.
struct RowDecoder: Decoder {
  let row: TakeRow
  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  static func record<Record: Decodable>(of row: TakeRow) throws(TakeError) -> Record {
    do {
      return try Record(from: RowDecoder(row: row))
    } catch let error as TakeError {
      throw error
    } catch {
      throw TakeError(path: row.path, place: "\(Record.self)", reason: "\(error)")
    }
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(Columns<Key>(row: row))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    throw refusal("a record must have properties and cannot be a list")
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer {
    throw refusal("a record must have properties and cannot be a single value")
  }

  private func refusal(_ reason: String) -> TakeError {
    TakeError(path: row.path, place: row.table, reason: reason)
  }
}

/// A row's columns, looked up by the names of coding keys.
private struct Columns<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let row: TakeRow
  var codingPath: [any CodingKey] { [] }
  var allKeys: [Key] { row.columns.compactMap { Key(stringValue: $0) } }

  /// Always true, so that decoding a missing column throws an error that lists the existing
  /// columns.
  func contains(_ key: Key) -> Bool { true }

  func decodeNil(forKey key: Key) -> Bool { row[key.stringValue] == .null }

  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
    if case .text(let direction)? = row[key.stringValue], ["in", "out"].contains(direction) {
      return direction == "in"
    }
    return try value(key)
  }

  func decode(_ type: Float.Type, forKey key: Key) throws -> Float {
    Float(try value(key) as Double)
  }

  func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try value(key) }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try value(key) }
  func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try value(key) }
  func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try value(key) }
  func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try value(key) }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try value(key) }
  func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try value(key) }
  func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try value(key) }
  func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try value(key) }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try value(key) }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try value(key) }
  func decode(_ type: String.Type, forKey key: Key) throws -> String { try value(key) }

  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    guard let readable = type as? any TakeReadable.Type,
      let field = try value(key, as: readable) as? Value
    else { throw refusal(key, "no column can be read as \(type)") }
    return field
  }

  private func value<Field: TakeReadable>(
    _ key: Key, as type: Field.Type = Field.self
  ) throws(TakeError) -> Field {
    try row.value(key.stringValue, as: type)
  }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws
    -> KeyedDecodingContainer<Nested>
  {
    throw refusal(key, "a column has one value")
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    throw refusal(key, "a column has one value")
  }

  func superDecoder() throws -> any Decoder { RowDecoder(row: row) }

  func superDecoder(forKey key: Key) throws -> any Decoder { RowDecoder(row: row) }

  private func refusal(_ key: Key, _ reason: String) -> TakeError {
    TakeError(path: row.path, place: "column \(key.stringValue)", reason: reason)
  }
}

import Wire

/// Reads the members of a message, each within its limits.
struct RoomFields {
  static let nameBytes = 256
  static let textBytes = 64 << 10
  static let descriptionBytes = 256 << 10
  static let listCount = 256

  private let value: JSONValue

  init(_ value: JSONValue) throws(JSONError) {
    guard case .object = value else { throw JSONError(reason: "an object is expected") }
    self.value = value
  }

  private func missing(_ name: String) -> JSONError {
    JSONError(reason: "\(name) is missing or of another kind")
  }

  func text(_ name: String, limit: Int = nameBytes) throws(JSONError) -> String {
    guard let text = value[name]?.text else { throw missing(name) }
    guard text.utf8.count <= limit else {
      throw JSONError(reason: "\(name) is longer than \(limit) bytes")
    }
    return text
  }

  func optionalText(_ name: String, limit: Int = nameBytes) throws(JSONError) -> String? {
    switch value[name] {
    case nil, .null?: return nil
    default: return try text(name, limit: limit)
    }
  }

  func number(_ name: String) throws(JSONError) -> UInt32 {
    guard let number = value[name]?.integer.flatMap({ UInt32(exactly: $0) }) else {
      throw missing(name)
    }
    return number
  }

  func optionalNumber(_ name: String) throws(JSONError) -> UInt32? {
    switch value[name] {
    case nil, .null?: return nil
    default: return try number(name)
    }
  }

  func integer(_ name: String) -> Int? { value[name]?.integer.map { Int(clamping: $0) } }
  func double(_ name: String) -> Double? { value[name]?.number }

  /// A flag that may be omitted if it has the usual value.
  func flag(_ name: String, usual: Bool? = nil) throws(JSONError) -> Bool {
    if let flag = value[name]?.flag { return flag }
    guard value[name] == nil, let usual else { throw missing(name) }
    return usual
  }

  func value<Value: RawRepresentable<String>>(_ name: String, _ type: Value.Type)
    throws(JSONError) -> Value
  {
    guard let value = Value(rawValue: try text(name)) else {
      throw JSONError(reason: "\(name) has an unknown value")
    }
    return value
  }

  func json(_ name: String, limit: Int = textBytes) throws(JSONError) -> String? {
    guard let value = value[name], value != .null else { return nil }
    let text = value.json
    guard text.utf8.count <= limit else {
      throw JSONError(reason: "\(name) is longer than \(limit) bytes")
    }
    return text
  }

  func object(_ name: String) throws(JSONError) -> RoomFields {
    guard let value = value[name] else { throw missing(name) }
    return try RoomFields(value)
  }

  func optionalObject(_ name: String) throws(JSONError) -> RoomFields? {
    switch value[name] {
    case nil, .null?: return nil
    default: return try object(name)
    }
  }

  /// A list that may be omitted if it is empty.
  func list<Element>(
    _ name: String, _ read: (JSONValue) throws(JSONError) -> Element
  ) throws(JSONError) -> [Element] {
    let values: [JSONValue]
    switch value[name] {
    case nil: return []
    case .list(let list)?: values = list
    default: throw missing(name)
    }
    guard values.count <= RoomFields.listCount else {
      throw JSONError(reason: "\(name) has more than \(RoomFields.listCount) elements")
    }
    var elements: [Element] = []
    for value in values { elements.append(try read(value)) }
    return elements
  }

  func objects<Element>(
    _ name: String, _ read: (RoomFields) throws(JSONError) -> Element
  ) throws(JSONError) -> [Element] {
    try list(name) { (value) throws(JSONError) in try read(try RoomFields(value)) }
  }

  func texts(_ name: String) throws(JSONError) -> [String] {
    try list(name) { (value) throws(JSONError) in
      guard let text = value.text, text.utf8.count <= RoomFields.nameBytes else {
        throw JSONError(reason: "\(name) has an element that is no name")
      }
      return text
    }
  }

  func numbers(_ name: String) throws(JSONError) -> [UInt32] {
    try list(name) { (value) throws(JSONError) in
      guard let number = value.integer.flatMap({ UInt32(exactly: $0) }) else {
        throw JSONError(reason: "\(name) has an element that is no number")
      }
      return number
    }
  }
}

/// A JSON value (RFC 8259) whose objects keep the order of their members.
///
/// It is written in that order, so that equal values are equal bytes.
package indirect enum JSONValue: Hashable, Sendable {
  case null
  case flag(Bool)
  case integer(Int64)
  case number(Double)
  case text(String)
  case list([JSONValue])
  case object([Member])

  /// A member of an object.
  package struct Member: Hashable, Sendable {
    package var name: String
    package var value: JSONValue

    package init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// Creates an object, leaving out members with a nil value.
  package static func members(_ members: (String, JSONValue?)...) -> JSONValue {
    .object(members.compactMap { name, value in value.map { Member(name, $0) } })
  }

  /// The value as JSON without spaces; a number that JSON cannot represent becomes null.
  package var json: String {
    var out = ""
    write(to: &out)
    return out
  }

  private func write(to out: inout String) {
    switch self {
    case .null: out += "null"
    case .flag(let value): out += value ? "true" : "false"
    case .integer(let value): out += String(value)
    case .number(let value): out += JSONText.number(value).text
    case .text(let value): out += JSONText.text(value).text
    case .list(let values):
      out += "["
      for (index, value) in values.enumerated() {
        if index > 0 { out += "," }
        value.write(to: &out)
      }
      out += "]"
    case .object(let members):
      out += "{"
      for (index, member) in members.enumerated() {
        if index > 0 { out += "," }
        out += JSONText.text(member.name).text
        out += ":"
        member.value.write(to: &out)
      }
      out += "}"
    }
  }
}

extension JSONValue {
  /// The last member with this name, if any.
  package subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name == name }?.value
  }

  /// The text of a string, or nil.
  package var text: String? {
    guard case .text(let value) = self else { return nil }
    return value
  }

  package var flag: Bool? {
    guard case .flag(let value) = self else { return nil }
    return value
  }

  /// The integer, or nil for fractions and beyond 64 bits.
  package var integer: Int64? {
    switch self {
    case .integer(let value): value
    case .number(let value): Int64(exactly: value)
    default: nil
    }
  }

  package var number: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .number(let value): value
    default: nil
    }
  }

  /// The elements of a list, or an empty array.
  package var elements: [JSONValue] {
    guard case .list(let values) = self else { return [] }
    return values
  }

  /// The members of an object in order, or an empty array.
  package var members: [Member] {
    guard case .object(let members) = self else { return [] }
    return members
  }

  /// An identifier as servers write it: a string or an integer.
  package var identifier: String? { text ?? integer.map { String($0) } }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral
{
  package init(stringLiteral value: String) { self = .text(value) }
  package init(booleanLiteral value: Bool) { self = .flag(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
}

/// Why a text is not JSON, in one sentence.
package struct JSONError: Error, Hashable, Sendable {
  package var reason: String

  package init(reason: String) { self.reason = reason }
}

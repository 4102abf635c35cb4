/// A JSON value (RFC 8259) whose objects keep the order of their members.
///
/// Members are written in that order, so equal values produce equal bytes.
package indirect enum JSONValue: Hashable, Sendable {
  case null
  case flag(Bool)
  case integer(Int64)
  case number(Double)
  case text(String)
  case list([JSONValue])
  case object([Member])

  /// A name and a value in an object.
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
  /// The value of the last member with this name; nil if there is none.
  package subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name == name }?.value
  }

  /// The text of a string; nil for other values.
  package var text: String? {
    guard case .text(let value) = self else { return nil }
    return value
  }

  package var flag: Bool? {
    guard case .flag(let value) = self else { return nil }
    return value
  }

  /// The integer; nil for fractions and numbers beyond 64 bits.
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

  /// The elements of a list; empty for other values.
  package var elements: [JSONValue] {
    guard case .list(let values) = self else { return [] }
    return values
  }

  /// The members of an object in order; empty for other values.
  package var members: [Member] {
    guard case .object(let members) = self else { return [] }
    return members
  }

  /// An identifier as servers write it: a string or an integer; nil for other values.
  package var identifier: String? { text ?? integer.map { String($0) } }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral
{
  package init(stringLiteral value: String) { self = .text(value) }
  package init(booleanLiteral value: Bool) { self = .flag(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
}

/// The reason that a string is not JSON, in one sentence.
package struct JSONError: Error, Hashable, Sendable {
  package var reason: String

  package init(reason: String) { self.reason = reason }
}

// MARK: - JSONReader

extension JSONValue {
  /// Limits that stop hostile text from exhausting memory or the stack.
  package struct Limits: Hashable, Sendable {
    /// The maximum depth of nested lists and objects.
    package var depth = 32
    /// The maximum number of values, including lists and objects.
    package var values = 50_000

    package init() {}
  }

  /// Parses JSON (RFC 8259).
  ///
  /// Half of a surrogate pair becomes U+FFFD. Integers within 64 bits stay exact.
  package init(parsing text: String, limits: Limits = Limits()) throws(JSONError) {
    var reader = JSONReader(Array(text.utf8), limits)
    self = try reader.document()
  }
}

private struct JSONReader {
  private let bytes: [UInt8]
  private let limits: JSONValue.Limits
  private var index = 0
  private var count = 0

  init(_ bytes: [UInt8], _ limits: JSONValue.Limits) {
    self.bytes = bytes
    self.limits = limits
  }

  mutating func document() throws(JSONError) -> JSONValue {
    let value = try value(depth: 0)
    skipSpace()
    guard index == bytes.count else { throw failure("something follows the value") }
    return value
  }

  private func failure(_ what: String) -> JSONError {
    JSONError(reason: "\(what) at byte \(index)")
  }

  private mutating func skipSpace() {
    while index < bytes.count {
      switch bytes[index] {
      case 0x20, 0x09, 0x0a, 0x0d: index += 1
      default: return
      }
    }
  }

  private mutating func consume(_ byte: UInt8) -> Bool {
    guard index < bytes.count, bytes[index] == byte else { return false }
    index += 1
    return true
  }

  private mutating func consume(_ word: StaticString) -> Bool {
    let length = word.utf8CodeUnitCount
    guard bytes.count - index >= length else { return false }
    let isThere = word.withUTF8Buffer { bytes[index..<(index + length)].elementsEqual($0) }
    if isThere { index += length }
    return isThere
  }

  private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
    skipSpace()
    count += 1
    guard count <= limits.values else { throw failure("there are too many values") }
    guard depth <= limits.depth else { throw failure("values stand too deep in one another") }
    guard index < bytes.count else { throw failure("a value is missing") }
    switch bytes[index] {
    case UInt8(ascii: "{"): return try object(depth)
    case UInt8(ascii: "["): return try list(depth)
    case UInt8(ascii: "\""): return .text(try string())
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    default: break
    }
    if consume("true") { return .flag(true) }
    if consume("false") { return .flag(false) }
    if consume("null") { return .null }
    throw failure("a value is missing")
  }

  private mutating func object(_ depth: Int) throws(JSONError) -> JSONValue {
    index += 1
    var members: [JSONValue.Member] = []
    skipSpace()
    if consume(UInt8(ascii: "}")) { return .object(members) }
    repeat {
      skipSpace()
      let name = try string()
      skipSpace()
      guard consume(UInt8(ascii: ":")) else { throw failure("a colon is missing") }
      members.append(JSONValue.Member(name, try value(depth: depth + 1)))
      skipSpace()
    } while consume(UInt8(ascii: ","))
    guard consume(UInt8(ascii: "}")) else { throw failure("an object does not end") }
    return .object(members)
  }

  private mutating func list(_ depth: Int) throws(JSONError) -> JSONValue {
    index += 1
    var values: [JSONValue] = []
    skipSpace()
    if consume(UInt8(ascii: "]")) { return .list(values) }
    repeat {
      values.append(try value(depth: depth + 1))
      skipSpace()
    } while consume(UInt8(ascii: ","))
    guard consume(UInt8(ascii: "]")) else { throw failure("a list does not end") }
    return .list(values)
  }

  // MARK: Numbers

  private mutating func digits() -> Int {
    let start = index
    while index < bytes.count, (0x30...0x39).contains(bytes[index]) { index += 1 }
    return index - start
  }

  private mutating func number() throws(JSONError) -> JSONValue {
    let start = index
    _ = consume(UInt8(ascii: "-"))
    let hasZero = index < bytes.count && bytes[index] == UInt8(ascii: "0")
    let whole = digits()
    guard whole == 1 || (whole > 1 && !hasZero) else { throw failure("a number is not one") }
    var isWhole = true
    if consume(UInt8(ascii: ".")) {
      isWhole = false
      guard digits() > 0 else { throw failure("a number is not one") }
    }
    if consume(UInt8(ascii: "e")) || consume(UInt8(ascii: "E")) {
      isWhole = false
      if !consume(UInt8(ascii: "+")) { _ = consume(UInt8(ascii: "-")) }
      guard digits() > 0 else { throw failure("a number is not one") }
    }
    let text = String(decoding: bytes[start..<index], as: UTF8.self)
    if isWhole, let value = Int64(text) { return .integer(value) }
    guard let value = Double(text), value.isFinite else { throw failure("a number is too large") }
    return .number(value)
  }

  // MARK: Strings

  private mutating func string() throws(JSONError) -> String {
    guard consume(UInt8(ascii: "\"")) else { throw failure("a string is missing") }
    var text: [UInt8] = []
    while index < bytes.count {
      let start = index
      while index < bytes.count, bytes[index] >= 0x20, bytes[index] != UInt8(ascii: "\""),
        bytes[index] != UInt8(ascii: "\\")
      {
        index += 1
      }
      text += bytes[start..<index]
      if consume(UInt8(ascii: "\"")) { return String(decoding: text, as: UTF8.self) }
      guard consume(UInt8(ascii: "\\")), index < bytes.count else { break }
      try escape(into: &text)
    }
    throw failure("a string does not end")
  }

  private mutating func escape(into text: inout [UInt8]) throws(JSONError) {
    let escaped = bytes[index]
    index += 1
    switch escaped {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(escaped)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0c)
    case UInt8(ascii: "n"): text.append(0x0a)
    case UInt8(ascii: "r"): text.append(0x0d)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      let scalar = Unicode.Scalar(try codePoint()) ?? "\u{fffd}"
      text += Array(String(Character(scalar)).utf8)
    default: throw failure("an escape is unknown")
    }
  }

  /// Parses `\uXXXX`, or two of them that form a surrogate pair.
  private mutating func codePoint() throws(JSONError) -> UInt32 {
    let high = try fourDigits()
    guard (0xd800..<0xdc00).contains(high), index + 1 < bytes.count,
      bytes[index] == UInt8(ascii: "\\"), bytes[index + 1] == UInt8(ascii: "u")
    else { return high }
    let place = index
    index += 2
    let low = try fourDigits()
    guard (0xdc00..<0xe000).contains(low) else {
      index = place
      return high
    }
    return 0x10000 + (high - 0xd800) << 10 + (low - 0xdc00)
  }

  private mutating func fourDigits() throws(JSONError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard index < bytes.count, let digit = hexadecimalDigit(bytes[index]) else {
        throw failure("an escape is not complete")
      }
      value = value << 4 | digit
      index += 1
    }
    return value
  }
}

private func hexadecimalDigit(_ byte: UInt8) -> UInt32? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0"))
  case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(byte - UInt8(ascii: "a") + 10)
  case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(byte - UInt8(ascii: "A") + 10)
  default: nil
  }
}

/// JSON text whose members keep their order (RFC 8259).
package struct JSONText: Hashable, Sendable {
  package let text: String

  /// Wraps text that is already JSON.
  package init(_ text: String) { self.text = text }

  package static let null = JSONText("null")

  package static func flag(_ value: Bool) -> JSONText { JSONText(value ? "true" : "false") }

  package static func integer(_ value: some BinaryInteger) -> JSONText { JSONText(String(value)) }

  /// Formats a number, integers without a fraction as in JavaScript; null if JSON cannot represent
  /// it.
  package static func number(_ value: Double) -> JSONText {
    guard value.isFinite else { return .null }
    if value.rounded(.towardZero) == value, value.magnitude < 9_007_199_254_740_992 {
      return JSONText(String(Int64(value)))
    }
    return JSONText(value.description)
  }

  /// Quotes and escapes a string; with `escapesByNumber`, line ends and tabs become `\u00..` too.
  package static func text(_ value: String, escapesByNumber: Bool = false) -> JSONText {
    var text = ""
    append(value, to: &text, escapesByNumber: escapesByNumber)
    return JSONText(text)
  }

  package static func list(
    _ elements: some Sequence<JSONText>, separator: String = ","
  ) -> JSONText {
    JSONText("[" + elements.map(\.text).joined(separator: separator) + "]")
  }

  /// Formats an object; members with a nil value are left out.
  package static func object(_ members: [(String, JSONText?)]) -> JSONText {
    var text = ""
    for (name, value) in members {
      guard let value else { continue }
      text += text.isEmpty ? "{" : ","
      append(name, to: &text)
      text += ":"
      text += value.text
    }
    return JSONText(text.isEmpty ? "{}" : text + "}")
  }

  /// Appends a string in quotes, with escapes where JSON requires them.
  package static func append(
    _ value: String, to text: inout String, escapesByNumber: Bool = false
  ) {
    text += "\""
    // Nearly all strings are names and numbers that need no escapes.
    if value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 != 0x5c }) {
      text += value
    } else {
      for scalar in value.unicodeScalars {
        text += escape(of: scalar, byNumber: escapesByNumber) ?? String(scalar)
      }
    }
    text += "\""
  }

  /// Appends a quoted string as UTF-8 bytes; faster where the JSON has many short strings.
  package static func append(_ value: String, to bytes: inout [UInt8]) {
    var value = value
    let start = bytes.count
    bytes.append(UInt8(ascii: "\""))
    let isPlain = value.withUTF8 { characters in
      guard unsafe characters.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 != 0x5c }) else {
        return false
      }
      unsafe bytes.append(contentsOf: characters)
      return true
    }
    if isPlain {
      bytes.append(UInt8(ascii: "\""))
    } else {
      bytes.removeLast(bytes.count - start)
      bytes.append(contentsOf: JSONText.text(value).text.utf8)
    }
  }

  /// Returns the escape of a character that must not appear literally (RFC 8259 section 7); nil for
  /// others.
  private static func escape(of scalar: Unicode.Scalar, byNumber: Bool) -> String? {
    switch scalar {
    case "\"": "\\\""
    case "\\": "\\\\"
    case "\n" where !byNumber: "\\n"
    case "\r" where !byNumber: "\\r"
    case "\t" where !byNumber: "\\t"
    case _ where scalar.value < 0x20:
      "\\u00" + hexadecimal([UInt8(truncatingIfNeeded: scalar.value)])
    default: nil
    }
  }
}

// MARK: - JSONWriter

/// Writes JSON directly into bytes, for JSON that is written many times a second (RFC 8259).
///
/// Members and elements keep the order in which they are written.
package struct JSONWriter {
  private var bytes: [UInt8] = []
  /// Whether the current object or list already has a value, in which case a comma is needed.
  private var isBehindValue = false

  /// Creates empty text with room for `capacity` bytes.
  package init(capacity: Int) { bytes.reserveCapacity(capacity) }

  /// The text written so far.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  package mutating func beginObject() { begin(UInt8(ascii: "{")) }
  package mutating func endObject() { end(UInt8(ascii: "}")) }
  package mutating func beginList() { begin(UInt8(ascii: "[")) }
  package mutating func endList() { end(UInt8(ascii: "]")) }

  /// Writes the next member's name, which must need no escapes.
  package mutating func name(_ name: StaticString) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    name.withUTF8Buffer { bytes.append(contentsOf: $0) }
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
    isBehindValue = false
  }

  package mutating func unsigned(_ value: UInt64) {
    separate()
    digits(value)
    isBehindValue = true
  }

  package mutating func integer(_ value: Int64) {
    separate()
    if value < 0 { bytes.append(UInt8(ascii: "-")) }
    digits(value.magnitude)
    isBehindValue = true
  }

  /// Writes a value that is already JSON.
  package mutating func value(_ json: JSONText) {
    separate()
    bytes.append(contentsOf: json.text.utf8)
    isBehindValue = true
  }

  // MARK: Members

  package mutating func member(_ name: StaticString, _ value: UInt64) {
    self.name(name)
    unsigned(value)
  }

  package mutating func member(_ name: StaticString, _ value: UInt32) {
    member(name, UInt64(value))
  }

  package mutating func member(_ name: StaticString, _ value: Int64) {
    self.name(name)
    integer(value)
  }

  package mutating func member(_ name: StaticString, _ value: JSONText) {
    self.name(name)
    self.value(value)
  }

  // MARK: Bytes

  private mutating func begin(_ mark: UInt8) {
    separate()
    bytes.append(mark)
    isBehindValue = false
  }

  private mutating func end(_ mark: UInt8) {
    bytes.append(mark)
    isBehindValue = true
  }

  private mutating func separate() {
    if isBehindValue { bytes.append(UInt8(ascii: ",")) }
  }

  private mutating func digits(_ value: UInt64) {
    var rest = value
    var low = bytes.count
    repeat {
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit))
      rest = quotient
    } while rest > 0
    // The digits were appended lowest first.
    var high = bytes.count - 1
    while low < high {
      bytes.swapAt(low, high)
      low += 1
      high -= 1
    }
  }
}

/// JSON whose members keep the order in which they are given (RFC 8259).
package struct JSONText: Hashable, Sendable {
  /// The text of the value.
  package let text: String

  /// Wraps text that is JSON already.
  package init(_ text: String) { self.text = text }

  package static let null = JSONText("null")

  package static func flag(_ value: Bool) -> JSONText { JSONText(value ? "true" : "false") }

  package static func integer(_ value: some BinaryInteger) -> JSONText { JSONText(String(value)) }

  /// A number as JavaScript prints it, integers without a fraction; null if JSON cannot represent
  /// it.
  package static func number(_ value: Double) -> JSONText {
    guard value.isFinite else { return .null }
    if value.rounded(.towardZero) == value, value.magnitude < 9_007_199_254_740_992 {
      return JSONText(String(Int64(value)))
    }
    return JSONText(value.description)
  }

  /// A string; with `escapesByNumber`, line ends and tabs are escaped by number too.
  package static func text(_ value: String, escapesByNumber: Bool = false) -> JSONText {
    var text = ""
    append(value, to: &text, escapesByNumber: escapesByNumber)
    return JSONText(text)
  }

  /// An array.
  package static func list(
    _ elements: some Sequence<JSONText>, separator: String = ","
  ) -> JSONText {
    JSONText("[" + elements.map(\.text).joined(separator: separator) + "]")
  }

  /// An object; members with a nil value are left out.
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

  /// Appends a string with its quotes.
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

  /// Appends a quoted string as bytes, for long texts of short strings.
  package static func append(_ value: String, to bytes: inout [UInt8]) {
    var value = value
    let start = bytes.count
    bytes.append(UInt8(ascii: "\""))
    let isPlain = unsafe value.withUTF8 { characters in
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

  /// The escape of a character that must not appear literally (RFC 8259 section 7).
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

package import Tape
import Wire

/// Comma-separated values (RFC 4180).
package enum CSVText {
  /// A field, in quotes where its text would end it.
  package static func field(_ text: String) -> String {
    let needsQuotes = text.utf8.contains { [0x22, 0x2c, 0x0a, 0x0d].contains($0) }
    return needsQuotes ? "\"" + text.replacing("\"", with: "\"\"") + "\"" : text
  }

  /// A line with its end.
  package static func line(_ fields: some Sequence<String>) -> String {
    fields.map(field).joined(separator: ",") + "\r\n"
  }
}

extension Value {
  /// The value as a field before it is quoted; bytes as hexadecimal digits, NULL as nothing.
  package var csv: String {
    switch self {
    case .null: ""
    case .text(let text): text
    case .blob(let bytes): hexadecimal(bytes)
    case .integer, .real: summary
    }
  }
}

/// Makes text from others safe to print.
///
/// Names, messages and server responses may contain characters that move the cursor, set the
/// terminal's title or reverse the writing direction. Everything a command prints passes through
/// here: characters without a glyph are written as `\u{1b}`. JSON uses its own escapes, which every
/// JSON reader undoes.
package enum PrintableText {
  /// Whether a character has a glyph and does not affect the text around it.
  ///
  /// False for controls (C0, DEL, C1), formats (bidirectional controls, zero width, tags), line and
  /// paragraph separators and noncharacters, and for stand-ins for bytes of a file name
  /// (`SystemPath`).
  package static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x20...0x7e: return true
    case 0...0x9f: return false
    default: break
    }
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: return false
    default: return !scalar.properties.isNoncharacterCodePoint && SystemPath.byte(of: scalar) == nil
    }
  }

  /// Escapes a text for one line, including its line ends.
  package static func line(_ text: String) -> String {
    if text.utf8.allSatisfy({ (0x20..<0x7f).contains($0) }) { return text }
    var plain = ""
    for scalar in text.unicodeScalars {
      if isPlain(scalar) {
        plain.unicodeScalars.append(scalar)
      } else {
        plain += escape(of: scalar)
      }
    }
    return plain
  }

  /// Escapes a text of several lines; tabs and line feeds, alone or after a carriage return, are
  /// kept.
  /// - Parameter mark: the replacement for a character that the caller inserted itself.
  package static func lines(
    _ text: String, mark: (Unicode.Scalar) -> String? = { _ in nil }
  ) -> String {
    if text.utf8.allSatisfy({ (0x20..<0x7f).contains($0) || $0 == 0x0a || $0 == 0x09 }) {
      return text
    }
    var plain = ""
    var follows = false
    for scalar in text.unicodeScalars {
      let mayEndLine = follows
      follows = scalar == "\r"
      if mayEndLine { plain += scalar == "\n" ? "\r" : escape(of: "\r") }
      if follows { continue }
      if scalar == "\n" || scalar == "\t" || isPlain(scalar) {
        plain.unicodeScalars.append(scalar)
      } else {
        plain += mark(scalar) ?? escape(of: scalar)
      }
    }
    return follows ? plain + escape(of: "\r") : plain
  }

  /// Escapes JSON as `\u001b` (RFC 8259 section 7): an unprintable character can only occur inside
  /// a string.
  package static func json(_ text: String) -> String {
    if text.utf8.allSatisfy({ (0x20..<0x7f).contains($0) || [0x0a, 0x0d, 0x09].contains($0) }) {
      return text
    }
    var plain = ""
    for scalar in text.unicodeScalars {
      if isPlain(scalar) || scalar == "\n" || scalar == "\t" || scalar == "\r" {
        plain.unicodeScalars.append(scalar)
      } else if let byte = SystemPath.byte(of: scalar) {
        plain += "\\\\x" + hexadecimal([byte])
      } else {
        for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
          plain += "\\u" + hexadecimal([UInt8(unit >> 8), UInt8(truncatingIfNeeded: unit)])
        }
      }
    }
    return plain
  }

  private static func escape(of scalar: Unicode.Scalar) -> String {
    if let byte = SystemPath.byte(of: scalar) { return "\\x" + hexadecimal([byte]) }
    return switch scalar {
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    default: "\\u{\(String(scalar.value, radix: 16))}"
    }
  }
}

/// Quotes words for a shell.
package enum ShellText {
  /// Joins words into a command line, quoted where necessary.
  package static func command(_ words: String...) -> String {
    words.map(word).joined(separator: " ")
  }

  /// Quotes a word if a shell would interpret it.
  ///
  /// Unprintable bytes become `$'\xNN'`, which bash, zsh, ksh and POSIX.1-2024 support.
  package static func word(_ word: String) -> String {
    let isBare = word.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
      default: bare.contains(byte)
      }
    }
    if isBare, !word.isEmpty { return word }
    if word.unicodeScalars.allSatisfy(PrintableText.isPlain) {
      return "'" + word.replacing("'", with: "'\\''") + "'"
    }
    var quoted = "$'"
    for scalar in word.unicodeScalars {
      if scalar == "'" || scalar == "\\" {
        quoted += "\\" + String(scalar)
      } else if PrintableText.isPlain(scalar) {
        quoted.unicodeScalars.append(scalar)
      } else {
        // Three octal digits are unambiguous whatever follows.
        for byte in SystemPath.bytes(of: String(scalar)) {
          let digits = String(byte, radix: 8)
          quoted += "\\" + String(repeating: "0", count: 3 - digits.utf8.count) + digits
        }
      }
    }
    return quoted + "'"
  }

  /// Punctuation that no shell interprets at any position: % + , - . / : = @ _
  private static let bare: Set<UInt8> = [
    0x25, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f, 0x3a, 0x3d, 0x40, 0x5f,
  ]
}

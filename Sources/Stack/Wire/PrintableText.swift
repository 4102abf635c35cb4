/// Text that others wrote, as it can be shown to people.
///
/// Names, messages and what a server answered may hold what moves the cursor, sets the title of a
/// terminal or turns the direction of writing. All that a command prints goes through here, so that
/// none of it reaches a terminal: what has no shape of its own is written as `\u{1b}`. JSON has its
/// own form, which every reader of JSON undoes.
package enum PrintableText {
  /// Whether a character has a shape of its own and leaves the text around it alone.
  ///
  /// Controls (C0, DEL, C1), formats (bidirectional controls, what has no width, tags), separators
  /// of lines and paragraphs, and noncharacters do not; nor does what stands for a byte of a file
  /// name (`SystemPath`).
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

  /// A text on one line: also its line ends are written down.
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

  /// A text of lines: line feeds, alone or after a carriage return, and tabs stay.
  ///
  /// - Parameter mark: what is written for a character that the caller has put there itself.
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

  /// JSON in which nothing but its own text stands: what is not plain can only be inside of a
  /// string there, and is written as `\u001b` (RFC 8259 section 7).
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

/// Words as a shell reads them.
package enum ShellText {
  /// A command line of words, each quoted where it has to be.
  package static func command(_ words: String...) -> String {
    words.map(word).joined(separator: " ")
  }

  /// A word, in quotes where a shell would make something else of it.
  ///
  /// What cannot be shown stands as `$'\xNN'`, which bash, zsh, ksh and POSIX.1-2024 know.
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
        // Three octal digits end by themselves, whatever follows.
        for byte in SystemPath.bytes(of: String(scalar)) {
          let digits = String(byte, radix: 8)
          quoted += "\\" + String(repeating: "0", count: 3 - digits.utf8.count) + digits
        }
      }
    }
    return quoted + "'"
  }

  /// Punctuation without a meaning to a shell, wherever it stands in a word: % + , - . / : = @ _
  private static let bare: Set<UInt8> = [
    0x25, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f, 0x3a, 0x3d, 0x40, 0x5f,
  ]
}

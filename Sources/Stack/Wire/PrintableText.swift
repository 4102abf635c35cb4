/// Makes text from outside safe to print.
///
/// Names, messages and server responses may contain characters that move the cursor, set the
/// terminal's title or reverse the writing direction. Everything a command prints passes through
/// here: characters without a glyph become escapes such as `\u{1b}`. JSON uses its own escapes,
/// which every JSON reader undoes.
package enum PrintableText {
  /// Returns whether a character has a glyph and does not affect the text around it.
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

  /// Escapes text for one line, including its line ends.
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

  /// Escapes text of several lines; keeps tabs and line ends (LF and CRLF).
  /// - Parameter mark: returns the replacement for a character that the caller inserted itself.
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

  /// Escapes unprintable characters in JSON as `\u001b` (RFC 8259 section 7); they can only occur
  /// inside a string.
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
  /// A word with unprintable characters becomes `$'...'` with octal escapes, which bash, zsh, ksh
  /// and POSIX.1-2024 support.
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

// MARK: - SecretText

/// Replaces secrets in text.
///
/// Takes contain TURN passwords and room tokens. Printed text ends up in reports and on shared
/// screens; only a query shows everything.
package enum SecretText {
  /// The text that is printed instead of a secret.
  package static let hidden = "(hidden)"

  /// The names of secret fields, in W3C's RTCIceServer and in signaling protocols.
  private static let names: [[UInt8]] = [
    "credential", "password", "apisecret", "secret", "token", "pin",
  ].map { Array($0.utf8) }

  /// Returns whether a field is secret, judged by the last part of its name.
  package static func isSecret(field name: String) -> Bool {
    guard let last = name.split(separator: ".").last else { return false }
    return names.contains(Array(last.lowercased().utf8))
  }

  private static let bearer = Array("bearer ".utf8)

  /// Hides secret values: JSON members (also of JSON inside a string), parameters such as
  /// `credential="..."` (RFC 8288), and bearer tokens (RFC 6750).
  package static func hidden(in text: String) -> String {
    let bytes = Array(text.utf8)
    var output: [UInt8] = []
    var copied = 0
    var index = 0
    while index < bytes.count {
      guard index == 0 || !isLetter(bytes[index - 1]),
        let value = secret(in: bytes, at: index), !value.isEmpty
      else {
        index += 1
        continue
      }
      output += bytes[copied..<value.lowerBound] + hidden.utf8
      copied = value.upperBound
      index = value.upperBound
    }
    guard copied > 0 else { return text }
    return String(decoding: output + bytes[copied...], as: UTF8.self)
  }

  /// Returns the range of a secret's value if its name starts here; nil otherwise.
  private static func secret(in bytes: [UInt8], at start: Int) -> Range<Int>? {
    if begins(bearer, in: bytes, at: start) {
      let value = start + bearer.count
      return value..<(bytes[value...].firstIndex { !isOfToken($0) } ?? bytes.count)
    }
    guard let name = names.first(where: { begins($0, in: bytes, at: start) }) else { return nil }
    var place = start + name.count
    func skip(_ which: (UInt8) -> Bool) {
      while place < bytes.count, which(bytes[place]) { place += 1 }
    }
    skip { $0 == backslash }
    if place < bytes.count, bytes[place] == quote { place += 1 }
    skip { $0 == space }
    guard place < bytes.count, bytes[place] == colon || bytes[place] == equals else { return nil }
    place += 1
    skip { $0 == space }
    let slashes = place
    skip { $0 == backslash }
    let depth = place - slashes
    guard place < bytes.count, bytes[place] == quote else { return nil }
    let value = place + 1
    // The closing quote has as many backslashes as the opening one; escaped backslashes at the end
    // of the value do not count.
    let escaped = 2 * (depth + 1)
    var run = 0
    for index in value..<bytes.count {
      switch bytes[index] {
      case backslash: run += 1
      case quote where run >= depth && (run - depth) % escaped == 0:
        return value..<(index - depth)
      case lineFeed: return value..<index
      default: run = 0
      }
    }
    return value..<bytes.count
  }

  private static func begins(_ name: [UInt8], in bytes: [UInt8], at start: Int) -> Bool {
    guard bytes.count - start >= name.count else { return false }
    for offset in name.indices where bytes[start + offset] | 0x20 != name[offset] { return false }
    return true
  }

  private static let (quote, backslash, space): (UInt8, UInt8, UInt8) = (0x22, 0x5c, 0x20)
  private static let (colon, equals, lineFeed): (UInt8, UInt8, UInt8) = (0x3a, 0x3d, 0x0a)

  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

  /// Returns whether a byte is allowed in a bearer token (RFC 6750 section 2.1).
  private static func isOfToken(_ byte: UInt8) -> Bool {
    isLetter(byte) || (0x30...0x39).contains(byte) || Array("-._~+/=".utf8).contains(byte)
  }
}

// MARK: - SystemPath

/// File names as bytes, which need not be UTF-8.
///
/// A string cannot hold invalid UTF-8. Each byte that is not valid UTF-8 becomes one character of a
/// private-use plane and is converted back for system calls. A name may already contain such a
/// character; its UTF-8 bytes are then encoded one by one, so that the conversion is always
/// reversible.
package enum SystemPath {
  /// Base of the stand-in characters: a byte from 0x80 to 0xff is added to it.
  private static let base: UInt32 = 0x10fe00

  /// Returns the byte that a character stands for, if any.
  package static func byte(of scalar: Unicode.Scalar) -> UInt8? {
    guard scalar.value >= base + 0x80, scalar.value <= base + 0xff else { return nil }
    return UInt8(truncatingIfNeeded: scalar.value)
  }

  /// Creates a name from bytes without a trailing NUL.
  package static func name(_ bytes: some Sequence<UInt8>) -> String {
    let all = Array(bytes)
    var name = ""
    var parser = Unicode.UTF8.ForwardParser()
    var rest = all.makeIterator()
    var offset = 0
    while true {
      switch parser.parseScalar(from: &rest) {
      case .valid(let encoded):
        let scalar = Unicode.UTF8.decode(encoded)
        if byte(of: scalar) == nil {
          name.unicodeScalars.append(scalar)
        } else {
          for byte in all[offset..<offset + encoded.count] { append(byte, to: &name) }
        }
        offset += encoded.count
      case .error(let length):
        for byte in all[offset..<min(offset + length, all.count)] { append(byte, to: &name) }
        offset += length
      case .emptyInput: return name
      }
    }
  }

  private static func append(_ byte: UInt8, to name: inout String) {
    if let scalar = Unicode.Scalar(byte < 0x80 ? UInt32(byte) : base + UInt32(byte)) {
      name.unicodeScalars.append(scalar)
    }
  }

  /// Returns a name's bytes without a trailing NUL.
  package static func bytes(of name: String) -> [UInt8] {
    if isText(name) { return Array(name.utf8) }
    var bytes: [UInt8] = []
    for scalar in name.unicodeScalars {
      if let byte = byte(of: scalar) {
        bytes.append(byte)
      } else {
        bytes += Array(String(scalar).utf8)
      }
    }
    return bytes
  }

  /// Returns whether a name certainly has no stand-in characters.
  private static func isText(_ name: String) -> Bool {
    // The UTF-8 encoding of every stand-in character begins with this byte.
    name.utf8.allSatisfy { $0 != 0xf4 }
  }
}

extension String {
  /// The file name for system calls: bytes with a trailing NUL.
  package var systemPath: [CChar] {
    (SystemPath.bytes(of: self) + [0]).map { CChar(bitPattern: $0) }
  }
}

/// Formats a number with its noun: `1 call`, `2 calls`, `0 calls`.
/// - Parameter plural: the plural if it is not the noun with an `s`.
package func counted(
  _ count: some BinaryInteger, _ noun: String, _ plural: String? = nil
) -> String {
  count == 1 ? "1 \(noun)" : "\(count) \(plural ?? noun + "s")"
}

extension StringProtocol {
  /// The text without leading and trailing white space.
  package var trimmed: String { trimming(where: \.isWhitespace) }

  /// Returns the text without leading and trailing characters that `isUnwanted` accepts.
  package func trimming(where isUnwanted: (Character) -> Bool) -> String {
    var text = self[...]
    while let first = text.first, isUnwanted(first) { text.removeFirst() }
    while let last = text.last, isUnwanted(last) { text.removeLast() }
    return String(text)
  }
}

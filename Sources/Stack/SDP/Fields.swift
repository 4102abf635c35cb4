// Descriptions are split by bytes: a space followed by a combining mark is one Swift character, but
// still a space to every other parser.

extension Substring {
  /// The parts between spaces, empty ones left out.
  var fields: [Substring] { split(on: UInt8(ascii: " ")) }

  /// The parts between occurrences of an ASCII character, empty ones left out.
  func split(on separator: UInt8) -> [Substring] {
    var parts: [Substring] = []
    var rest = self
    while let end = rest.utf8.firstIndex(of: separator) {
      if end != rest.startIndex { parts.append(rest[..<end]) }
      rest = rest[rest.utf8.index(after: end)...]
    }
    if !rest.isEmpty { parts.append(rest) }
    return parts
  }

  /// The parts before and after the first occurrence of an ASCII character; nil when it is absent.
  func cut(at separator: UInt8) -> (head: Substring, tail: Substring)? {
    guard let index = utf8.firstIndex(of: separator) else { return nil }
    return (self[..<index], self[utf8.index(after: index)...])
  }

  /// Whether this is a token of RFC 8866 section 9: visible ASCII without a few separators.
  var isToken: Bool {
    for byte in utf8 {
      switch byte {
      case 0x21, 0x23...0x27, 0x2a...0x2b, 0x2d...0x2e, 0x30...0x39, 0x41...0x5a, 0x5e...0x7e:
        continue
      default: return false
      }
    }
    return !isEmpty
  }

  /// Whether this is visible ASCII text without spaces.
  var isVisible: Bool {
    for byte in utf8 where byte < 0x21 || byte > 0x7e { return false }
    return !isEmpty
  }

  /// Whether this is a decimal number of any length.
  var isNumber: Bool {
    for byte in utf8 where byte < 0x30 || byte > 0x39 { return false }
    return !isEmpty
  }
}

extension String {
  /// The parts between spaces, empty ones left out.
  var fields: [Substring] { self[...].fields }

  /// The parts between occurrences of an ASCII character, empty ones left out.
  func split(on separator: UInt8) -> [Substring] { self[...].split(on: separator) }

  /// The parts before and after the first occurrence of an ASCII character; nil when it is absent.
  func cut(at separator: UInt8) -> (head: Substring, tail: Substring)? {
    self[...].cut(at: separator)
  }

  /// The text without spaces and tabs at either end.
  var withoutSpacesAround: String {
    let isSpace: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    let rest = utf8.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
    return String(decoding: Array(rest), as: UTF8.self)
  }

  /// Whether this is a token of RFC 8866 section 9: visible ASCII without a few separators.
  package var isToken: Bool { self[...].isToken }

  /// Whether this is visible ASCII text without spaces.
  var isVisible: Bool { self[...].isVisible }
}

extension FixedWidthInteger {
  /// Reads decimal digits only: no sign, no spaces, no overflow.
  init?(decimal text: Substring) {
    guard text.isNumber else { return nil }
    self.init(text)
  }

  /// Reads decimal digits only: no sign, no spaces, no overflow.
  package init?(decimal text: String) { self.init(decimal: text[...]) }
}

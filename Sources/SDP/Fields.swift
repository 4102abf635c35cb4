extension StringProtocol {
  /// The parts between spaces, empty ones left out.
  ///
  /// Works on bytes: a space followed by a combining mark is still a space to every other parser.
  var fields: [SubSequence] { split(on: UInt8(ascii: " ")) }

  /// The parts between an ASCII character, empty ones left out.
  func split(on separator: UInt8) -> [SubSequence] {
    var parts: [SubSequence] = []
    var start = utf8.startIndex
    var index = start
    while index != utf8.endIndex {
      let next = utf8.index(after: index)
      if utf8[index] == separator {
        if start != index { parts.append(self[start..<index]) }
        start = next
      }
      index = next
    }
    if start != index { parts.append(self[start..<index]) }
    return parts
  }

  /// The parts before and after the first occurrence of an ASCII character; nil when it is absent.
  func cut(at separator: UInt8) -> (head: SubSequence, tail: SubSequence)? {
    guard let index = utf8.firstIndex(of: separator) else { return nil }
    return (self[..<index], self[utf8.index(after: index)...])
  }

  /// Whether this is a token of RFC 8866 section 9: visible ASCII without a few separators.
  package var isToken: Bool {
    !isEmpty
      && utf8.allSatisfy {
        switch $0 {
        case 0x21, 0x23...0x27, 0x2a...0x2b, 0x2d...0x2e, 0x30...0x39, 0x41...0x5a, 0x5e...0x7e:
          true
        default: false
        }
      }
  }

  /// Whether this is visible ASCII text without spaces.
  var isVisible: Bool { !isEmpty && utf8.allSatisfy { 0x21...0x7e ~= $0 } }
}

extension FixedWidthInteger {
  /// Reads decimal digits only: no sign, no spaces, no overflow.
  package init?(decimal text: some StringProtocol) {
    guard !text.isEmpty, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    self.init(text)
  }
}

/// Separates a Swift file's code from comments and strings, with a subset of the lexical grammar.
///
/// Regular expression literals are not supported; the house style has none.
enum SwiftText {
  /// Returns the text with comments and string contents replaced by spaces, keeping all lines.
  ///
  /// An interpolation's content is code and stays.
  static func code(of text: String) -> String {
    var scanner = Scanner(bytes: Array(text.utf8))
    return scanner.run()
  }

  private enum Context {
    /// Code; in an interpolation, with its number of open parentheses.
    case code(parentheses: Int)
    case string(hashes: Int, isMultiline: Bool)
  }

  private struct Scanner {
    /// Bytes without special meaning in code and in strings, as most are.
    private static let plainInCode = plain(but: "/\"#()")
    private static let plainInString = plain(but: "\\\"#\n")

    private static func plain(but special: String) -> [Bool] {
      (0...UInt8.max).map { !special.utf8.contains($0) }
    }

    let bytes: [UInt8]
    var position = 0
    var kept: [UInt8] = []
    var contexts: [Context] = [.code(parentheses: 0)]

    init(bytes: [UInt8]) {
      self.bytes = bytes
      kept.reserveCapacity(bytes.count)
    }

    mutating func run() -> String {
      while position < bytes.count {
        switch contexts.last ?? .code(parentheses: 0) {
        case .code(let parentheses): readCode(parentheses)
        case .string(let hashes, let isMultiline): readString(hashes, isMultiline)
        }
      }
      return String(decoding: kept, as: UTF8.self)
    }

    /// Returns how many bytes without special meaning follow.
    private func run(of plain: [Bool]) -> Int {
      var end = position
      while end < bytes.count, plain[Int(bytes[end])] { end += 1 }
      return end - position
    }

    private mutating func readCode(_ parentheses: Int) {
      let plain = run(of: Self.plainInCode)
      if plain > 0 {
        keep(plain)
      } else if starts(with: "//") {
        let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
        blank(end - position)
      } else if starts(with: "/*") {
        skipComment()
      } else if let opening = openingOfString() {
        contexts.append(.string(hashes: opening.hashes, isMultiline: opening.isMultiline))
        blank(opening.hashes + (opening.isMultiline ? 3 : 1))
      } else {
        let isInterpolation = contexts.count > 1
        if bytes[position] == UInt8(ascii: "("), isInterpolation {
          contexts[contexts.count - 1] = .code(parentheses: parentheses + 1)
        } else if bytes[position] == UInt8(ascii: ")"), isInterpolation {
          contexts[contexts.count - 1] = .code(parentheses: parentheses - 1)
          if parentheses == 1 { contexts.removeLast() }
        }
        keep(1)
      }
    }

    private mutating func readString(_ hashes: Int, _ isMultiline: Bool) {
      let plain = run(of: Self.plainInString)
      guard plain == 0 else { return blank(plain) }
      let quotes = isMultiline ? 3 : 1
      let escape = "\\" + String(repeating: "#", count: hashes)
      let end = String(repeating: "\"", count: quotes) + escape.dropFirst()
      if starts(with: escape + "(") {
        blank(escape.utf8.count)
        contexts.append(.code(parentheses: 0))
      } else if starts(with: escape) {
        blank(escape.utf8.count + 1)
      } else if starts(with: end) {
        blank(end.utf8.count)
        contexts.removeLast()
      } else if !isMultiline, bytes[position] == UInt8(ascii: "\n") {
        contexts.removeLast()
      } else {
        blank(1)
      }
    }

    /// Skips a comment; comments nest.
    private mutating func skipComment() {
      var depth = 0
      repeat {
        if starts(with: "/*") {
          depth += 1
          blank(2)
        } else if starts(with: "*/") {
          depth -= 1
          blank(2)
        } else {
          blank(1)
        }
      } while depth > 0 && position < bytes.count
    }

    private func openingOfString() -> (hashes: Int, isMultiline: Bool)? {
      var hashes = 0
      while position + hashes < bytes.count, bytes[position + hashes] == UInt8(ascii: "#") {
        hashes += 1
      }
      let quotes = bytes[(position + hashes)...].prefix(3).prefix { $0 == UInt8(ascii: "\"") }.count
      return quotes == 0 ? nil : (hashes, quotes == 3)
    }

    private func starts(with text: String) -> Bool {
      bytes[position...].starts(with: text.utf8)
    }

    private mutating func keep(_ count: Int) {
      kept.append(contentsOf: bytes[position..<min(position + count, bytes.count)])
      position += count
    }

    private mutating func blank(_ count: Int) {
      for byte in bytes[position..<min(position + count, bytes.count)] {
        kept.append(byte == UInt8(ascii: "\n") ? byte : UInt8(ascii: " "))
      }
      position += count
    }
  }
}

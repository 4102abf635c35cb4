/// A line that is being edited: the text, the place in it, and the lines before it.
///
/// It knows nothing of terminals; keys come in as bytes, as a terminal in raw mode sends them.
package struct LineBuffer: Sendable {
  /// What a key led to.
  package enum Outcome: Hashable, Sendable {
    /// The line looks different, perhaps.
    case edited
    /// The line is complete.
    case entered(String)
    /// What may stand here is asked for.
    case completion
    /// The line is given up (control-C).
    case cancelled
    /// There is no more (control-D on an empty line).
    case ended
  }

  package private(set) var characters: [Character] = []
  /// How many characters stand before the cursor.
  package private(set) var cursor = 0
  private var history: [String] = []
  /// Which line of the history is shown; the number of lines for the new one.
  private var shown = 0
  private var draft: [Character] = []
  /// Bytes of a key that is not complete: an escape sequence, or a character of several bytes.
  private var pending: [UInt8] = []

  private static let historyMaximum = 1000

  package init() {}

  /// The line as it stands.
  package var text: String { String(characters) }

  /// The line up to the cursor.
  package var beforeCursor: String { String(characters[..<cursor]) }

  /// Takes a byte from the terminal.
  package mutating func take(_ byte: UInt8) -> Outcome {
    if !pending.isEmpty {
      pending.append(byte)
      return pending[0] == 0x1b ? takeEscape() : takeCharacter()
    }
    switch byte {
    case 0x0d, 0x0a: return enter()
    case 0x09: return .completion
    case 0x03:
      reset()
      return .cancelled
    case 0x04:
      if characters.isEmpty { return .ended }
      if cursor < characters.count { characters.remove(at: cursor) }
    case 0x01: cursor = 0
    case 0x05: cursor = characters.count
    case 0x02: cursor = max(0, cursor - 1)
    case 0x06: cursor = min(characters.count, cursor + 1)
    case 0x0b: characters.removeSubrange(cursor...)
    case 0x0e: recall(shown + 1)
    case 0x10: recall(shown - 1)
    case 0x15:
      characters.removeSubrange(..<cursor)
      cursor = 0
    case 0x17: removeWord()
    case 0x08, 0x7f:
      if cursor > 0 {
        cursor -= 1
        characters.remove(at: cursor)
      }
    case 0x1b: pending = [byte]
    case 0..<0x20: break
    default:
      pending = [byte]
      return takeCharacter()
    }
    return .edited
  }

  /// Puts text in at the cursor, as completion does.
  package mutating func insert(_ text: String) {
    characters.insert(contentsOf: text, at: cursor)
    cursor += text.count
  }

  private mutating func enter() -> Outcome {
    let line = text
    if !line.isEmpty, history.last != line {
      if history.count == LineBuffer.historyMaximum { history.removeFirst() }
      history.append(line)
    }
    reset()
    return .entered(line)
  }

  private mutating func reset() {
    characters = []
    cursor = 0
    draft = []
    shown = history.count
  }

  private mutating func recall(_ number: Int) {
    guard (0...history.count).contains(number) else { return }
    if shown == history.count { draft = characters }
    shown = number
    characters = number == history.count ? draft : Array(history[number])
    cursor = characters.count
  }

  private mutating func removeWord() {
    var start = cursor
    while start > 0, characters[start - 1] == " " { start -= 1 }
    while start > 0, characters[start - 1] != " " { start -= 1 }
    characters.removeSubrange(start..<cursor)
    cursor = start
  }

  private mutating func takeCharacter() -> Outcome {
    // The first byte says how many belong to the character (RFC 3629 section 3).
    let length = pending[0] < 0x80 ? 1 : pending[0] < 0xe0 ? 2 : pending[0] < 0xf0 ? 3 : 4
    guard pending.count >= length else { return .edited }
    insert(String(decoding: pending, as: UTF8.self))
    pending = []
    return .edited
  }

  /// Cursor keys as ECMA-48 control sequences; what is not known is passed over.
  private mutating func takeEscape() -> Outcome {
    guard pending.count >= 3 else {
      if pending.count == 2, pending[1] != UInt8(ascii: "["), pending[1] != UInt8(ascii: "O") {
        pending = []
      }
      return .edited
    }
    guard let last = pending.last, (0x40...0x7e).contains(last) || pending.count > 16 else {
      return .edited
    }
    let sequence = String(decoding: pending.dropFirst(2), as: UTF8.self)
    pending = []
    switch sequence {
    case "A": recall(shown - 1)
    case "B": recall(shown + 1)
    case "C": cursor = min(characters.count, cursor + 1)
    case "D": cursor = max(0, cursor - 1)
    case "H", "1~": cursor = 0
    case "F", "4~": cursor = characters.count
    case "3~": if cursor < characters.count { characters.remove(at: cursor) }
    default: break
    }
    return .edited
  }
}

/// The longest text that all of some texts begin with.
package func commonPrefix(_ texts: [String]) -> String {
  guard var prefix = texts.first else { return "" }
  for text in texts {
    while !text.hasPrefix(prefix) { prefix.removeLast() }
  }
  return prefix
}

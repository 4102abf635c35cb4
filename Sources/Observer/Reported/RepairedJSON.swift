import Wire

/// Repairs JSON that is cut off, contains `NaN`, has several values in a row, or has other text
/// around it.
///
/// The result is valid JSON: several values become a list, values that JSON cannot express become
/// null, and everything from the first damage on is left out.
package struct RepairedJSON: Sendable {
  /// The values as one JSON value.
  package private(set) var text: [UInt8] = []
  /// Sentences about what was left out.
  package private(set) var notes: [String] = []

  private let bytes: [UInt8]
  private var place = 0
  /// The brackets that close the open lists and objects.
  private var open: [UInt8] = []
  /// The length of the part of `text` that is valid JSON once these brackets close it.
  private var valid = (length: 0, open: [UInt8]())
  private var valueCount = 0

  /// The maximum depth of lists and objects.
  private static let depthMaximum = 60
  /// The maximum length of other text before the first value, such as the fence around pasted code.
  private static let leadMaximum = 4096

  /// Repairs JSON; fails if no list or object begins in its first 4 KiB.
  package init?(_ bytes: [UInt8]) {
    self.bytes = bytes
    text.reserveCapacity(bytes.count + 16)
    guard
      let start = bytes.prefix(Self.leadMaximum).firstIndex(where: {
        $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "[")
      })
    else { return nil }
    place = start
    text.append(UInt8(ascii: "["))
    while place < bytes.count {
      skipSpace()
      guard let byte = current, byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") else {
        break
      }
      if valueCount > 0 { text.append(UInt8(ascii: ",")) }
      valueCount += 1
      guard value() else {
        text.removeSubrange(valid.length...)
        text += valid.open.reversed()
        notes.append(
          place < bytes.count
            ? "damaged at byte \(place): what came before is used"
            : "cut off at its end: what came before is used")
        place = bytes.count
        break
      }
    }
    let rest = bytes[min(place, bytes.count)...].count { !Self.isSpace($0) }
    if rest > 0 {
      notes.append("\(counted(UInt64(rest), "byte")) after the JSON are left out")
    }
    if valueCount == 1 { text.removeFirst() } else { text.append(UInt8(ascii: "]")) }
  }

  private var current: UInt8? { place < bytes.count ? bytes[place] : nil }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0d).contains(byte)
  }

  private mutating func skipSpace() {
    while let byte = current, Self.isSpace(byte) { place += 1 }
  }

  /// Copies a value with everything in it; returns false if the text is damaged.
  private mutating func value() -> Bool {
    var needsValue = true
    repeat {
      skipSpace()
      guard let byte = current else { return false }
      if needsValue {
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
          guard open.count < Self.depthMaximum else { return false }
          text.append(byte)
          open.append(byte == UInt8(ascii: "{") ? UInt8(ascii: "}") : UInt8(ascii: "]"))
          place += 1
          valid = (text.count, open)
          guard let isFilled = hasNext(isFirst: true) else { return false }
          needsValue = isFilled
          continue
        case UInt8(ascii: "\""): guard string() else { return false }
        default: guard word() else { return false }
        }
        valid = (text.count, open)
        needsValue = false
      } else {
        guard let isFilled = hasNext(isFirst: false) else { return false }
        needsValue = isFilled
      }
    } while !open.isEmpty
    return true
  }

  /// Moves on to the next item of the innermost list or object, copying its comma and its member
  /// name; returns false at the end of the list or object, and nil if the text is damaged.
  private mutating func hasNext(isFirst: Bool) -> Bool? {
    guard let end = open.last else { return false }
    skipSpace()
    var hasComma = isFirst
    while !isFirst, current == UInt8(ascii: ",") {
      hasComma = true
      place += 1
      skipSpace()
    }
    guard let byte = current else { return nil }
    // JavaScript, unlike JSON, allows a comma before the end.
    if byte == end {
      text.append(end)
      open.removeLast()
      place += 1
      valid = (text.count, open)
      return false
    }
    guard hasComma else { return nil }
    if !isFirst { text.append(UInt8(ascii: ",")) }
    guard end == UInt8(ascii: "}") else { return true }
    guard byte == UInt8(ascii: "\""), string() else { return nil }
    skipSpace()
    guard current == UInt8(ascii: ":") else { return nil }
    text.append(UInt8(ascii: ":"))
    place += 1
    return true
  }

  /// Copies a string, escaping control characters in it; returns false if the text is damaged.
  private mutating func string() -> Bool {
    text.append(UInt8(ascii: "\""))
    place += 1
    while let byte = current {
      place += 1
      switch byte {
      case UInt8(ascii: "\""):
        text.append(byte)
        return true
      case UInt8(ascii: "\\"):
        guard let escaped = current else { return false }
        let isKnown =
          escaped == UInt8(ascii: "u")
          ? hasFourDigits(after: place) : "\"\\/bfnrt".utf8.contains(escaped)
        // A backslash that begins no escape stands for itself, as in Windows paths inserted by
        // hand.
        text += isKnown ? [byte, escaped] : [byte, byte]
        if isKnown { place += 1 }
      case 0..<0x20:
        text += Array("\\u00".utf8)
        text += [byte >> 4, byte & 15].map { $0 < 10 ? 0x30 + $0 : 0x57 + $0 }
      default: text.append(byte)
      }
    }
    return false
  }

  private func hasFourDigits(after place: Int) -> Bool {
    place + 5 <= bytes.count
      && bytes[(place + 1)..<(place + 5)].allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
  }

  /// Copies a number, `true`, `false` or `null`; null replaces values that JSON cannot express.
  ///
  /// Returns false if the text is damaged.
  private mutating func word() -> Bool {
    let start = place
    while let byte = current, !Self.isSpace(byte), !",:]}[{\"".utf8.contains(byte) { place += 1 }
    // A word that the file's end may have cut off is not used.
    guard place > start, place < bytes.count else { return false }
    let word = String(decoding: bytes[start..<place], as: UTF8.self)
    switch word {
    case "true", "false", "null": text += word.utf8
    case "NaN", "Infinity", "-Infinity", "+Infinity", "undefined", "nan", "inf", "-inf":
      text += "null".utf8
    default:
      if let integer = Int64(word) {
        text += String(integer).utf8
      } else if let number = Double(word) {
        text += JSONText.number(number).text.utf8
      } else {
        place = start
        return false
      }
    }
    return true
  }
}

import Wire

/// An HTML element with its attributes.
struct MarkupElement: Sendable {
  var name = ""
  var attributes: [(name: String, value: String)] = []
  /// The setting that an enclosing element is about.
  var parentPreference: String?

  subscript(name: String) -> String? { attributes.first { $0.name == name }?.value }
}

/// Scans HTML piece by piece, without building a tree: browsers save well-formed pages, and any
/// other input is read as far as possible.
struct MarkupScanner {
  enum Piece {
    case element(MarkupElement)
    /// A text, with the element that directly contains it.
    case text(String, MarkupElement)
    case end(String)
  }

  private var bytes: [UInt8]
  private var place = 0
  private var open: [MarkupElement] = []

  /// Elements without an end tag.
  private static let empty: Set<String> = [
    "br", "hr", "img", "input", "link", "meta", "path", "rect",
  ]
  /// The maximum nesting depth of elements.
  private static let deepest = 500

  init(_ text: String) { bytes = Array(text.utf8) }

  mutating func next() -> Piece? {
    while place < bytes.count {
      guard bytes[place] == UInt8(ascii: "<") else { return text() }
      place += 1
      if bytes[place...].starts(with: Array("!--".utf8)) {
        skip(past: "-->")
      } else if place < bytes.count, [UInt8(ascii: "!"), UInt8(ascii: "?")].contains(bytes[place]) {
        skip(past: ">")
      } else if place < bytes.count, bytes[place] == UInt8(ascii: "/") {
        place += 1
        let name = word()
        skip(past: ">")
        if let last = open.lastIndex(where: { $0.name == name }) {
          open.removeSubrange(last...)
        }
        return .end(name)
      } else {
        return element()
      }
    }
    return nil
  }

  private mutating func text() -> Piece {
    let start = place
    place = bytes[place...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
    return .text(Self.plain(bytes[start..<place]), open.last ?? MarkupElement())
  }

  private mutating func element() -> Piece {
    var element = MarkupElement()
    element.name = word()
    while place < bytes.count, bytes[place] != UInt8(ascii: ">") {
      let name = word()
      guard !name.isEmpty else {
        place += 1
        continue
      }
      guard place < bytes.count, bytes[place] == UInt8(ascii: "=") else {
        element.attributes.append((name, ""))
        continue
      }
      place += 1
      element.attributes.append((name, value()))
    }
    let isClosed = place > 0 && place < bytes.count && bytes[place - 1] == UInt8(ascii: "/")
    place += 1
    element.parentPreference = open.last.flatMap { $0["data-pref-path"] ?? $0.parentPreference }
    if !isClosed, !Self.empty.contains(element.name), open.count < Self.deepest {
      open.append(element)
    }
    return .element(element)
  }

  /// Returns a name in lower case and advances past it.
  private mutating func word() -> String {
    let start = place
    while place < bytes.count, !" \t\r\n/>=\"'<".utf8.contains(bytes[place]) { place += 1 }
    return String(decoding: bytes[start..<place], as: UTF8.self).lowercased()
  }

  private mutating func value() -> String {
    guard place < bytes.count else { return "" }
    let quote = bytes[place]
    guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return word() }
    let start = place + 1
    let end = bytes[start...].firstIndex(of: quote) ?? bytes.count
    place = min(end + 1, bytes.count)
    return Self.plain(bytes[start..<end])
  }

  private mutating func skip(past mark: String) {
    let mark = Array(mark.utf8)
    while place < bytes.count, !bytes[place...].starts(with: mark) { place += 1 }
    place = min(place + mark.count, bytes.count)
  }

  /// Returns a text with character references replaced.
  private static func plain(_ bytes: ArraySlice<UInt8>) -> String {
    var text = String(decoding: bytes, as: UTF8.self)
    guard text.contains("&") else { return text }
    for (name, character) in [
      ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", " "), ("&#39;", "'"),
      ("&amp;", "&"),
    ] { text = text.replacing(name, with: character) }
    return text
  }
}

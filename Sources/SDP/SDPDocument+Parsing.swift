extension SDPDocument {
  /// How many bytes a description may have: room for a browser's offer with a hundred sections.
  package static let byteLimit = 1024 * 1024
  /// How many lines a description may have.
  package static let lineLimit = 16384
  /// How many m-sections a description may have.
  package static let sectionLimit = 512
  /// How many formats an m-section may have: payload types have 7 bits.
  package static let formatLimit = 128

  /// Parses a description with CRLF or LF line ends, the last of which may be missing.
  package init(parsing text: String) throws(SDPError) {
    var parser = SDPParser()
    self = try parser.parse(text)
  }
}

extension SDPFragment {
  /// Parses a fragment with CRLF or LF line ends, the last of which may be missing.
  package init(parsing text: String) throws(SDPError) {
    var parser = SDPParser()
    self = try parser.parseFragment(text)
  }
}

/// Reads a description line by line.
private struct SDPParser {
  /// A line with its number, its letter, and all after the equals sign.
  private struct Line {
    var number: Int
    var type: UInt8
    var value: String
  }

  /// What may stand once in the scope that is being read, with the value it has.
  private var loners: [(word: String, attribute: SDPAttribute)] = []
  private var mids: Set<String> = []

  mutating func parse(_ text: String) throws(SDPError) -> SDPDocument {
    let lines = try split(text)
    guard lines.count >= 3 else {
      throw SDPError(line: lines.count, reason: "the description ends before its s= line")
    }
    try expect("v", "0", in: lines[0])
    try expect("o", in: lines[1])
    try expect("s", in: lines[2])
    guard let origin = Origin(lines[1].value) else {
      throw SDPError(line: lines[1].number, reason: "o= must read \(Origin.syntax)")
    }
    var document = SDPDocument(
      origin: origin, sessionName: lines[2].value, lines: [], sections: [])
    (document.lines, document.sections) = try body(lines[3...])
    guard document.lines.contains(where: { $0.type == UInt8(ascii: "t") }) else {
      throw SDPError(line: 0, reason: "the session has no t= line")
    }
    return document
  }

  /// Reads a fragment: a description's attributes and m-sections without what names the session.
  mutating func parseFragment(_ text: String) throws(SDPError) -> SDPFragment {
    let lines = try split(text)
    for line in lines where line.type != UInt8(ascii: "a") && line.type != UInt8(ascii: "m") {
      let letter = String(UnicodeScalar(line.type))
      throw SDPError(line: line.number, reason: "\(letter)= does not belong into a fragment")
    }
    var fragment = SDPFragment()
    (fragment.lines, fragment.sections) = try body(lines[...])
    for section in fragment.sections where section.mid == nil {
      throw SDPError(line: 0, reason: "the m-section \(section.kind.rawValue) has no a=mid")
    }
    return fragment
  }

  /// Reads the lines after `s=`: those of the session, then the m-sections.
  private mutating func body(_ lines: ArraySlice<Line>) throws(SDPError) -> (
    lines: [SDPLine], sections: [SDPSection]
  ) {
    var own: [SDPLine] = []
    var sections: [SDPSection] = []
    for line in lines {
      switch line.type {
      case UInt8(ascii: "m"):
        loners.removeAll(keepingCapacity: true)
        guard sections.count < SDPDocument.sectionLimit else {
          throw SDPError(
            line: line.number, reason: "more than \(SDPDocument.sectionLimit) m-sections")
        }
        sections.append(try section(line))
      case UInt8(ascii: "v"), UInt8(ascii: "o"), UInt8(ascii: "s"):
        let letter = String(UnicodeScalar(line.type))
        throw SDPError(line: line.number, reason: "\(letter)= stands a second time")
      default:
        let content = try content(line, isInSection: !sections.isEmpty)
        if sections.isEmpty {
          own.append(content)
        } else {
          sections[sections.count - 1].lines.append(content)
        }
      }
    }
    return (own, sections)
  }

  private func expect(_ letter: UnicodeScalar, _ value: String? = nil, in line: Line)
    throws(SDPError)
  {
    guard UnicodeScalar(line.type) == letter, value == nil || line.value == value else {
      throw SDPError(line: line.number, reason: "\(letter)=\(value ?? "...") must stand here")
    }
  }

  private func split(_ text: String) throws(SDPError) -> [Line] {
    guard text.utf8.count <= SDPDocument.byteLimit else {
      throw SDPError(
        line: 0, reason: "the description is longer than \(SDPDocument.byteLimit) bytes")
    }
    let bytes = Array(text.utf8)
    var lines: [Line] = []
    var number = 0
    var blank: Int?
    var start = 0
    while start < bytes.count {
      number += 1
      var end = start
      while end < bytes.count, bytes[end] != UInt8(ascii: "\n") { end += 1 }
      let next = end + 1
      if end > start, bytes[end - 1] == UInt8(ascii: "\r") { end -= 1 }
      if end == start {
        // Blank lines are tolerated at the end only, where copying a text through forms puts them.
        blank = blank ?? number
      } else {
        if let blank { throw SDPError(line: blank, reason: "the line is empty") }
        guard number <= SDPDocument.lineLimit else {
          throw SDPError(line: number, reason: "more than \(SDPDocument.lineLimit) lines")
        }
        lines.append(try line(bytes, start..<end, number))
      }
      start = next
    }
    return lines
  }

  private func line(_ bytes: [UInt8], _ range: Range<Int>, _ number: Int) throws(SDPError) -> Line {
    let type = bytes[range.lowerBound]
    guard range.count >= 2, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(type),
      bytes[range.lowerBound + 1] == UInt8(ascii: "=")
    else { throw SDPError(line: number, reason: "the line does not begin like x=") }
    var index = range.lowerBound
    while index < range.upperBound {
      guard bytes[index] != 0, bytes[index] != UInt8(ascii: "\r") else {
        throw SDPError(line: number, reason: "the line contains a control character")
      }
      index += 1
    }
    let value = bytes[(range.lowerBound + 2)..<range.upperBound]
    return Line(number: number, type: type, value: String(decoding: value, as: UTF8.self))
  }

  private func section(_ line: Line) throws(SDPError) -> SDPSection {
    let fields = line.value.fields
    guard fields.count >= 4 else {
      throw SDPError(line: line.number, reason: "m= must read KIND PORT PROTOCOL FORMATS")
    }
    guard fields.count - 3 <= SDPDocument.formatLimit else {
      throw SDPError(line: line.number, reason: "more than \(SDPDocument.formatLimit) formats")
    }
    let (portText, countText) =
      fields[1].cut(at: UInt8(ascii: "/")).map { ($0.head, Optional($0.tail)) } ?? (fields[1], nil)
    guard let port = UInt16(decimal: portText) else {
      throw SDPError(line: line.number, reason: "the port of m= is not a port")
    }
    var section = SDPSection(
      kind: SectionKind(rawValue: String(fields[0])), port: port, transport: String(fields[2]),
      formats: fields[3...].map { String($0) })
    if let countText {
      guard let count = UInt16(decimal: countText), count > 0 else {
        throw SDPError(line: line.number, reason: "the number of ports of m= is not a number")
      }
      section.portCount = count
    }
    return section
  }

  private mutating func content(_ line: Line, isInSection: Bool) throws(SDPError) -> SDPLine {
    switch line.type {
    case UInt8(ascii: "a"): return .attribute(try attribute(line, isInSection: isInSection))
    case UInt8(ascii: "c"):
      guard ConnectionData(line.value) != nil else {
        throw SDPError(line: line.number, reason: "c= must read \(ConnectionData.syntax)")
      }
      return .other(type: line.type, value: line.value)
    default: return .other(type: line.type, value: line.value)
    }
  }

  private mutating func attribute(_ line: Line, isInSection: Bool) throws(SDPError)
    -> SDPAttribute
  {
    let attribute =
      if let (name, value) = line.value.cut(at: UInt8(ascii: ":")) {
        SDPAttribute(AttributeName(rawValue: String(name)), String(value))
      } else {
        SDPAttribute(AttributeName(rawValue: line.value))
      }
    guard !attribute.name.rawValue.isEmpty else {
      throw SDPError(line: line.number, reason: "the attribute has no name")
    }
    guard let rule = AttributeRule.rule(for: attribute.name) else { return attribute }
    if let complaint = rule.complaint(about: attribute) {
      throw SDPError(line: line.number, reason: complaint)
    }
    guard let word = rule.loner else { return attribute }
    if let other = loners.first(where: { $0.word == word }) {
      // The same line twice says nothing else than once.
      guard other.attribute == attribute else {
        throw SDPError(line: line.number, reason: "a second, different \(word)")
      }
      return attribute
    }
    loners.append((word, attribute))
    if attribute.name == .mid, isInSection, let mid = attribute.value {
      guard mids.insert(mid).inserted else {
        throw SDPError(line: line.number, reason: "another m-section has the mid \(mid)")
      }
    }
    return attribute
  }
}

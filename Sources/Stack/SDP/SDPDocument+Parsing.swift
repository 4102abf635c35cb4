extension SDPDocument {
  /// The largest description in bytes: room for a browser's offer with a hundred sections.
  package static let byteLimit = 1024 * 1024
  /// The maximum number of lines in a description.
  package static let lineLimit = 16384
  /// The maximum number of m-sections in a description.
  package static let sectionLimit = 512
  /// The maximum number of formats in an m-section; payload types have 7 bits.
  package static let formatLimit = 128

  /// The maximum number of remarks stored.
  static let remarksLimit = 32

  /// Parses a description.
  ///
  /// Lines end with CRLF, LF or CR; the last line end may be missing. Blank lines, comments and
  /// indentation, which editors and templates leave behind, are skipped. A line that cannot be
  /// parsed is skipped and listed in `remarks`, unless everything depends on it: the lines before
  /// the first attribute, `m=` lines, and the mids of m-sections.
  package init(parsing text: String) throws(SDPError) {
    var parser = SDPParser()
    self = try parser.parse(text)
  }
}

extension SDPFragment {
  /// Parses a fragment, in which an unparsable line is an error, unlike in a description.
  package init(parsing text: String) throws(SDPError) {
    var parser = SDPParser()
    self = try parser.parseFragment(text)
  }
}

/// Parses a description line by line.
private struct SDPParser {
  /// A line's number, type, and everything after the equals sign.
  private struct Line {
    var number: Int
    var type: UInt8
    var value: String
  }

  /// The attributes found in the current scope that may occur only once there, with their values.
  private var loners: [(word: String, attribute: SDPAttribute)] = []
  private var mids: Set<String> = []
  private var remarks: [SDPError] = []
  /// The numbers of skipped lines, ascending.
  private var omitted: [Int] = []

  private mutating func omit(_ line: Int, _ reason: String? = nil) {
    omitted.append(line)
    if let reason, remarks.count < SDPDocument.remarksLimit {
      remarks.append(SDPError(line: line, reason: reason))
    }
  }

  mutating func parse(_ text: String) throws(SDPError) -> SDPDocument {
    let lines = try split(text)
    guard lines.count >= 3 else {
      // If nothing was parsed, report the first line's error instead.
      if lines.isEmpty, let remark = remarks.first { throw remark }
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
    document.remarks = remarks.sorted { $0.line < $1.line }
    document.omittedLines = omitted.sorted()
    return document
  }

  /// Parses a fragment: attributes and m-sections without session lines.
  mutating func parseFragment(_ text: String) throws(SDPError) -> SDPFragment {
    let lines = try split(text)
    for line in lines where line.type != UInt8(ascii: "a") && line.type != UInt8(ascii: "m") {
      let letter = String(UnicodeScalar(line.type))
      throw SDPError(line: line.number, reason: "\(letter)= does not belong into a fragment")
    }
    var fragment = SDPFragment()
    (fragment.lines, fragment.sections) = try body(lines[...])
    // The sender of a fragment sees the error in the response and can send a corrected fragment.
    if let remark = remarks.min(by: { $0.line < $1.line }) { throw remark }
    for section in fragment.sections where section.mid == nil {
      throw SDPError(line: 0, reason: "the m-section \(section.kind.rawValue) has no a=mid")
    }
    return fragment
  }

  /// Parses the lines after `s=`: session lines, then m-sections.
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
        guard let content = try content(line, isInSection: !sections.isEmpty) else { continue }
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

  private mutating func split(_ text: String) throws(SDPError) -> [Line] {
    guard text.utf8.count <= SDPDocument.byteLimit else {
      throw SDPError(
        line: 0, reason: "the description is longer than \(SDPDocument.byteLimit) bytes")
    }
    let bytes = Array(text.utf8)
    let (newline, carriageReturn) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))
    var lines: [Line] = []
    var number = 0
    // Skip a byte order mark.
    var start = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
    while start < bytes.count {
      number += 1
      guard number <= SDPDocument.lineLimit else {
        throw SDPError(line: number, reason: "more than \(SDPDocument.lineLimit) lines")
      }
      var end = start
      while end < bytes.count, bytes[end] != newline, bytes[end] != carriageReturn { end += 1 }
      var begin = start
      while begin < end, bytes[begin] == UInt8(ascii: " ") || bytes[begin] == UInt8(ascii: "\t") {
        begin += 1
      }
      if let line = line(bytes, begin..<end, number) { lines.append(line) }
      start = end + 1
      // CRLF is one line end; so is CRCRLF, which careless conversions produce.
      if end < bytes.count, bytes[end] == carriageReturn {
        let rest = bytes[start...].prefix(2)
        if rest.first == newline {
          start += 1
        } else if rest.elementsEqual([carriageReturn, newline]) {
          start += 2
        }
      }
    }
    return lines
  }

  /// Splits a line into type and value; nil for a line to skip: blank, a comment, or malformed.
  private mutating func line(_ bytes: [UInt8], _ range: Range<Int>, _ number: Int) -> Line? {
    guard let type = bytes[range].first, type != UInt8(ascii: "#"), type != UInt8(ascii: ";"),
      !bytes[range].starts(with: Array("//".utf8))
    else {
      omit(number)
      return nil
    }
    guard range.count >= 2, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(type),
      bytes[range.lowerBound + 1] == UInt8(ascii: "=")
    else {
      omit(number, "the line does not begin like x=")
      return nil
    }
    guard !bytes[range].contains(0) else {
      omit(number, "the line contains a control character")
      return nil
    }
    let value = bytes[(range.lowerBound + 2)..<range.upperBound]
    return Line(number: number, type: type, value: String(decoding: value, as: UTF8.self))
  }

  private func section(_ line: Line) throws(SDPError) -> SDPSection {
    let fields = line.value.fields
    // Some peers list no formats in a rejected section.
    guard fields.count >= 4 || fields.count == 3 && fields[1] == "0" else {
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

  /// Parses a line; nil if it is skipped.
  private mutating func content(_ line: Line, isInSection: Bool) throws(SDPError) -> SDPLine? {
    switch line.type {
    case UInt8(ascii: "a"):
      return try attribute(line, isInSection: isInSection).map { .attribute($0) }
    case UInt8(ascii: "c") where ConnectionData(line.value) == nil:
      omit(line.number, "c= must read \(ConnectionData.syntax)")
      return nil
    default: return .other(type: line.type, value: line.value)
    }
  }

  private mutating func attribute(_ line: Line, isInSection: Bool) throws(SDPError)
    -> SDPAttribute?
  {
    var attribute =
      if let (name, value) = line.value.cut(at: UInt8(ascii: ":")) {
        SDPAttribute(AttributeName(rawValue: String(name)), String(value))
      } else {
        SDPAttribute(AttributeName(rawValue: line.value))
      }
    if attribute.value == nil {
      attribute.name = AttributeName(rawValue: line.value.withoutSpacesAround)
    }
    guard !attribute.name.rawValue.isEmpty else {
      omit(line.number, "the attribute has no name")
      return nil
    }
    guard let rule = AttributeRule.rule(for: attribute.name) else { return attribute }
    if let complaint = rule.complaint(about: attribute) {
      attribute.value = attribute.value?.withoutSpacesAround
      guard rule.complaint(about: attribute) == nil else {
        omit(line.number, complaint)
        return nil
      }
    }
    guard let word = rule.loner else { return attribute }
    if let other = loners.first(where: { $0.word == word }) {
      // An identical repetition is harmless.
      guard other.attribute == attribute else {
        omit(line.number, "a second, different \(word)")
        return nil
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

// MARK: - Printing

extension SDPDocument {
  /// The description as text; every line ends with CRLF (RFC 8866 section 5).
  package var text: String {
    var text = "v=0\r\no=\(origin.text)\r\ns=\(sessionName)\r\n"
    for line in lines { text += line.text + "\r\n" }
    for section in sections { text += section.text }
    return text
  }
}

extension SDPDocument {
  /// Returns the line number, counted from 1, where an m-section starts; the last line if there is
  /// no such section.
  ///
  /// Skipped lines are counted too, so that the number refers to the text that was parsed.
  package func line(ofSection index: Int) -> Int {
    // The v=, o= and s= lines, the session lines and the earlier sections.
    let head = 3 + lines.count
    var number =
      sections.indices.contains(index)
      ? sections[..<index].reduce(head + 1) { $0 + 1 + $1.lines.count }
      : sections.reduce(head) { $0 + 1 + $1.lines.count }
    for omitted in omittedLines where omitted <= number { number += 1 }
    return number
  }
}

extension SDPSection {
  /// The section as text; every line ends with CRLF.
  package var text: String {
    let count = portCount.map { "/\($0)" } ?? ""
    let list = formats.joined(separator: " ")
    var text = "m=\(kind.rawValue) \(port)\(count) \(transport) \(list)\r\n"
    for line in lines { text += line.text + "\r\n" }
    return text
  }
}

/// The reason that a session description is invalid.
public struct SDPError: Error, Hashable, Sendable {
  /// The line, counted from 1; 0 for the text as a whole.
  public var line: Int
  /// What is wrong with the line, as text.
  public var reason: String

  /// Creates an error; `line` is counted from 1, or 0 for the text as a whole.
  public init(line: Int, reason: String) {
    self.line = line
    self.reason = reason
  }
}

extension SDPError: CustomStringConvertible {
  /// The error as text: `line 7: ...`, or only the reason if no single line is to blame.
  public var description: String { line > 0 ? "line \(line): \(reason)" : reason }
}

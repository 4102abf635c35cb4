extension SDPDocument {
  /// The text of the description; every line ends with CRLF (RFC 8866 section 5).
  package var text: String {
    var text = "v=0\r\no=\(origin.text)\r\ns=\(sessionName)\r\n"
    for line in lines { text += line.text + "\r\n" }
    for section in sections { text += section.text }
    return text
  }
}

extension SDPDocument {
  /// The line number, counted from 1, where an m-section starts; that of the last line if there is
  /// no such section.
  ///
  /// Skipped lines count, so the number refers to the parsed text.
  package func line(ofSection index: Int) -> Int {
    // The v=, o= and s= lines, the session's lines and those of earlier sections.
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
  /// The text of the section; every line ends with CRLF.
  package var text: String {
    let count = portCount.map { "/\($0)" } ?? ""
    let list = formats.joined(separator: " ")
    var text = "m=\(kind.rawValue) \(port)\(count) \(transport) \(list)\r\n"
    for line in lines { text += line.text + "\r\n" }
    return text
  }
}

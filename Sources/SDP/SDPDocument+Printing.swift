extension SDPDocument {
  /// The text of the description; every line ends with CRLF (RFC 8866 section 5).
  package var text: String {
    var text = "v=0\r\no=\(origin.text)\r\ns=\(sessionName)\r\n"
    for line in lines { text += line.text + "\r\n" }
    for section in sections { text += section.text }
    return text
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

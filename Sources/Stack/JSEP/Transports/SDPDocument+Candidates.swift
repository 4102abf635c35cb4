import SDP
import Wire

extension SDPDocument {
  /// Returns the description with the candidates gathered so far (W3C localDescription).
  ///
  /// The candidates of a transport are in the first section that uses it and is not off; every such
  /// section has its default address (RFC 9143 section 7.3.2).
  func filled(with transports: [LocalTransport]) -> SDPDocument {
    var document = self
    var done: [Int] = []
    for index in sections.indices where !sections[index].isRejected {
      var section = sections[index]
      // Candidates of another ICE generation do not belong here.
      guard
        let transport = transports.first(where: {
          $0.usernameFragment == section.iceUsernameFragment
        })
      else { continue }
      if let address = transport.defaultAddress, !section.has(.bundleOnly) {
        section.port = address.port
        section.connection = ConnectionData(address.ip)
      }
      if !done.contains(transport.number) {
        var lines = transport.candidates.map { SDPLine(attributeText: $0) }
        if transport.gatheringIsComplete { lines.append(SDPLine(.endOfCandidates)) }
        section.lines.insert(contentsOf: lines, at: 1)
        done.append(transport.number)
      }
      document.sections[index] = section
    }
    return document
  }
}

extension SDPLine {
  init(attributeText text: String) {
    if let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) {
      let value = text[text.utf8.index(after: colon)...]
      self.init(AttributeName(rawValue: String(text[..<colon])), String(value))
    } else {
      self.init(AttributeName(rawValue: text))
    }
  }
}

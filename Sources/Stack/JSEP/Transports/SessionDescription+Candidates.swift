import SDP

extension SDPDocument {
  /// The ICE username fragments of an m-section: its own, that of the session, or else those of the
  /// sections that it shares a transport with (RFC 9143 section 7.1.3).
  func usernameFragments(atMLine index: Int?) -> [String] {
    if let index {
      guard sections.indices.contains(index) else { return [] }
      if let own = sections[index].iceUsernameFragment ?? iceUsernameFragment { return [own] }
    }
    return sections.compactMap(\.iceUsernameFragment) + [iceUsernameFragment].compactMap(\.self)
  }
}

extension SessionDescription {
  /// How many candidates that came later a description keeps.
  private static let trickledMaximum = 200

  /// Adds an attribute at the end of an m-section, unless the section has it; the rest of the text
  /// stays as it was given.
  mutating func append(attribute text: String, toSection index: Int) {
    let line = Array("a=\(text)".utf8)
    let newline: [UInt8] = sdp.utf8.contains(0x0d) ? [0x0d, 0x0a] : [0x0a]
    var result: [UInt8] = []
    var section = -1
    var candidates = 0
    var isDone = false
    for given in sdp.utf8.split(separator: 0x0a) {
      let bare = given.last == 0x0d ? given.dropLast() : given
      guard !bare.isEmpty else { continue }
      if bare.starts(with: "m=".utf8) {
        if section == index, !isDone {
          result += line + newline
          isDone = true
        }
        section += 1
      }
      if section == index, bare.starts(with: "a=candidate:".utf8) {
        candidates += 1
        if candidates >= Self.trickledMaximum || bare.elementsEqual(line) { return }
      }
      result += Array(bare) + newline
    }
    guard isDone || section == index else { return }
    if !isDone { result += line + newline }
    sdp = String(decoding: result, as: UTF8.self)
  }

  /// Takes an attribute out of an m-section; the rest of the text stays as it was given.
  mutating func remove(attribute text: String, fromSection index: Int) {
    let line = Array("a=\(text)".utf8)
    var section = -1
    var result: [UInt8] = []
    for given in sdp.utf8.split(separator: 0x0a) {
      let bare = given.last == 0x0d ? given.dropLast() : given
      if bare.starts(with: "m=".utf8) { section += 1 }
      if section != index || !bare.elementsEqual(line) { result += Array(given) + [0x0a] }
    }
    sdp = String(decoding: result, as: UTF8.self)
  }
}

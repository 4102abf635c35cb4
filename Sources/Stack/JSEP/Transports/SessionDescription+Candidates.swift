import SDP

extension SDPDocument {
  /// The ICE username fragments of an m-section: its own, the session's, or else those of sections
  /// that share its transport (RFC 9143 section 7.1.3).
  func usernameFragments(atMLine index: Int?) -> [String] {
    if let index {
      guard sections.indices.contains(index) else { return [] }
      if let own = sections[index].iceUsernameFragment ?? iceUsernameFragment { return [own] }
    }
    return sections.compactMap(\.iceUsernameFragment) + [iceUsernameFragment].compactMap(\.self)
  }
}

extension SessionDescription {
  /// The most trickled candidates that a description stores.
  private static let trickledMaximum = 200

  /// Appends an attribute to an m-section unless it is there; the rest of the text is unchanged.
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

  /// Removes an attribute from an m-section; the rest of the text is unchanged.
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

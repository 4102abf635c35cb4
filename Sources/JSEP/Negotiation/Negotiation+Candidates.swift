import SDP
import Wire

// Candidates that the peer signals after its descriptions (W3C addIceCandidate).
extension Negotiation {
  /// How many candidates that came later a description keeps.
  static let trickledMaximum = 200

  /// Whether there is a description of the peer.
  package var hasRemoteDescription: Bool { pendingRemote != nil || currentRemote != nil }

  /// How many m-sections the peer's description has.
  package var remoteSectionCount: Int {
    (documents.pendingRemote ?? documents.currentRemote)?.sections.count ?? 0
  }

  /// Whether the m-section at an index is off, so that nothing is signaled for it.
  package func isOff(mLine index: Int) -> Bool {
    !slots.indices.contains(index) || slots[index].isDead
  }

  /// The username fragments that the peer's descriptions give an m-section, or any of them when no
  /// section is meant.
  package func remoteUsernameFragments(atMLine index: Int?) -> [String] {
    [documents.pendingRemote, documents.currentRemote].compactMap(\.self)
      .flatMap { $0.usernameFragments(atMLine: index) }
  }

  /// Puts a candidate into the peer's descriptions of its ICE generation, whose text applications
  /// can read (RFC 9429 sections 4.1.13 and 4.1.14).
  ///
  /// - Parameters:
  ///   - text: the text after `a=`.
  ///   - fragment: the username fragment of the generation.
  package mutating func keep(remoteCandidate text: String, atMLine index: Int, of fragment: String)
  {
    if let document = documents.pendingRemote,
      document.usernameFragments(atMLine: index).contains(fragment)
    {
      pendingRemote?.append(attribute: text, toSection: index)
    }
    if let document = documents.currentRemote,
      document.usernameFragments(atMLine: index).contains(fragment)
    {
      currentRemote?.append(attribute: text, toSection: index)
    }
  }
}

extension SDPDocument {
  /// The ICE username fragments of an m-section: its own, that of the session, or else those of the
  /// sections that it shares a transport with (RFC 9143 section 7.1.3).
  fileprivate func usernameFragments(atMLine index: Int?) -> [String] {
    if let index {
      guard sections.indices.contains(index) else { return [] }
      if let own = sections[index].iceUsernameFragment ?? iceUsernameFragment { return [own] }
    }
    return sections.compactMap(\.iceUsernameFragment) + [iceUsernameFragment].compactMap(\.self)
  }
}

extension SessionDescription {
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
        if candidates >= Negotiation.trickledMaximum || bare.elementsEqual(line) { return }
      }
      result += Array(bare) + newline
    }
    guard isDone || section == index else { return }
    if !isDone { result += line + newline }
    sdp = String(decoding: result, as: UTF8.self)
  }
}

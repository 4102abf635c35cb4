import SDP

/// The descriptions that were set: those of the last completed exchange, and of the one under way
/// (RFC 9429 section 3.2).
struct SignaledDescriptions {
  /// A description as it was set, with its parsed document; local ones without candidates.
  struct Entry {
    fileprivate(set) var description: SessionDescription
    let document: SDPDocument
  }

  private(set) var currentLocal: Entry?
  private(set) var pendingLocal: Entry?
  private(set) var currentRemote: Entry?
  private(set) var pendingRemote: Entry?

  /// The peer's latest description.
  var remote: Entry? { pendingRemote ?? currentRemote }

  /// The description that says which sections are off: the latest local one, or else the peer's.
  var latest: SDPDocument? { (pendingLocal ?? currentLocal ?? remote)?.document }

  var localUsernameFragments: [String] {
    [currentLocal, pendingLocal].compactMap(\.self).flatMap(\.document.sections)
      .compactMap(\.iceUsernameFragment)
  }

  mutating func pend(local description: SessionDescription, _ document: SDPDocument) {
    pendingLocal = Entry(description: description, document: document)
  }

  mutating func pend(remote description: SessionDescription, _ document: SDPDocument) {
    pendingRemote = Entry(description: description, document: document)
  }

  /// Completes an exchange with a local answer to the pending offer.
  mutating func complete(local answer: SessionDescription, _ document: SDPDocument) {
    currentRemote = pendingRemote
    currentLocal = Entry(description: answer, document: document)
    endExchange()
  }

  /// Completes an exchange with the peer's answer to the pending offer.
  mutating func complete(remote answer: SessionDescription, _ document: SDPDocument) {
    currentLocal = pendingLocal
    currentRemote = Entry(description: answer, document: document)
    endExchange()
  }

  /// Forgets what only the exchange under way needed.
  mutating func endExchange() {
    pendingLocal = nil
    pendingRemote = nil
  }

  /// Discards what is valid only during an exchange.
  mutating func add(remoteCandidate text: String, atMLine index: Int, of fragment: String) {
    if pendingRemote?.hasFragment(fragment, atMLine: index) == true {
      pendingRemote?.description.append(attribute: text, toSection: index)
    }
    if currentRemote?.hasFragment(fragment, atMLine: index) == true {
      currentRemote?.description.append(attribute: text, toSection: index)
    }
  }
}

extension SignaledDescriptions {
  /// Adds a remote candidate to the peer's descriptions of its ICE generation, which applications
  /// can read (RFC 9429 sections 4.1.13 and 4.1.14).
  mutating func remove(remoteCandidate text: String, atMLine index: Int) {
    pendingRemote?.description.remove(attribute: text, fromSection: index)
    currentRemote?.description.remove(attribute: text, fromSection: index)
  }
}

extension SignaledDescriptions.Entry {
  fileprivate func hasFragment(_ fragment: String, atMLine index: Int) -> Bool {
    document.usernameFragments(atMLine: index).contains(fragment)
  }
}

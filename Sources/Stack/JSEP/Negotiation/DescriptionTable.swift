import SDP

/// The descriptions that were set: by the last completed exchange, and by the current one (RFC 9429
/// section 3.2).
struct SignaledDescriptions {
  /// A description that was set, with its parsed document; local documents have no candidates.
  struct Entry {
    fileprivate(set) var description: SessionDescription
    let document: SDPDocument
  }

  private(set) var currentLocal: Entry?
  private(set) var pendingLocal: Entry?
  private(set) var currentRemote: Entry?
  private(set) var pendingRemote: Entry?

  /// The peer's latest description; nil before the first.
  var remote: Entry? { pendingRemote ?? currentRemote }

  /// The description that shows which sections are disabled: the latest local description, or else
  /// the peer's; nil before any was set.
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

  /// Discards the descriptions that are valid only during an exchange.
  mutating func endExchange() {
    pendingLocal = nil
    pendingRemote = nil
  }

  /// Adds a remote candidate to the peer's descriptions that state the candidate's username
  /// fragment, so that applications can read it there (RFC 9429 sections 4.1.13 and 4.1.14).
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
  /// Removes a withdrawn remote candidate from the peer's descriptions.
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

/// The description attributes of a W3C connection.
public enum DescriptionSlot: String, Hashable, Sendable, Codable, CaseIterable {
  /// W3C currentLocalDescription: set by the last completed exchange.
  case currentLocal
  /// W3C pendingLocalDescription: set by the current exchange.
  case pendingLocal
  /// W3C remoteDescription: the pending description, or else the current one.
  case remote
  /// W3C currentRemoteDescription: set by the last completed exchange.
  case currentRemote
  /// W3C pendingRemoteDescription: set by the current exchange.
  case pendingRemote
}

// MARK: - CreatedDescriptions

/// Local descriptions created so far: the one waiting to be set, the descriptions that may be set,
/// and the session version (RFC 9429 section 5.2.2).
struct CreatedDescriptions {
  /// A local description waiting to be set.
  struct Created {
    let description: SessionDescription
    /// The parsed description, without candidates.
    let document: SDPDocument
    /// The m-sections as they will be after the description is set.
    let slots: [SectionSlot]
    let bundling: Bundling
  }

  /// The session id in the `o=` line, below 2^62 (RFC 9429 section 5.2.1).
  let sessionID: UInt64
  /// The last offer or answer created, unless another description has been set since.
  private var waiting: Created?
  /// The text of the last offer and answer created since the state was stable (W3C
  /// [[LastCreatedOffer]], [[LastCreatedAnswer]]).
  private var texts: [SDPType: String] = [:]
  /// The last description created, even if it was never set or was rolled back.
  private var last: SDPDocument?
  private var version: UInt64 = 0

  init(sessionID: UInt64) { self.sessionID = sessionID }

  /// An empty description with this session id, to which sections are added.
  var blank: SDPDocument { SDPDocument(origin: Origin(sessionID: sessionID, sessionVersion: 0)) }

  /// Stores a description until it is set, with a new version if it differs from the last one.
  mutating func store(
    _ made: SDPDocument, _ slots: [SectionSlot], _ bundling: Bundling, _ type: SDPType,
    _ transports: [LocalTransport]
  ) -> SessionDescription {
    var document = made
    if last?.lines != document.lines || last?.sections != document.sections { version += 1 }
    document.origin = Origin(sessionID: sessionID, sessionVersion: version)
    last = document
    let description = SessionDescription(type: type, sdp: document.filled(with: transports).text)
    waiting = Created(
      description: description, document: document, slots: slots, bundling: bundling)
    texts[type] = description.sdp
    return description
  }

  /// Returns the created description that setLocalDescription is to apply; the text in the call
  /// must be empty or equal the last created offer or answer.
  ///
  /// The checks are made in the order that W3C setLocalDescription prescribes.
  func created(for description: SessionDescription, _ state: SignalingState) throws(JSEPError)
    -> Created
  {
    let isOffer = description.type == .offer
    if !description.sdp.isEmpty, description.sdp != texts[isOffer ? .offer : .answer] {
      throw JSEPError(
        .invalidModification, "the description is not the one that was created last")
    }
    let states: [SignalingState] =
      isOffer ? [.stable, .haveLocalOffer] : [.haveRemoteOffer, .haveLocalPranswer]
    guard states.contains(state) else {
      throw JSEPError(
        wrong: state, for: "setLocalDescription(\(description.type.rawValue))")
    }
    guard let waiting, (waiting.description.type == .offer) == isOffer else {
      throw JSEPError(
        .invalidModification, "no \(isOffer ? "offer" : "answer") was created for this state")
    }
    return waiting
  }

  /// Drops the waiting description because another one was set.
  mutating func overtake() { waiting = nil }

  /// Discards the descriptions that are valid only during an exchange.
  mutating func endExchange() {
    waiting = nil
    texts = [:]
  }
}

extension JSEPError {
  init(wrong state: SignalingState, for call: String) {
    self.init(.invalidState, "\(call) in signaling state \(state.rawValue)")
  }
}

/// The state a rollback restores: everything that descriptions change before an answer completes
/// the exchange (RFC 9429 section 4.1.10.2).
struct StableState {
  let slots: [SectionSlot]
  let transports: RemoteTransports
  let associations: [Transceiver.Association]

  init(_ sections: SectionTable, _ transports: RemoteTransports, _ transceivers: TransceiverTable) {
    slots = sections.slots
    self.transports = transports
    associations = transceivers.all.map(\.association)
  }
}

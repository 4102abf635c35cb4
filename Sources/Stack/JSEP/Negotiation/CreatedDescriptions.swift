import SDP

/// Local descriptions that were created: the one waiting to be set, the texts that may be set, and
/// the session version (RFC 9429 section 5.2.2).
struct CreatedDescriptions {
  /// A local description waiting to be set.
  struct Created {
    let description: SessionDescription
    /// Without candidates.
    let document: SDPDocument
    /// The m-sections as they will be once the description is set.
    let slots: [SectionSlot]
    let bundling: Bundling
  }

  /// The session identifier of the `o=` line: below 2^62, as RFC 9429 section 5.2.1 wants it.
  let sessionID: UInt64
  /// The last offer or answer created, unless another description was set since.
  private var waiting: Created?
  /// The texts of the last offer and answer created since the state was stable (W3C
  /// [[LastCreatedOffer]], [[LastCreatedAnswer]]).
  private var texts: [SDPType: String] = [:]
  /// The last one created, even if it was never set or was rolled back.
  private var last: SDPDocument?
  private var version: UInt64 = 0

  init(sessionID: UInt64) { self.sessionID = sessionID }

  /// A description without sections.
  var blank: SDPDocument { SDPDocument(origin: Origin(sessionID: sessionID, sessionVersion: 0)) }

  /// Stores a description for being set, with a new version if it differs from the last.
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

  /// Returns the created description that a call sets: the last one created, or its text may be
  /// empty.
  ///
  /// Checks the signaling state in the order of W3C setLocalDescription.
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

  /// Records that another description was set.
  mutating func overtake() { waiting = nil }

  /// Discards what is valid only during an exchange.
  mutating func endExchange() {
    waiting = nil
    texts = [:]
  }
}

extension JSEPError {
  /// Creates the error for a call in the wrong signaling state.
  init(wrong state: SignalingState, for call: String) {
    self.init(.invalidState, "\(call) in signaling state \(state.rawValue)")
  }
}

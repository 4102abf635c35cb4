import SDP

/// Owns the local descriptions that were made: the one that waits to be set, which texts may be
/// set, and the version that counts on (RFC 9429 section 5.2.2).
struct CreatedDescriptions {
  /// A local description that waits to be set.
  struct Created {
    let description: SessionDescription
    /// Without candidates.
    let document: SDPDocument
    /// The m-sections that setting the description makes.
    let slots: [SectionSlot]
    let bundling: Bundling
  }

  /// The session identifier of the `o=` line: below 2^62, as RFC 9429 section 5.2.1 wants it.
  let sessionID: UInt64
  /// The last offer or answer that was made and not yet overtaken by another description.
  private var waiting: Created?
  /// The texts of the last offer and answer that were made since the state was stable (W3C
  /// [[LastCreatedOffer]], [[LastCreatedAnswer]]).
  private var texts: [SDPType: String] = [:]
  /// The one that was made last, even if it was never set or was taken back.
  private var last: SDPDocument?
  private var version: UInt64 = 0

  init(sessionID: UInt64) { self.sessionID = sessionID }

  /// A description without sections.
  var blank: SDPDocument { SDPDocument(origin: Origin(sessionID: sessionID, sessionVersion: 0)) }

  /// Keeps a description for being set; its version is a new one when it differs from the last.
  mutating func keep(
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

  /// The description that is meant when one is set: it has to be the one that was created last, or
  /// empty, and the state has to fit, in the order of W3C setLocalDescription.
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

  /// Forgets what only the exchange under way needed.
  mutating func endExchange() {
    waiting = nil
    texts = [:]
  }
}

extension JSEPError {
  /// A call that does not fit the signaling state.
  init(wrong state: SignalingState, for call: String) {
    self.init(.invalidState, "\(call) in signaling state \(state.rawValue)")
  }
}

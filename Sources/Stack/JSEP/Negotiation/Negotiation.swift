import SDP
package import Wire

/// The offer/answer machine: transceivers, descriptions and the signaling state (RFC 9429, 3264).
///
/// Bundled sections share a transport; others have their own (RFC 9143). Every call either succeeds
/// completely, or throws and changes nothing.
package struct Negotiation {
  package let cname: String
  let answersAsDTLSClient: Bool
  /// The codecs and header extensions offered and accepted.
  let capabilities: Capabilities
  package internal(set) var signalingState: SignalingState = .stable
  var transceiverTable: TransceiverTable
  var sectionTable = SectionTable()
  var bundling: Bundling
  var remoteSides = RemoteTransports()
  var numbers = SessionNumbers()
  var descriptions = SignaledDescriptions()
  var created: CreatedDescriptions
  var agreed = AgreedSession()
  var wishes = OpenWishes()
  /// The state that a rollback restores; nil while stable.
  var stableState: StableState?

  /// Creates a session without transceivers; `cname` is the local peer's RTCP canonical name.
  package init(
    entropy: EntropyStream, cname: String, bundlePolicy: BundlePolicy = .balanced,
    answersAsDTLSClient: Bool = false, capabilities: Capabilities = .usual
  ) {
    self.cname = cname
    bundling = Bundling(bundlePolicy)
    self.answersAsDTLSClient = answersAsDTLSClient
    self.capabilities = capabilities
    transceiverTable = TransceiverTable(entropy)
    created = CreatedDescriptions(sessionID: entropy.integer(UInt64.self) >> 2)
  }

  /// Creates a transceiver, or with `byAddTrack` reuses one whose sender has no track and never
  /// sent (W3C addTrack); returns its id.
  ///
  /// `trackID` must be unique among sent tracks; nil draws a random one. If `rids` has more than
  /// one element, the transceiver offers a layer for each.
  package mutating func addTransceiver(
    kind: MediaKind, direction: TransceiverDirection, streamIDs: [String], byAddTrack: Bool,
    trackID: String? = nil, hasTrack: Bool? = nil, rids: [String] = []
  ) throws(JSEPError) -> UInt32 {
    try checkNotClosed()
    try checkOffered(kind)
    try check(direction)
    try check(streamIDs)
    if let trackID { try check(newTrack: trackID) }
    if byAddTrack, let id = transceiverTable.assign(track: trackID, kind, streamIDs) { return id }
    let index = transceiverTable.make(
      kind, direction, streamIDs: streamIDs, trackID: trackID, rids: rids,
      by: byAddTrack
        ? .addTrack(hasTrack: hasTrack ?? true)
        : .addTransceiver(hasTrack: hasTrack ?? direction.sends))
    return transceivers[index].id
  }

  /// Sets the direction to negotiate in the next exchange.
  package mutating func setDirection(_ direction: TransceiverDirection, of transceiver: UInt32)
    throws(JSEPError)
  {
    let index = try liveIndex(of: transceiver)
    try check(direction)
    transceiverTable.change(index) { $0.want(direction) }
  }

  package mutating func setStreams(_ streamIDs: [String], of transceiver: UInt32)
    throws(JSEPError)
  {
    let index = try liveIndex(of: transceiver)
    try check(streamIDs)
    transceiverTable.change(index) { $0.join(streamIDs) }
  }

  /// Records whether a sender has a track; needs no negotiation (W3C replaceTrack).
  package mutating func replaceTrack(of transceiver: UInt32, hasTrack: Bool) throws(JSEPError) {
    let index = try liveIndex(of: transceiver)
    transceiverTable.change(index) { $0.replaceTrack(hasTrack: hasTrack) }
  }

  /// Stops sending on a transceiver, which continues to receive (W3C removeTrack).
  ///
  /// Has no effect if its sender has no track.
  package mutating func removeTrack(from transceiver: UInt32) throws(JSEPError) {
    try checkNotClosed()
    let index = try transceiverTable.place(of: transceiver)
    guard !transceivers[index].isStopping, transceivers[index].hasLocalTrack else { return }
    transceiverTable.change(index) { $0.removeTrack() }
  }

  /// Stops a transceiver permanently; its section is rejected in the next exchange.
  package mutating func stop(transceiver: UInt32) throws(JSEPError) {
    try checkNotClosed()
    let index = try transceiverTable.place(of: transceiver)
    transceiverTable.change(index) { $0.stop() }
  }

  /// Sets the codecs that a transceiver negotiates, in order of preference (W3C
  /// setCodecPreferences); an empty list restores the defaults.
  ///
  /// RTX is used if the list contains it at any position.
  package mutating func setCodecPreferences(_ codecs: [RTPCodec], of transceiver: UInt32)
    throws(JSEPError)
  {
    let index = try liveIndex(of: transceiver)
    let kind = transceivers[index].kind
    let known = RTPCodec.capabilities(kind, of: capabilities)
    var preferences: [RTPCodec] = []
    for codec in codecs {
      guard let match = known.first(where: { $0.isSame(as: codec) }) else {
        throw JSEPError(
          .invalidModification,
          "\(codec.mimeType) is not among the codecs that a transceiver for \(kind.rawValue)"
            + " supports")
      }
      if !preferences.contains(match) { preferences.append(match) }
    }
    guard codecs.isEmpty || preferences.contains(where: \.carriesMedia) else {
      throw JSEPError(.invalidModification, "the preferences name no codec for media")
    }
    transceiverTable.change(index) { $0.prefer(preferences) }
  }

  /// Adds data channels to the session with the next negotiation, unless it already has them (W3C
  /// createDataChannel).
  package mutating func wantData() { wishes.wantData() }

  /// Requests an ICE restart; negotiation is needed until new credentials have replaced the current
  /// ones (W3C restartIce).
  package mutating func wantRestart() {
    wishes.wantRestart(of: descriptions.localUsernameFragments)
  }

  /// Adds a remote candidate to the peer's descriptions that state the candidate's username
  /// fragment, so that applications can read it there (RFC 9429 sections 4.1.13 and 4.1.14).
  /// - Parameters:
  ///   - text: the text after `a=`.
  ///   - fragment: the username fragment of the generation.
  package mutating func add(remoteCandidate text: String, atMLine index: Int, of fragment: String) {
    descriptions.add(remoteCandidate: text, atMLine: index, of: fragment)
  }

  /// Removes a withdrawn remote candidate from the peer's descriptions.
  package mutating func remove(remoteCandidate text: String, atMLine index: Int) {
    descriptions.remove(remoteCandidate: text, atMLine: index)
  }

  /// Closes the session; later calls are refused.
  package mutating func close() -> [Change] {
    guard signalingState != .closed else { return [] }
    created.overtake()
    transceiverTable.close()
    return enter(.closed)
  }

  mutating func enter(_ state: SignalingState) -> [Change] {
    guard state != signalingState else { return [] }
    defer { signalingState = state }
    return [.signalingState(from: signalingState, to: state)]
  }

  // MARK: Rollback

  /// Saves the stable state when an exchange starts.
  mutating func leaveStable() {
    stableState = stableState ?? StableState(sectionTable, remoteSides, transceiverTable)
  }

  /// Discards what is valid only during an exchange: pending and created descriptions, and the
  /// state that a rollback would restore.
  mutating func endExchange() {
    descriptions.endExchange()
    created.endExchange()
    stableState = nil
  }

  /// Rolls back the pending offer (RFC 9429 section 4.1.10.2).
  mutating func rollBack() throws(JSEPError) -> [Change] {
    guard signalingState == .haveLocalOffer || signalingState == .haveRemoteOffer,
      let stable = stableState
    else { throw wrongState("rollback") }
    let changes = enter(.stable)
    endExchange()
    sectionTable.apply(stable.slots)
    return changes + remoteSides.roll(backTo: stable.transports)
      + transceiverTable.roll(backTo: stable.associations) { _ in true }
  }

  /// Rolls back the pending offer's transceivers that have no section in the offer that replaces
  /// it.
  mutating func returnOrphans() -> [Change] {
    guard let stable = stableState else { return [] }
    let kept = sectionTable.slots.compactMap(\.transceiverID)
    return transceiverTable.roll(backTo: stable.associations) {
      $0.mid != nil && !kept.contains($0.id)
    }
  }

  // MARK: Checks

  func checkNotClosed() throws(JSEPError) {
    if signalingState == .closed { throw JSEPError(.invalidState, "the connection is closed") }
  }

  private func liveIndex(of transceiver: UInt32) throws(JSEPError) -> Int {
    try checkNotClosed()
    return try transceiverTable.livePlace(of: transceiver)
  }

  func wrongState(_ call: String) -> JSEPError { JSEPError(wrong: signalingState, for: call) }

  private func check(_ direction: TransceiverDirection) throws(JSEPError) {
    if direction == .stopped {
      throw JSEPError(.type, "a direction cannot be set to stopped: stop the transceiver")
    }
  }

  /// Checks that a kind has a codec, because an m-section needs at least one format (RFC 8866
  /// section 9).
  private func checkOffered(_ kind: MediaKind) throws(JSEPError) {
    guard capabilities.codecs(kind).isEmpty else { return }
    throw JSEPError(
      .operation, "the configuration of the connection names no codec for \(kind.rawValue)")
  }

  /// Checks the characters and length of stream identifiers, which appear in msid lines (RFC 8830
  /// section 2).
  private func check(_ streamIDs: [String]) throws(JSEPError) {
    for id in streamIDs where !id.isToken || id.utf8.count > 255 {
      throw JSEPError(.invalidAccess, "a stream identifier must be a token of 1 to 255 characters")
    }
    guard Set(streamIDs).count == streamIDs.count else {
      throw JSEPError(.duplicateID, "a track is given twice to the same stream")
    }
  }

  /// Checks that a local track's identifier is valid and unique among all streams and kinds.
  private func check(newTrack id: String) throws(JSEPError) {
    guard id.isToken, id.utf8.count <= 255 else {
      throw JSEPError(.invalidAccess, "a track identifier must be a token of 1 to 255 characters")
    }
    guard !transceiverTable.sends(id) else {
      throw JSEPError(.duplicateID, "a track with the identifier \(id) is sent already")
    }
  }
}

// MARK: - Change

extension Negotiation {
  /// A change that results from setting a description; lists of changes are in the order in which
  /// applications must be notified.
  package enum Change: Hashable, Sendable {
    case signalingState(from: SignalingState, to: SignalingState)
    /// A transceiver was created for a remote m-section.
    case transceiverAdded(id: UInt32)
    /// The peer started sending on a transceiver, or the peer's track joined another stream (the
    /// W3C track event).
    case trackAdded(transceiver: UInt32, streamIDs: [String])
    /// The peer stopped sending on the transceiver.
    case trackRemoved(transceiver: UInt32)
    case transceiverStopped(id: UInt32)
    /// A final or provisional answer was applied; `sections` has the result.
    case sectionsAgreed
    /// The remote side of a transport was added, changed or removed.
    case remoteTransport(Int)
    /// A local description was set; gathering may start.
    case localDescriptionSet
  }
}

/// The result of the last answer, final or provisional; replaced by the next one.
struct AgreedSession {
  /// The accepted m-sections, in order.
  let sections: [NegotiatedSection]
  /// The result for data channels; nil if they were not negotiated.
  let data: NegotiatedData?

  init(_ sections: [NegotiatedSection] = [], data: NegotiatedData? = nil) {
    self.sections = sections
    self.data = data
  }

  func section(_ mid: String) -> NegotiatedSection? { sections.first { $0.mid == mid } }

  func has(_ mid: String) -> Bool { mid == data?.mid || section(mid) != nil }
}

/// The state of the offer/answer exchange (W3C RTCSignalingState).
public enum SignalingState: String, Hashable, Sendable {
  /// No exchange is in progress.
  case stable
  /// A local offer is waiting for its answer.
  case haveLocalOffer = "have-local-offer"
  /// A remote offer is waiting for its answer.
  case haveRemoteOffer = "have-remote-offer"
  /// A local provisional answer was set.
  case haveLocalPranswer = "have-local-pranswer"
  /// A remote provisional answer was set.
  case haveRemotePranswer = "have-remote-pranswer"
  /// The connection was closed.
  case closed
}

/// The error of a refused call: the exception that W3C prescribes, or `duplicateID`.
package struct JSEPError: Error, Hashable, Sendable {
  /// The names of exceptions: the ones that W3C prescribes, and `duplicateID`.
  package enum Kind: String, Sendable {
    case invalidState = "InvalidStateError"
    case invalidAccess = "InvalidAccessError"
    case syntax = "RTCError"
    case invalidModification = "InvalidModificationError"
    case operation = "OperationError"
    case type = "TypeError"
    /// The identifier of a stream or track is already in use; not a W3C exception.
    case duplicateID = "DuplicateIDError"
  }
  package var kind: Kind
  package var reason: String
  package init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }
}

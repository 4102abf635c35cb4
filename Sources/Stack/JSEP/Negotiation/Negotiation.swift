import SDP
package import Wire

/// The offer/answer machine: transceivers, descriptions and the signaling state (RFC 9429, 3264).
///
/// Sections that are bundled share a transport, the others have their own (RFC 9143). Every call
/// either does all it says or throws and changes nothing.
package struct Negotiation {
  package let cname: String
  let answersAsDTLSClient: Bool
  /// What is offered and accepted.
  let capabilities: Capabilities
  package internal(set) var signalingState: SignalingState = .stable
  var transceiverTable: TransceiverTable
  var sectionTable = SectionTable()
  var bundling: Bundling
  var remoteSides = RemoteTransports()
  var numbers = SessionNumbers()
  var descriptions = DescriptionTable()
  var created: CreatedDescriptions
  var agreed = AgreedSession()
  var wishes = OpenWishes()
  /// What a rollback returns to; nil while the state is stable.
  var stableState: StableState?

  /// Creates the machine of a peer; `cname` is the RTCP name of all that it sends.
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

  /// Creates a transceiver, or with `byAddTrack` takes over one whose sender never had anything to
  /// send (W3C addTrack); returns its identifier.
  ///
  /// The track gets the identifier that is given, which no other sent track may have, or a drawn
  /// one. `addTrack` may take over what has no track; with nil, what is to send has one. With more
  /// than one of `rids` it offers to send a layer for each.
  package mutating func addTransceiver(
    kind: MediaKind, direction: TransceiverDirection, streamIDs: [String], byAddTrack: Bool,
    trackID: String? = nil, hasTrack: Bool? = nil, rids: [String] = []
  ) throws(JSEPError) -> UInt32 {
    try checkNotClosed()
    try checkOffered(kind)
    try check(direction)
    try check(streamIDs)
    if let trackID { try check(newTrack: trackID) }
    if byAddTrack, let id = transceiverTable.take(track: trackID, kind, streamIDs) { return id }
    let index = transceiverTable.make(
      kind, direction, streamIDs: streamIDs, trackID: trackID, rids: rids,
      by: byAddTrack
        ? .addTrack(hasTrack: hasTrack ?? true)
        : .addTransceiver(hasTrack: hasTrack ?? direction.sends))
    return transceivers[index].id
  }

  /// Sets what a transceiver wants from the next exchange on.
  package mutating func setDirection(_ direction: TransceiverDirection, of transceiver: UInt32)
    throws(JSEPError)
  {
    let index = try liveIndex(of: transceiver)
    try check(direction)
    transceiverTable.change(index) { $0.want(direction) }
  }

  /// Sets the streams that the sent track belongs to.
  package mutating func setStreams(_ streamIDs: [String], of transceiver: UInt32)
    throws(JSEPError)
  {
    let index = try liveIndex(of: transceiver)
    try check(streamIDs)
    transceiverTable.change(index) { $0.join(streamIDs) }
  }

  /// Records whether a sender has a track from now on, without negotiation (W3C replaceTrack).
  package mutating func replaceTrack(of transceiver: UInt32, hasTrack: Bool) throws(JSEPError) {
    let index = try liveIndex(of: transceiver)
    transceiverTable.change(index) { $0.replaceTrack(hasTrack: hasTrack) }
  }

  /// Ends sending on a transceiver, which continues receiving (W3C removeTrack); nothing happens
  /// when its sender has no track.
  package mutating func removeTrack(from transceiver: UInt32) throws(JSEPError) {
    try checkNotClosed()
    let index = try transceiverTable.place(of: transceiver)
    guard !transceivers[index].isStopping, transceivers[index].hasLocalTrack else { return }
    transceiverTable.change(index) { $0.removeTrack() }
  }

  /// Stops a transceiver for good; its section goes with the next exchange.
  package mutating func stop(transceiver: UInt32) throws(JSEPError) {
    try checkNotClosed()
    let index = try transceiverTable.place(of: transceiver)
    transceiverTable.change(index) { $0.stop() }
  }

  /// Sets which codecs a transceiver negotiates and in which order (W3C setCodecPreferences); none
  /// returns to the defaults.
  ///
  /// The retransmission format is used when the list has it, wherever it stands.
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

  /// Asks that the session has data channels; negotiation is needed unless it has (W3C
  /// createDataChannel).
  package mutating func wantData() { wishes.wantData() }

  /// Asks that the next exchange restarts ICE: negotiation is needed until other credentials took
  /// the place of those that descriptions state now (W3C restartIce).
  package mutating func wantRestart() {
    wishes.wantRestart(of: descriptions.localUsernameFragments)
  }

  /// Puts a candidate into the peer's descriptions of its ICE generation, whose text applications
  /// can read (RFC 9429 sections 4.1.13 and 4.1.14).
  ///
  /// - Parameters:
  ///   - text: the text after `a=`.
  ///   - fragment: the username fragment of the generation.
  package mutating func keep(remoteCandidate text: String, atMLine index: Int, of fragment: String)
  {
    descriptions.keep(remoteCandidate: text, atMLine: index, of: fragment)
  }

  /// Takes a candidate that the peer took back out of its descriptions.
  package mutating func remove(remoteCandidate text: String, atMLine index: Int) {
    descriptions.remove(remoteCandidate: text, atMLine: index)
  }

  /// Ends the session; every further call is refused.
  package mutating func close() -> [Change] {
    guard signalingState != .closed else { return [] }
    created.overtake()
    transceiverTable.close()
    return enter(.closed)
  }

  /// Changes the signaling state.
  mutating func enter(_ state: SignalingState) -> [Change] {
    guard state != signalingState else { return [] }
    defer { signalingState = state }
    return [.signalingState(from: signalingState, to: state)]
  }

  // MARK: Rollback

  /// Remembers the stable state when an exchange begins.
  mutating func leaveStable() {
    stableState = stableState ?? StableState(sectionTable, remoteSides, transceiverTable)
  }

  /// Forgets what only the exchange under way needed, completed or not.
  mutating func endExchange() {
    descriptions.endExchange()
    created.endExchange()
    stableState = nil
  }

  /// Takes the pending offer back (RFC 9429 section 4.1.10.2).
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

  /// Takes back what a pending offer did to transceivers that have no section in the offer which
  /// replaces it.
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

  /// An m-section needs at least one format (RFC 8866 section 9).
  private func checkOffered(_ kind: MediaKind) throws(JSEPError) {
    guard capabilities.codecs(kind).isEmpty else { return }
    throw JSEPError(
      .operation, "the configuration of the connection names no codec for \(kind.rawValue)")
  }

  /// Identifiers go into msid lines, so they may not break them (RFC 8830 section 2).
  private func check(_ streamIDs: [String]) throws(JSEPError) {
    for id in streamIDs where !id.isToken || id.utf8.count > 255 {
      throw JSEPError(.invalidAccess, "a stream identifier must be a token of 1 to 255 characters")
    }
    guard Set(streamIDs).count == streamIDs.count else {
      throw JSEPError(.duplicateID, "a track is given twice to the same stream")
    }
  }

  /// Tracks that are sent have identifiers of their own, whatever their streams and kinds.
  private func check(newTrack id: String) throws(JSEPError) {
    guard id.isToken, id.utf8.count <= 255 else {
      throw JSEPError(.invalidAccess, "a track identifier must be a token of 1 to 255 characters")
    }
    guard !transceiverTable.sends(id) else {
      throw JSEPError(.duplicateID, "a track with the identifier \(id) is sent already")
    }
  }
}

package import SDP
package import Wire

/// The offer/answer machine: transceivers, descriptions and the signaling state (RFC 9429, 3264).
///
/// Sections that are bundled share a transport, the others have their own (RFC 9143). Every call
/// either does all it says or throws and changes nothing.
package struct Negotiation {
  package internal(set) var signalingState: SignalingState = .stable
  package internal(set) var transceivers: [Transceiver] = []
  /// What the last completed exchange agreed on, in the order of the m-sections; rejected ones left
  /// out.
  package internal(set) var sections: [NegotiatedSection] = []
  /// The peer's side of each transport that its descriptions tell of, in the order of the sections.
  package internal(set) var remoteTransports: [RemoteTransport] = []
  /// What the last completed exchange agreed on for data channels.
  package internal(set) var data: NegotiatedData?
  package internal(set) var currentLocal: SessionDescription?
  package internal(set) var pendingLocal: SessionDescription?
  package internal(set) var currentRemote: SessionDescription?
  package internal(set) var pendingRemote: SessionDescription?

  let entropy: EntropyStream
  package let cname: String
  let answersAsDTLSClient: Bool
  /// What is offered and accepted.
  let capabilities: Capabilities
  /// The session identifier of the `o=` line: below 2^62, as RFC 9429 section 5.2.1 wants it.
  let sessionID: UInt64
  /// The m-sections of the latest description that was applied, in order.
  var slots: [SectionSlot] = []
  var bundling: Bundling
  /// What a rollback returns to; nil while the state is stable.
  var stableState: StableState?
  var documents = Documents()
  /// The last offer or answer that was made and not yet overtaken by another description.
  var created: CreatedDescription?
  /// The texts of the last offer and answer that were made since the state was stable (W3C
  /// [[LastCreatedOffer]], [[LastCreatedAnswer]]).
  var createdTexts: [SDPType: String] = [:]
  /// The username fragments of the own descriptions that an ICE restart is to replace (W3C
  /// [[LocalIceCredentialsToReplace]]).
  var fragmentsToReplace: [String] = []
  var numbers = SessionNumbers()
  var usedMIDs: Set<String> = []
  /// Whether data channels were asked for, and not refused since.
  package internal(set) var wantsData = false
  private var nextTransceiverID: UInt32 = 1

  /// The parsed forms of the descriptions that were set, own ones without candidates.
  struct Documents {
    var currentLocal: SDPDocument?
    var pendingLocal: SDPDocument?
    var currentRemote: SDPDocument?
    var pendingRemote: SDPDocument?
    /// The own description that was made last, even if it was never set or was taken back: the
    /// version counts on (RFC 9429 section 5.2.2).
    var lastMade: SDPDocument?
    var lastVersion: UInt64 = 0
  }

  /// An own description that waits to be set.
  struct CreatedDescription {
    var description: SessionDescription
    /// Without candidates.
    var document: SDPDocument
    /// The m-sections that setting the description makes.
    var slots: [SectionSlot]
    var bundling: Bundling
  }

  /// Creates the machine of a peer; `cname` is the RTCP name of all that it sends.
  package init(
    entropy: EntropyStream, cname: String, bundlePolicy: BundlePolicy = .balanced,
    answersAsDTLSClient: Bool = false, capabilities: Capabilities = .usual
  ) {
    self.entropy = entropy
    self.cname = cname
    bundling = Bundling(bundlePolicy)
    self.answersAsDTLSClient = answersAsDTLSClient
    self.capabilities = capabilities
    sessionID = entropy.integer(UInt64.self) >> 2
  }

  /// Makes a transceiver, or with `byAddTrack` takes over one whose sender never had anything to
  /// send (W3C addTrack); gives its identifier.
  ///
  /// The track gets the identifier that is given, which no other sent track may have, or a drawn
  /// one. `addTrack` may take over what has no track; with nil, what is to send has one.
  package mutating func addTransceiver(
    kind: MediaKind, direction: TransceiverDirection, streamIDs: [String], byAddTrack: Bool,
    trackID: String? = nil, hasTrack: Bool? = nil
  ) throws(JSEPError) -> UInt32 {
    try checkNotClosed()
    try checkOffered(kind)
    try check(direction)
    try check(streamIDs)
    if let trackID { try check(newTrack: trackID) }
    if byAddTrack, let index = transceivers.firstIndex(where: { $0.isFree(for: kind) }) {
      transceivers[index].add(track: streamIDs)
      if let trackID { transceivers[index].trackID = trackID }
      return transceivers[index].id
    }
    var made = makeTransceiver(kind: kind, direction: direction, streamIDs: streamIDs)
    if let trackID { made.trackID = trackID }
    made.wasMadeByAddTrack = byAddTrack
    made.wasGivenTrack = byAddTrack
    made.hasLocalTrack = hasTrack ?? (byAddTrack || direction.sends)
    transceivers.append(made)
    return made.id
  }

  /// Sets what a transceiver wants from the next exchange on.
  package mutating func setDirection(_ direction: TransceiverDirection, of transceiver: UInt32)
    throws(JSEPError)
  {
    let index = try liveIndex(of: transceiver)
    try check(direction)
    transceivers[index].direction = direction
  }

  /// Sets the streams that the sent track belongs to.
  package mutating func setStreams(_ streamIDs: [String], of transceiver: UInt32)
    throws(JSEPError)
  {
    let index = try liveIndex(of: transceiver)
    try check(streamIDs)
    transceivers[index].streamIDs = streamIDs
  }

  /// Notes whether a sender has a track from now on, without negotiation (W3C replaceTrack).
  package mutating func replaceTrack(of transceiver: UInt32, hasTrack: Bool) throws(JSEPError) {
    let index = try liveIndex(of: transceiver)
    guard transceivers[index].hasLocalTrack != hasTrack else { return }
    transceivers[index].hasLocalTrack = hasTrack
  }

  /// Ends sending on a transceiver, which goes on receiving (W3C removeTrack); nothing happens when
  /// its sender has no track.
  package mutating func removeTrack(from transceiver: UInt32) throws(JSEPError) {
    try checkNotClosed()
    guard let index = transceivers.firstIndex(where: { $0.id == transceiver }) else {
      throw JSEPError(.invalidAccess, "there is no transceiver \(transceiver)")
    }
    guard !transceivers[index].isStopping, transceivers[index].hasLocalTrack else { return }
    transceivers[index].hasLocalTrack = false
    let receives = transceivers[index].direction.receives
    transceivers[index].direction = receives ? .recvonly : .inactive
  }

  /// Stops a transceiver for good; its section goes with the next exchange.
  package mutating func stop(transceiver: UInt32) throws(JSEPError) {
    try checkNotClosed()
    guard let index = transceivers.firstIndex(where: { $0.id == transceiver }) else {
      throw JSEPError(.invalidAccess, "there is no transceiver \(transceiver)")
    }
    transceivers[index].isStopping = true
    transceivers[index].direction = .stopped
    // Nothing was negotiated, so there is nothing left to negotiate.
    if transceivers[index].mid == nil { transceivers[index].currentDirection = .stopped }
  }

  /// Ends the session; every further call is refused.
  package mutating func close() -> [Change] {
    guard signalingState != .closed else { return [] }
    let changes = [Change.signalingState(from: signalingState, to: .closed)]
    signalingState = .closed
    created = nil
    for index in transceivers.indices {
      transceivers[index].isStopping = true
      transceivers[index].direction = .stopped
      transceivers[index].currentDirection = .stopped
      transceivers[index].remoteTrackIsLive = false
    }
    return changes
  }

  /// The pending or else current local description with the candidates gathered since (W3C
  /// localDescription).
  package func localDescription(_ transports: [LocalTransport]) -> SessionDescription? {
    description(.pendingLocal, transports) ?? description(.currentLocal, transports)
  }

  /// A description by its place, own ones with the candidates gathered since.
  package func description(_ slot: DescriptionSlot, _ transports: [LocalTransport])
    -> SessionDescription?
  {
    switch slot {
    case .currentLocal: filled(currentLocal, documents.currentLocal, transports)
    case .pendingLocal: filled(pendingLocal, documents.pendingLocal, transports)
    case .remote: pendingRemote ?? currentRemote
    case .currentRemote: currentRemote
    case .pendingRemote: pendingRemote
    }
  }

  private func filled(
    _ description: SessionDescription?, _ document: SDPDocument?, _ transports: [LocalTransport]
  ) -> SessionDescription? {
    guard let description, let document else { return nil }
    return SessionDescription(type: description.type, sdp: document.filled(with: transports).text)
  }

  /// The m-line index of a mid in the peer's description, for addIceCandidate.
  package func remoteMLineIndex(ofMID mid: String) -> Int? {
    guard let document = documents.pendingRemote ?? documents.currentRemote else { return nil }
    if let index = document.sections.firstIndex(where: { $0.mid == mid }) { return index }
    // A peer that names no mids is found by the names that were made up for its sections.
    return document.sections.indices.first {
      document.sections[$0].mid == nil && slots.indices.contains($0) && slots[$0].mid == mid
    }
  }
}

extension Negotiation {
  /// Draws the identifiers of a new transceiver.
  mutating func makeTransceiver(
    kind: MediaKind, direction: TransceiverDirection, streamIDs: [String]
  ) -> Transceiver {
    let id = nextTransceiverID
    nextTransceiverID += 1
    let ssrc = drawSSRC(besides: 0)
    return Transceiver(
      id: id, kind: kind, direction: direction, streamIDs: streamIDs, trackID: entropy.uuid(),
      ssrc: ssrc, rtxSSRC: drawSSRC(besides: ssrc))
  }

  /// The first number that no section of the session ever had as its mid.
  func freeMID(besides others: Set<String>) -> String {
    var number = 0
    while usedMIDs.contains(String(number)) || others.contains(String(number)) { number += 1 }
    return String(number)
  }

  func checkNotClosed() throws(JSEPError) {
    if signalingState == .closed { throw JSEPError(.invalidState, "the connection is closed") }
  }

  func liveIndex(of transceiver: UInt32) throws(JSEPError) -> Int {
    try checkNotClosed()
    guard let index = transceivers.firstIndex(where: { $0.id == transceiver }) else {
      throw JSEPError(.invalidAccess, "there is no transceiver \(transceiver)")
    }
    guard !transceivers[index].isStopping else {
      throw JSEPError(.invalidState, "transceiver \(transceiver) is stopped")
    }
    return index
  }

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
    guard !transceivers.contains(where: { $0.hasLocalTrack && $0.trackID == id }) else {
      throw JSEPError(.duplicateID, "a track with the identifier \(id) is sent already")
    }
  }

  private func drawSSRC(besides other: UInt32) -> UInt32 {
    while true {
      let ssrc = entropy.integer(UInt32.self)
      let isTaken = transceivers.contains { $0.ssrc == ssrc || $0.rtxSSRC == ssrc }
      if ssrc != 0, ssrc != other, !isTaken { return ssrc }
    }
  }
}

extension Transceiver {
  /// Whether addTrack may take the transceiver over (W3C RTCPeerConnection.addTrack).
  func isFree(for kind: MediaKind) -> Bool {
    self.kind == kind && !hasLocalTrack && !hasSent && !isStopping
  }

  /// Begins to send a track that belongs to these streams.
  mutating func add(track streamIDs: [String]) {
    self.streamIDs = streamIDs
    hasLocalTrack = true
    wasGivenTrack = true
    direction = direction.receives ? .sendrecv : .sendonly
  }
}

import SDP
package import Wire

/// A transceiver as the offer/answer machine keeps it (RFC 9429 section 3.4.1).
package struct Transceiver: Hashable, Sendable {
  /// What descriptions change of a transceiver before an answer completes them.
  struct Association: Hashable {
    let id: UInt32
    fileprivate let mid: String?
    fileprivate let mLineIndex: Int?
    fileprivate let remoteStreamIDs: [String]
    fileprivate let remoteTrackID: String?
    fileprivate let remoteTrackIsLive: Bool
  }

  /// Who makes a transceiver.
  enum Origin {
    case addTransceiver(hasTrack: Bool)
    case addTrack(hasTrack: Bool)
    case remoteOffer
  }

  /// Names the transceiver in this peer; counted from 1 in order of creation.
  package let id: UInt32
  package let kind: MediaKind
  /// Drawn at creation; the SSRCs this transceiver sends with.
  package let ssrc: UInt32
  package let rtxSSRC: UInt32
  /// The layers of a simulcast that it sends; none where it sends one stream.
  package private(set) var layers: [SimulcastLayer]
  /// Whether a remote offer brought the layers and no answer has completed it.
  private var layersAreOffered = false
  /// Known once associated with an m-section.
  package private(set) var mid: String?
  package private(set) var mLineIndex: Int?
  package private(set) var direction: TransceiverDirection
  package private(set) var currentDirection: TransceiverDirection?
  /// Whether `stop` was called.
  package private(set) var isStopping = false
  /// Whether it was made by addTrack (then a remote offer may take it, RFC 9429 section 5.10).
  package private(set) var wasMadeByAddTrack = false
  /// The msid stream and track identifiers of what is sent.
  package private(set) var streamIDs: [String]
  package private(set) var trackID: String
  /// The peer's stream and track identifiers, once signaled.
  package private(set) var remoteStreamIDs: [String] = []
  package private(set) var remoteTrackID: String?
  /// Whether the sender has a track (W3C: it is not null).
  ///
  /// `addTrack` takes over transceivers for which this is false.
  package private(set) var hasLocalTrack = false
  /// Whether `addTrack` ever gave it a track: then no rollback takes it away.
  package private(set) var wasGivenTrack = false
  /// Whether an exchange ever agreed on sending; then `addTrack` leaves the transceiver alone.
  package private(set) var hasSent = false
  /// Whether the peer's track was announced and not taken back (W3C [[FiredDirection]]).
  package private(set) var remoteTrackIsLive = false
  /// Whether a remote offer made it; taking the offer back takes it away again.
  package private(set) var wasMadeForRemoteOffer = false
  /// The codecs to negotiate, the preferred one first; empty for the defaults.
  package private(set) var codecPreferences: [RTPCodec] = []

  init(
    id: UInt32, kind: MediaKind, direction: TransceiverDirection, streamIDs: [String],
    trackID: String, ssrc: UInt32, rtxSSRC: UInt32, layers: [SimulcastLayer] = [],
    by origin: Origin
  ) {
    self.id = id
    self.kind = kind
    self.direction = direction
    self.streamIDs = streamIDs
    self.trackID = trackID
    self.ssrc = ssrc
    self.rtxSSRC = rtxSSRC
    self.layers = layers
    switch origin {
    case .addTransceiver(let hasTrack): hasLocalTrack = hasTrack
    case .addTrack(let hasTrack):
      wasMadeByAddTrack = true
      wasGivenTrack = true
      hasLocalTrack = hasTrack
    case .remoteOffer: wasMadeForRemoteOffer = true
    }
  }

  /// Whether it offers more than one layer.
  var offersSimulcast: Bool { layers.count > 1 }

  /// The source of the only stream: its own, or that of the layer that was left of several.
  package var onlySource: (ssrc: UInt32, rtxSSRC: UInt32) {
    layers.first.map { ($0.ssrc, $0.rtxSSRC) } ?? (ssrc, rtxSSRC)
  }

  // MARK: What applications set

  /// Whether addTrack may take the transceiver over (W3C RTCPeerConnection.addTrack).
  func isFree(for kind: MediaKind) -> Bool {
    self.kind == kind && !hasLocalTrack && !hasSent && !isStopping
  }

  /// Starts to send a track that belongs to these streams.
  mutating func add(track id: String?, _ streamIDs: [String]) {
    self.streamIDs = streamIDs
    if let id { trackID = id }
    hasLocalTrack = true
    wasGivenTrack = true
    direction = direction.receives ? .sendrecv : .sendonly
  }

  /// Takes the track away from the sender and receives on.
  mutating func removeTrack() {
    hasLocalTrack = false
    direction = direction.receives ? .recvonly : .inactive
  }

  mutating func replaceTrack(hasTrack: Bool) { hasLocalTrack = hasTrack }
  mutating func want(_ direction: TransceiverDirection) { self.direction = direction }
  mutating func join(_ streamIDs: [String]) { self.streamIDs = streamIDs }
  mutating func prefer(_ codecs: [RTPCodec]) { codecPreferences = codecs }

  /// Stops; the section goes with the next exchange.
  mutating func stop() {
    isStopping = true
    direction = .stopped
    // Nothing was negotiated, so there is nothing left to negotiate.
    if mid == nil { currentDirection = .stopped }
  }

  /// Stops at once, with the session.
  mutating func close() {
    stop()
    currentDirection = .stopped
    remoteTrackIsLive = false
  }

  // MARK: What descriptions set

  /// Whether an offer may decide in which layers it sends: nobody has before, and nothing was
  /// agreed on (W3C setRemoteDescription, [[LastStableStateRidlessSendEncodings]]).
  var mayTakeLayers: Bool {
    kind == .video && !isStopping && currentDirection == nil && (layers.isEmpty || layersAreOffered)
  }

  /// Sends in the layers that an offer asks for.
  mutating func take(_ layers: [SimulcastLayer]) {
    self.layers = layers
    layersAreOffered = true
  }

  /// Whether a new section of a remote offer may take the transceiver: one that addTrack made,
  /// not yet negotiated, when the peer wants to receive (RFC 9429 section 5.10).
  func mayServe(_ direction: MediaDirection, _ kind: MediaKind) -> Bool {
    self.kind == kind && direction.receives && mid == nil && wasMadeByAddTrack && !isStopping
  }

  /// Associates the transceiver with an m-section.
  mutating func associate(_ mid: String, _ mLineIndex: Int) {
    self.mid = mid
    self.mLineIndex = mLineIndex
  }

  /// Applies what the peer's section says about its track.
  mutating func hear(_ section: SDPSection, sends: Bool) -> [Negotiation.Change] {
    let wasLive = remoteTrackIsLive
    remoteTrackIsLive = sends
    guard sends else {
      remoteStreamIDs = []
      return wasLive ? [.trackRemoved(transceiver: id)] : []
    }
    let (streamIDs, trackID) = section.announcedTrack
    // A track that joins another stream is told of again (W3C, processing remote tracks).
    let joins = streamIDs.contains { !remoteStreamIDs.contains($0) }
    remoteStreamIDs = streamIDs
    remoteTrackID = trackID
    return wasLive && !joins ? [] : [.trackAdded(transceiver: id, streamIDs: streamIDs)]
  }

  /// Handles the direction that an exchange agreed on; reports when the peer's track begins or
  /// ends.
  /// - Parameter answered: the peer's section, when the peer answered.
  mutating func settle(_ direction: TransceiverDirection, _ answered: SDPSection?)
    -> [Negotiation.Change]
  {
    currentDirection = direction
    if direction.sends { hasSent = true }
    if let answered { return hear(answered, sends: direction.receives) }
    guard remoteTrackIsLive, !direction.receives else { return [] }
    remoteTrackIsLive = false
    return [.trackRemoved(transceiver: id)]
  }

  /// Gives up the layers that an answer refused; without simulcast the first one is left (W3C
  /// setRemoteDescription).
  mutating func keepLayers(_ accepted: [NegotiatedLayer]) {
    guard offersSimulcast else { return }
    let kept = layers.filter { layer in accepted.contains { $0.rid == layer.rid } }
    layers = kept.isEmpty ? Array(layers.prefix(1)) : kept
  }

  /// Settles the layers that an offer asked for: those that the local answer took, or one stream as
  /// if nobody had asked.
  mutating func settleOfferedLayers(_ accepted: [NegotiatedLayer]) {
    guard layersAreOffered else { return }
    layersAreOffered = false
    layers = layers.filter { layer in accepted.contains { $0.rid == layer.rid } }
  }

  /// Records that the offer which made the transceiver was answered for good.
  mutating func noteCompleted() { wasMadeForRemoteOffer = false }

  // MARK: Rollback

  /// What a rollback returns to.
  var association: Association {
    Association(
      id: id, mid: mid, mLineIndex: mLineIndex, remoteStreamIDs: remoteStreamIDs,
      remoteTrackID: remoteTrackID, remoteTrackIsLive: remoteTrackIsLive)
  }

  /// Returns to the association that it had in a stable state, if there was one; reports when the
  /// peer's track begins or ends, and whether the transceiver goes because an offer alone made it.
  mutating func roll(backTo before: Association?) -> (changes: [Negotiation.Change], goes: Bool) {
    let wasLive = remoteTrackIsLive
    mid = before?.mid
    mLineIndex = before?.mLineIndex
    remoteStreamIDs = before?.remoteStreamIDs ?? []
    remoteTrackID = before?.remoteTrackID
    remoteTrackIsLive = before?.remoteTrackIsLive ?? false
    settleOfferedLayers([])
    var changes: [Negotiation.Change] = []
    switch (wasLive, remoteTrackIsLive) {
    case (true, false): changes.append(.trackRemoved(transceiver: id))
    case (false, true): changes.append(.trackAdded(transceiver: id, streamIDs: remoteStreamIDs))
    case (true, true), (false, false): break
    }
    guard before == nil, wasMadeForRemoteOffer else { return (changes, false) }
    guard wasGivenTrack else { return (changes, true) }
    // It lives on as if addTrack had made it, so that the next offer may take it.
    wasMadeForRemoteOffer = false
    wasMadeByAddTrack = true
    return (changes, false)
  }
}

extension SDPSection {
  /// The streams and the track of the section's sender: from msid lines, or from the attributes of
  /// its first source as older peers give them.
  fileprivate var announcedTrack: (streamIDs: [String], trackID: String?) {
    var msids = msids
    if msids.isEmpty, let legacy = ssrcs.first(where: { $0.name == "msid" })?.value {
      msids = [MSID(legacy)].compactMap(\.self)
    }
    var streamIDs: [String] = []
    // A track belongs to a few streams at most, whatever a description claims.
    for msid in msids.prefix(64) where msid.streamID != "-" && !streamIDs.contains(msid.streamID) {
      streamIDs.append(msid.streamID)
    }
    return (streamIDs, msids.lazy.compactMap(\.trackID).first)
  }
}

package import SDP
package import Wire

/// A transceiver in the offer/answer machine (RFC 9429 section 3.4.1).
package struct Transceiver: Hashable, Sendable {
  /// The fields that descriptions change before an answer completes the exchange.
  struct Association: Hashable {
    let id: UInt32
    fileprivate let mid: String?
    fileprivate let mLineIndex: Int?
    fileprivate let remoteStreamIDs: [String]
    fileprivate let remoteTrackID: String?
    fileprivate let remoteTrackIsLive: Bool
  }

  enum Origin {
    case addTransceiver(hasTrack: Bool)
    case addTrack(hasTrack: Bool)
    case remoteOffer
  }

  /// Identifies the transceiver within this peer; counted from 1 in order of creation.
  package let id: UInt32
  package let kind: MediaKind
  /// The random SSRCs with which media and its retransmissions are sent.
  package let ssrc: UInt32
  package let rtxSSRC: UInt32
  /// Simulcast layers to send; empty for a single stream.
  package private(set) var layers: [SimulcastLayer]
  /// Whether a remote offer introduced the layers and no answer has completed the exchange yet.
  private var layersAreOffered = false
  /// The MID; nil until the transceiver is associated with an m-section.
  package private(set) var mid: String?
  package private(set) var mLineIndex: Int?
  package private(set) var direction: TransceiverDirection
  package private(set) var currentDirection: TransceiverDirection?
  /// Whether `stop` was called.
  package private(set) var isStopping = false
  /// Whether addTrack created the transceiver; only then may a remote offer use it (RFC 9429
  /// section 5.10).
  package private(set) var wasMadeByAddTrack = false
  /// Stream and track identifiers to send in msid.
  package private(set) var streamIDs: [String]
  package private(set) var trackID: String
  /// The peer's stream and track identifiers once signaled.
  package private(set) var remoteStreamIDs: [String] = []
  package private(set) var remoteTrackID: String?
  /// Whether the sender has a track.
  ///
  /// `addTrack` reuses transceivers without a track.
  package private(set) var hasLocalTrack = false
  /// Whether `addTrack` ever assigned a track; if so, a rollback does not remove the transceiver.
  package private(set) var hasHadTrack = false
  /// Whether sending was ever negotiated; if so, `addTrack` does not reuse the transceiver.
  package private(set) var hasSent = false
  /// Whether the peer's track was announced and has not been removed (W3C [[FiredDirection]]).
  package private(set) var remoteTrackIsLive = false
  /// Whether a remote offer created the transceiver; if so, rolling the offer back removes it.
  package private(set) var wasMadeForRemoteOffer = false
  /// Codecs to negotiate in order of preference; empty for the defaults.
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
      hasHadTrack = true
      hasLocalTrack = hasTrack
    case .remoteOffer: wasMadeForRemoteOffer = true
    }
  }

  var offersSimulcast: Bool { layers.count > 1 }

  /// The SSRCs of a single stream: the transceiver's own, or the only remaining layer's.
  package var onlySource: (ssrc: UInt32, rtxSSRC: UInt32) {
    layers.first.map { ($0.ssrc, $0.rtxSSRC) } ?? (ssrc, rtxSSRC)
  }

  // MARK: Set by applications

  /// Returns whether addTrack may reuse the transceiver (W3C RTCPeerConnection.addTrack).
  func isFree(for kind: MediaKind) -> Bool {
    self.kind == kind && !hasLocalTrack && !hasSent && !isStopping
  }

  /// Starts sending a track in these streams.
  mutating func add(track id: String?, _ streamIDs: [String]) {
    self.streamIDs = streamIDs
    if let id { trackID = id }
    hasLocalTrack = true
    hasHadTrack = true
    direction = direction.receives ? .sendrecv : .sendonly
  }

  /// Removes the sender's track; receiving continues.
  mutating func removeTrack() {
    hasLocalTrack = false
    direction = direction.receives ? .recvonly : .inactive
  }

  mutating func replaceTrack(hasTrack: Bool) { hasLocalTrack = hasTrack }
  mutating func want(_ direction: TransceiverDirection) { self.direction = direction }
  mutating func join(_ streamIDs: [String]) { self.streamIDs = streamIDs }
  mutating func prefer(_ codecs: [RTPCodec]) { codecPreferences = codecs }

  /// Stops the transceiver; its section is rejected in the next exchange.
  mutating func stop() {
    isStopping = true
    direction = .stopped
    // A transceiver that was never negotiated stops immediately.
    if mid == nil { currentDirection = .stopped }
  }

  /// Stops at once because the session closes.
  mutating func close() {
    stop()
    currentDirection = .stopped
    remoteTrackIsLive = false
  }

  // MARK: Set by descriptions

  /// Whether a remote offer may still determine the layers, because neither the application nor a
  /// negotiation has set them (W3C setRemoteDescription, [[LastStableStateRidlessSendEncodings]]).
  var mayTakeLayers: Bool {
    kind == .video && !isStopping && currentDirection == nil && (layers.isEmpty || layersAreOffered)
  }

  /// Applies the layers that a remote offer requests.
  mutating func setLayers(_ layers: [SimulcastLayer]) {
    self.layers = layers
    layersAreOffered = true
  }

  /// Returns whether a new section in a remote offer may use the transceiver, because addTrack
  /// created it, it is not yet negotiated, and the peer wants to receive (RFC 9429 section 5.10).
  func mayServe(_ direction: MediaDirection, _ kind: MediaKind) -> Bool {
    self.kind == kind && direction.receives && mid == nil && wasMadeByAddTrack && !isStopping
  }

  mutating func associate(_ mid: String, _ mLineIndex: Int) {
    self.mid = mid
    self.mLineIndex = mLineIndex
  }

  /// Applies the track in the peer's section.
  mutating func applyRemote(_ section: SDPSection, sends: Bool) -> [Negotiation.Change] {
    let wasLive = remoteTrackIsLive
    remoteTrackIsLive = sends
    guard sends else {
      remoteStreamIDs = []
      return wasLive ? [.trackRemoved(transceiver: id)] : []
    }
    let (streamIDs, trackID) = section.announcedTrack
    // A track that joins another stream is announced again (W3C, processing remote tracks).
    let joins = streamIDs.contains { !remoteStreamIDs.contains($0) }
    remoteStreamIDs = streamIDs
    remoteTrackID = trackID
    return wasLive && !joins ? [] : [.trackAdded(transceiver: id, streamIDs: streamIDs)]
  }

  /// Applies the negotiated direction; returns the change if the peer's track starts or ends.
  /// - Parameter answered: the peer's section if the peer answered.
  mutating func settle(_ direction: TransceiverDirection, _ answered: SDPSection?)
    -> [Negotiation.Change]
  {
    currentDirection = direction
    if direction.sends { hasSent = true }
    if let answered { return applyRemote(answered, sends: direction.receives) }
    guard remoteTrackIsLive, !direction.receives else { return [] }
    remoteTrackIsLive = false
    return [.trackRemoved(transceiver: id)]
  }

  /// Drops the layers that an answer refused; without simulcast the first remains (W3C
  /// setRemoteDescription).
  mutating func restrictLayers(_ accepted: [NegotiatedLayer]) {
    guard offersSimulcast else { return }
    let kept = layers.filter { layer in accepted.contains { $0.rid == layer.rid } }
    layers = kept.isEmpty ? Array(layers.prefix(1)) : kept
  }

  /// Keeps only the layers in the local answer if an offer requested them; if none are left, a
  /// single stream is sent.
  mutating func settleOfferedLayers(_ accepted: [NegotiatedLayer]) {
    guard layersAreOffered else { return }
    layersAreOffered = false
    layers = layers.filter { layer in accepted.contains { $0.rid == layer.rid } }
  }

  /// Records that the offer that created the transceiver has its final answer.
  mutating func recordCompletion() { wasMadeForRemoteOffer = false }

  // MARK: Rollback

  /// The fields that a rollback restores.
  var association: Association {
    Association(
      id: id, mid: mid, mLineIndex: mLineIndex, remoteStreamIDs: remoteStreamIDs,
      remoteTrackID: remoteTrackID, remoteTrackIsLive: remoteTrackIsLive)
  }

  /// Restores the association that a stable state had, if any.
  /// - Returns: the change if the peer's track starts or ends, and whether to remove the
  ///   transceiver because only the offer created it.
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
    guard hasHadTrack else { return (changes, true) }
    // The transceiver remains as if addTrack had created it, so that the next offer may use it.
    wasMadeForRemoteOffer = false
    wasMadeByAddTrack = true
    return (changes, false)
  }
}

extension SDPSection {
  /// The sender's streams and track: from msid lines or, in descriptions of older peers, from the
  /// attributes of the first SSRC.
  fileprivate var announcedTrack: (streamIDs: [String], trackID: String?) {
    var msids = msids
    if msids.isEmpty, let legacy = ssrcs.first(where: { $0.name == "msid" })?.value {
      msids = [MSID(legacy)].compactMap(\.self)
    }
    var streamIDs: [String] = []
    // Limits how many streams a hostile description can add.
    for msid in msids.prefix(64) where msid.streamID != "-" && !streamIDs.contains(msid.streamID) {
      streamIDs.append(msid.streamID)
    }
    return (streamIDs, msids.lazy.compactMap(\.trackID).first)
  }
}

/// The direction of a transceiver (W3C RTCRtpTransceiverDirection).
public enum TransceiverDirection: String, Hashable, Sendable, Codable {
  /// Sends and receives media.
  case sendrecv
  /// Only sends.
  case sendonly
  /// Only receives.
  case recvonly
  /// Neither sends nor receives.
  case inactive
  /// Stopped permanently; the transceiver's section is rejected.
  case stopped

  /// Whether the direction includes sending.
  public var sends: Bool { self == .sendrecv || self == .sendonly }
  /// Whether the direction includes receiving.
  public var receives: Bool { self == .sendrecv || self == .recvonly }

  package init(_ direction: MediaDirection) {
    self =
      switch direction {
      case .sendrecv: .sendrecv
      case .sendonly: .sendonly
      case .recvonly: .recvonly
      case .inactive: .inactive
      }
  }

  /// The direction in an m-section; `inactive` for a stopped transceiver.
  package var media: MediaDirection { MediaDirection(sends: sends, receives: receives) }
}

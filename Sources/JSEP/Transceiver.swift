package import Wire

/// A transceiver as the offer/answer machine keeps it (RFC 9429 section 3.4.1).
package struct Transceiver: Hashable, Sendable {
  /// Names the transceiver in this peer; counted from 1 in order of creation.
  package var id: UInt32
  package var kind: MediaKind
  /// Known once associated with an m-section.
  package var mid: String?
  package var mLineIndex: Int?
  package var direction: TransceiverDirection
  package var currentDirection: TransceiverDirection?
  /// Whether `stop` was called.
  package var isStopping = false
  /// Whether it was made by addTrack (then a remote offer may take it, RFC 9429 section 5.10).
  package var wasMadeByAddTrack = false
  /// The msid stream and track identifiers of what is sent.
  package var streamIDs: [String]
  package var trackID: String
  /// Drawn at creation; the SSRCs this transceiver sends with.
  package var ssrc: UInt32
  package var rtxSSRC: UInt32
  /// The peer's stream and track identifiers, once signaled.
  package var remoteStreamIDs: [String] = []
  package var remoteTrackID: String?
  /// Whether the sender has a track (W3C: it is not null).
  ///
  /// `addTrack` takes over transceivers for which this is false.
  package var hasLocalTrack = false
  /// Whether `addTrack` ever gave it a track: then no rollback takes it away.
  package var wasGivenTrack = false
  /// Whether an exchange ever agreed on sending; then `addTrack` leaves the transceiver alone.
  package var hasSent = false
  /// Whether the peer's track was announced and not taken back (W3C [[FiredDirection]]).
  package var remoteTrackIsLive = false
  /// Whether a remote offer made it; taking the offer back takes it away again.
  package var wasMadeForRemoteOffer = false
  /// The codecs to negotiate, the preferred one first; empty for the defaults.
  package var codecPreferences: [RTPCodec] = []

  package init(
    id: UInt32, kind: MediaKind, direction: TransceiverDirection, streamIDs: [String],
    trackID: String, ssrc: UInt32, rtxSSRC: UInt32
  ) {
    self.id = id
    self.kind = kind
    self.direction = direction
    self.streamIDs = streamIDs
    self.trackID = trackID
    self.ssrc = ssrc
    self.rtxSSRC = rtxSSRC
  }
}

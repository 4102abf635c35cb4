/// An application's settings of a track, and whether it currently carries media.
public struct TrackState: Hashable, Sendable, Codable {
  /// Whether the track is enabled; otherwise it is silent or black (W3C enabled).
  public var isEnabled: Bool
  /// The volume of received audio, 0 to 10; 1 is unchanged.
  public var volume: Double
  /// Whether nothing currently arrives from the peer (W3C muted); false for sent tracks.
  public var isMuted: Bool

  /// Creates the state of a new track.
  public init(isEnabled: Bool = true, volume: Double = 1, isMuted: Bool = false) {
    self.isEnabled = isEnabled
    self.volume = volume
    self.isMuted = isMuted
  }
}

/// A change of a track's state, with its reason if there is one.
public struct TrackChange: Hashable, Sendable {
  /// The kind of change; the last three are events of the W3C's MediaStreamTrack.
  public enum Kind: String, Hashable, Sendable {
    /// The application enabled the track.
    case enabled
    /// The application disabled the track, which is now silent or black.
    case disabled
    /// Media stopped arriving.
    case mute
    /// Media arrives.
    case unmute
    /// The track has ended.
    case ended
  }

  /// The reason for a change.
  public enum Reason: String, Hashable, Sendable {
    /// The first frame arrived, or the first after a pause.
    case media
    /// The peer's description no longer sends the track.
    case removed
    /// The peer sent BYE for the track's stream.
    case goodbye
    /// The transceiver was stopped, or the application stopped the track.
    case stopped
    /// The connection was closed.
    case closed
  }

  /// The transceiver of the track.
  public var transceiver: UInt32
  /// Whether the track is received rather than sent.
  public var isInbound: Bool
  /// What changed.
  public var kind: Kind
  /// The reason; nil if the application requested it.
  public var reason: Reason?

  /// Creates a change.
  public init(transceiver: UInt32, isInbound: Bool, kind: Kind, reason: Reason? = nil) {
    self.transceiver = transceiver
    self.isInbound = isInbound
    self.kind = kind
    self.reason = reason
  }
}

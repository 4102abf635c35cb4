/// What an application set on a track, and whether it carries anything now.
public struct TrackState: Hashable, Sendable, Codable {
  /// Whether the track is heard or seen; else it is silent or black (W3C enabled).
  public var isEnabled: Bool
  /// The volume of received audio, 0 to 10; 1 leaves it as it is.
  public var volume: Double
  /// Whether nothing comes from the peer at present (W3C muted); false for sent tracks.
  public var isMuted: Bool

  /// Creates the state of a track that was just made.
  public init(isEnabled: Bool = true, volume: Double = 1, isMuted: Bool = false) {
    self.isEnabled = isEnabled
    self.volume = volume
    self.isMuted = isMuted
  }
}

/// Something that became of a track, with the reason if there is one.
public struct TrackChange: Hashable, Sendable {
  /// What became of it; the last three are the events of the W3C's MediaStreamTrack.
  public enum Kind: String, Hashable, Sendable {
    /// The application lets the track be heard or seen again.
    case enabled
    /// The application made the track silent or black.
    case disabled
    /// Nothing comes from the peer any more.
    case mute
    /// Something comes from the peer.
    case unmute
    /// Nothing will ever come again.
    case ended
  }

  /// Why it came about.
  public enum Reason: String, Hashable, Sendable {
    /// The first frame came, or the first after a pause.
    case media
    /// The peer's description sends the track no longer.
    case removed
    /// The peer said goodbye for the track's stream (RTCP BYE).
    case goodbye
    /// The transceiver was stopped, or the application stopped the track.
    case stopped
    /// The connection was closed.
    case closed
  }

  /// The transceiver that carries the track.
  public var transceiver: UInt32
  /// Whether the track is received; else it is sent.
  public var isInbound: Bool
  /// What became of it.
  public var kind: Kind
  /// Why; nil when the application asked for it.
  public var reason: Reason?

  /// Creates a change.
  public init(transceiver: UInt32, isInbound: Bool, kind: Kind, reason: Reason? = nil) {
    self.transceiver = transceiver
    self.isInbound = isInbound
    self.kind = kind
    self.reason = reason
  }
}

public import Media
public import Wire

/// A stream to be sent, with its tracks (the stream API from before transceivers).
public struct MediaStreamInit: Hashable, Sendable, Codable {
  /// A track and where its media comes from.
  public struct Track: Hashable, Sendable, Codable {
    /// Names the track; no other sent track of the connection may have the same name.
    public var id: String
    /// Audio or video frames.
    public var kind: MediaKind
    /// Where the media comes from.
    public var source: MediaSource
    /// Whether it begins enabled; nil: it does.
    public var isEnabled: Bool?

    /// Creates a track.
    public init(id: String, kind: MediaKind, source: MediaSource, isEnabled: Bool? = nil) {
      self.id = id
      self.kind = kind
      self.source = source
      self.isEnabled = isEnabled
    }
  }

  /// Names the stream; no other sent stream of the connection may have the same name.
  public var id: String
  /// The tracks, usually one for audio and one for video frames.
  public var tracks: [Track]

  /// Creates a stream.
  public init(id: String, tracks: [Track]) {
    self.id = id
    self.tracks = tracks
  }
}

/// A stream as it is sent or received (W3C MediaStream).
public struct MediaStreamInfo: Hashable, Sendable, Codable {
  /// A track of the stream.
  public struct Track: Hashable, Sendable, Codable {
    /// Names the track; nil when the peer gave no name.
    public var id: String?
    /// Audio or video frames.
    public var kind: MediaKind
    /// The transceiver that carries it.
    public var transceiver: UInt32

    /// Creates the description of a track.
    public init(id: String?, kind: MediaKind, transceiver: UInt32) {
      self.id = id
      self.kind = kind
      self.transceiver = transceiver
    }
  }

  /// Names the stream.
  public var id: String
  /// The tracks in the order of their transceivers.
  public var tracks: [Track]

  /// Creates the description of a stream.
  public init(id: String, tracks: [Track]) {
    self.id = id
    self.tracks = tracks
  }
}

/// The streams of a connection in both directions.
public struct MediaStreams: Hashable, Sendable, Codable {
  /// What this side sends.
  public var local: [MediaStreamInfo]
  /// What the peer sends.
  public var remote: [MediaStreamInfo]

  /// Creates a list of streams.
  public init(local: [MediaStreamInfo] = [], remote: [MediaStreamInfo] = []) {
    self.local = local
    self.remote = remote
  }
}

extension Array<MediaStreamInfo> {
  /// Adds a track to the streams with these names, which begin with their first track.
  mutating func add(_ track: MediaStreamInfo.Track, to names: [String]) {
    for name in names {
      if let index = firstIndex(where: { $0.id == name }) {
        self[index].tracks.append(track)
      } else {
        append(MediaStreamInfo(id: name, tracks: [track]))
      }
    }
  }
}

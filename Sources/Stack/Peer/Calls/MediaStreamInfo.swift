public import Media
public import Wire

/// A stream to send with its tracks (the stream API from before transceivers).
public struct MediaStreamInit: Hashable, Sendable, Codable {
  /// A track and its source.
  public struct Track: Hashable, Sendable, Codable {
    /// The track's identifier, unique among the connection's sent tracks.
    public var id: String
    /// Audio or video frames.
    public var kind: MediaKind
    /// Where the media comes from.
    public var source: MediaSource
    /// Whether it is enabled at first; nil means yes.
    public var isEnabled: Bool?

    /// Creates a track.
    public init(id: String, kind: MediaKind, source: MediaSource, isEnabled: Bool? = nil) {
      self.id = id
      self.kind = kind
      self.source = source
      self.isEnabled = isEnabled
    }
  }

  /// The stream's identifier, unique among the connection's sent streams.
  public var id: String
  /// The tracks, usually one of audio and one of video.
  public var tracks: [Track]

  /// Creates a stream.
  public init(id: String, tracks: [Track]) {
    self.id = id
    self.tracks = tracks
  }
}

/// A stream that is sent or received (W3C MediaStream).
public struct MediaStreamInfo: Hashable, Sendable, Codable {
  /// A track of the stream.
  public struct Track: Hashable, Sendable, Codable {
    /// The track's identifier; nil if the peer stated none.
    public var id: String?
    /// Audio or video frames.
    public var kind: MediaKind
    /// The transceiver of the track.
    public var transceiver: UInt32

    /// Creates the description of a track.
    public init(id: String?, kind: MediaKind, transceiver: UInt32) {
      self.id = id
      self.kind = kind
      self.transceiver = transceiver
    }
  }

  /// The stream's identifier.
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
  /// The streams sent.
  public var local: [MediaStreamInfo]
  /// The streams received.
  public var remote: [MediaStreamInfo]

  /// Creates a list of streams.
  public init(local: [MediaStreamInfo] = [], remote: [MediaStreamInfo] = []) {
    self.local = local
    self.remote = remote
  }
}

extension Array<MediaStreamInfo> {
  /// Adds a track to the streams with these identifiers, creating those that are missing.
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

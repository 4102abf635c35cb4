import JSEP
public import Media
public import Wire

// The stream API from before transceivers.
extension PeerStack {
  /// The streams that transceivers send and receive.
  func streams() -> MediaStreams {
    var streams = MediaStreams()
    for transceiver in negotiation.transceivers {
      if transceiver.hasLocalTrack {
        streams.local.add(
          MediaStreamInfo.Track(
            id: transceiver.trackID, kind: transceiver.kind, transceiver: transceiver.id),
          to: transceiver.streamIDs)
      }
      if transceiver.remoteTrackIsLive {
        streams.remote.add(
          MediaStreamInfo.Track(
            id: transceiver.remoteTrackID, kind: transceiver.kind, transceiver: transceiver.id),
          to: transceiver.remoteStreamIDs)
      }
    }
    return streams
  }

  /// Adds all tracks of a stream, or none.
  func addStream(_ stream: MediaStreamInit) throws(PeerError) -> MediaStreams {
    guard !stream.tracks.isEmpty else {
      throw PeerError(name: "InvalidAccessError", message: "the stream \(stream.id) has no track")
    }
    guard !streams().local.contains(where: { $0.id == stream.id }) else {
      throw PeerError(
        name: PeerError.duplicateIDName,
        message: "a stream with the identifier \(stream.id) is sent already")
    }
    // The negotiation is a value, so a failure half-way leaves nothing behind.
    var next = negotiation
    var added: [(UInt32, MediaStreamInit.Track)] = []
    for track in stream.tracks {
      let id = try mapped { () throws(JSEPError) in
        try next.addTransceiver(
          kind: track.kind, direction: .sendrecv, streamIDs: [stream.id], byAddTrack: true,
          trackID: track.id)
      }
      added.append((id, track))
    }
    negotiation = next
    for (id, track) in added {
      setSource(track.source, of: id, track.kind, isEnabled: track.isEnabled ?? true)
    }
    return streams()
  }

  /// Stops sending the tracks of a stream, except for those in other streams.
  func removeStream(_ id: String) throws(PeerError) {
    let members = negotiation.transceivers.filter { $0.hasLocalTrack && $0.streamIDs.contains(id) }
    guard !members.isEmpty else {
      throw PeerError(
        name: "InvalidAccessError", message: "no stream with the identifier \(id) is sent")
    }
    for member in members {
      let others = member.streamIDs.filter { $0 != id }
      if others.isEmpty || member.isStopping {
        try removeTrack(member.id)
      } else {
        try mapped { () throws(JSEPError) in try negotiation.setStreams(others, of: member.id) }
      }
    }
  }

  /// Reports which of the peer's streams began or ended since the last time.
  func reportStreams() {
    guard !life.isClosed else { return }
    for event in remoteStreams.follow(streams().remote) { emit(event) }
  }
}

/// The peer's streams as last reported.
struct RemoteStreams {
  private var reported: [MediaStreamInfo] = []

  /// Compares the current streams with the last ones; returns which began and which ended.
  mutating func follow(_ streams: [MediaStreamInfo]) -> [PeerEvent] {
    defer { reported = streams }
    let added = streams.filter { stream in !reported.contains { $0.id == stream.id } }
    let removed = reported.filter { stream in !streams.contains { $0.id == stream.id } }
    return added.map { .streamAdded($0) } + removed.map { .streamRemoved(id: $0.id) }
  }
}

// MARK: - MediaStreamInfo

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

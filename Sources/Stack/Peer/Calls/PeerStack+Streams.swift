import JSEP
public import Media
public import Wire

// The stream API from before transceivers.
extension PeerStack {
  /// Returns the streams that transceivers send and receive.
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

  /// Adds all of a stream's tracks, or none.
  func addStream(_ stream: MediaStreamInit) throws(PeerError) -> MediaStreams {
    guard !stream.tracks.isEmpty else {
      throw PeerError(name: "InvalidAccessError", message: "the stream \(stream.id) has no track")
    }
    guard !streams().local.contains(where: { $0.id == stream.id }) else {
      throw PeerError(
        name: PeerError.duplicateIDName,
        message: "a stream with the identifier \(stream.id) is sent already")
    }
    // The negotiation is a value, so a failure half-way leaves no trace.
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

  /// Stops sending a stream's tracks, except for those that belong to other streams as well.
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

  /// Reports the remote streams that began or ended since the last report.
  func reportStreams() {
    guard !life.isClosed else { return }
    for event in remoteStreams.follow(streams().remote) { emit(event) }
  }
}

/// The remote peer's streams as last reported.
struct RemoteStreams {
  private var reported: [MediaStreamInfo] = []

  /// Compares the current streams with the last ones; returns the events for those that began or
  /// ended.
  mutating func follow(_ streams: [MediaStreamInfo]) -> [PeerEvent] {
    defer { reported = streams }
    let added = streams.filter { stream in !reported.contains { $0.id == stream.id } }
    let removed = reported.filter { stream in !streams.contains { $0.id == stream.id } }
    return added.map { .streamAdded($0) } + removed.map { .streamRemoved(id: $0.id) }
  }
}

// MARK: - MediaStreamInfo

/// A stream to send, with its tracks (the stream API from before transceivers).
public struct MediaStreamInit: Hashable, Sendable, Codable {
  /// A track and its source.
  public struct Track: Hashable, Sendable, Codable {
    /// The track's identifier, unique among the connection's local tracks.
    public var id: String
    /// Audio or video.
    public var kind: MediaKind
    /// The source of the media.
    public var source: MediaSource
    /// Whether the track is enabled initially; nil means yes.
    public var isEnabled: Bool?

    /// Creates a track.
    public init(id: String, kind: MediaKind, source: MediaSource, isEnabled: Bool? = nil) {
      self.id = id
      self.kind = kind
      self.source = source
      self.isEnabled = isEnabled
    }
  }

  /// The stream's identifier, unique among the connection's local streams.
  public var id: String
  /// The tracks, usually an audio track and a video track.
  public var tracks: [Track]

  /// Creates a stream.
  public init(id: String, tracks: [Track]) {
    self.id = id
    self.tracks = tracks
  }
}

/// A local or remote stream (W3C MediaStream).
public struct MediaStreamInfo: Hashable, Sendable, Codable {
  /// One of the stream's tracks.
  public struct Track: Hashable, Sendable, Codable {
    /// The track's identifier; nil if the remote peer stated none.
    public var id: String?
    /// Audio or video.
    public var kind: MediaKind
    /// The track's transceiver.
    public var transceiver: UInt32

    /// Creates a track's description.
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

  /// Creates a description from a stream's identifier and its tracks, in their transceivers' order.
  public init(id: String, tracks: [Track]) {
    self.id = id
    self.tracks = tracks
  }
}

/// A connection's streams in both directions.
public struct MediaStreams: Hashable, Sendable, Codable {
  /// The streams that are sent.
  public var local: [MediaStreamInfo]
  /// The streams that are received.
  public var remote: [MediaStreamInfo]

  /// Creates a list of streams.
  public init(local: [MediaStreamInfo] = [], remote: [MediaStreamInfo] = []) {
    self.local = local
    self.remote = remote
  }
}

extension Array<MediaStreamInfo> {
  /// Adds a track to the streams with the given identifiers, and creates missing streams.
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

import JSEP
public import Media
public import Wire

// The older API, from before transceivers, which adds and removes whole streams.
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
    // The tracks are added to a copy, so a failure half-way leaves the negotiation unchanged.
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

  /// Stops sending a stream's tracks, except for tracks that also belong to other streams.
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

  /// Compares the current streams with the last ones; returns the events for the streams that began
  /// or ended.
  mutating func follow(_ streams: [MediaStreamInfo]) -> [PeerEvent] {
    defer { reported = streams }
    let added = streams.filter { stream in !reported.contains { $0.id == stream.id } }
    let removed = reported.filter { stream in !streams.contains { $0.id == stream.id } }
    return added.map { .streamAdded($0) } + removed.map { .streamRemoved(id: $0.id) }
  }
}

// MARK: - MediaStreamInfo

/// A local stream with its tracks, the argument of `addStream`.
public struct MediaStreamInit: Hashable, Sendable, Codable {
  /// A track to send, with the source of its media.
  public struct Track: Hashable, Sendable, Codable {
    /// The track's identifier, unique among the connection's local tracks.
    public var id: String
    /// Whether the track is audio or video.
    public var kind: MediaKind
    /// Where the media comes from: the application, the stack, or the same transceiver's received
    /// media.
    public var source: MediaSource
    /// Whether the track is enabled initially; nil means yes.
    public var isEnabled: Bool?

    /// Creates a track to send; it is enabled unless stated otherwise.
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

  /// Creates a stream to send, for `addStream`.
  public init(id: String, tracks: [Track]) {
    self.id = id
    self.tracks = tracks
  }
}

/// A local or remote stream (W3C MediaStream).
public struct MediaStreamInfo: Hashable, Sendable, Codable {
  /// A track of a stream, and the transceiver that sends or receives it.
  public struct Track: Hashable, Sendable, Codable {
    /// The track's identifier; nil if the remote peer stated none.
    public var id: String?
    /// Whether the track is audio or video.
    public var kind: MediaKind
    /// The number of the transceiver that sends or receives the track.
    public var transceiver: UInt32

    /// Creates an entry of a stream's `tracks`.
    public init(id: String?, kind: MediaKind, transceiver: UInt32) {
      self.id = id
      self.kind = kind
      self.transceiver = transceiver
    }
  }

  /// The stream's identifier, the first part of its tracks' `a=msid` (RFC 8830).
  public var id: String
  /// The tracks in the order of their transceivers.
  public var tracks: [Track]

  /// Creates a stream whose tracks are in the order of their transceivers.
  public init(id: String, tracks: [Track]) {
    self.id = id
    self.tracks = tracks
  }
}

/// A connection's streams in both directions.
public struct MediaStreams: Hashable, Sendable, Codable {
  /// The streams that this peer sends.
  public var local: [MediaStreamInfo]
  /// The streams that the remote peer sends.
  public var remote: [MediaStreamInfo]

  /// Creates the streams of a connection, by default none.
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

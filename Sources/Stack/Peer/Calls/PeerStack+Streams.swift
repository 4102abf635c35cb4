import JSEP
import Wire

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

import Media
import Peer
import Synchronization
import Wire

/// A connection's track and stream objects, and its delegate.
///
/// The loop's thread updates received tracks; any thread may update sent ones. No lock is held
/// while the delegate is called, so it may call the connection.
final class TrackRegistry: Sendable {
  fileprivate struct Sent {
    let transceiver: UInt32
    /// The track that the transceiver sends; nil while it sends nothing.
    var track: (any SentTrack)?
    let streamIDs: [String]
  }

  fileprivate struct State {
    weak var connection: PeerConnection?
    weak var delegate: (any PeerConnectionDelegate)?
    var sent: [Sent] = []
    /// Local streams, including those whose tracks are no longer sent.
    var localStreams: [MediaStream] = []
    var received: [any ReceivedTrack] = []
    var remoteStreams: [MediaStream] = []
  }

  private let state = Mutex(State())

  func belong(to connection: PeerConnection) { state.withLock { $0.connection = connection } }

  var delegate: (any PeerConnectionDelegate)? {
    get { state.withLock { $0.delegate } }
    set { state.withLock { $0.delegate = newValue } }
  }

  /// The connection and its delegate, if both exist.
  private var audience: (PeerConnection, any PeerConnectionDelegate)? {
    state.withLock { state in
      guard let connection = state.connection, let delegate = state.delegate else { return nil }
      return (connection, delegate)
    }
  }

  // MARK: Sent tracks

  var localStreams: [MediaStream] {
    state.withLock { state in
      state.localStreams.filter { stream in
        state.sent.contains { $0.streamIDs.contains(stream.id) }
      }
    }
  }

  /// The transceivers to which tracks were added, in the order of the additions, including those
  /// that now send nothing.
  var sendingTransceivers: [UInt32] { state.withLock { $0.sent.map(\.transceiver) } }

  func sentTrack(on transceiver: UInt32) -> (any MediaStreamTrack)? {
    state.withLock { state in state.sent.first { $0.transceiver == transceiver }?.track }
  }

  /// Records that a transceiver sends a track, replacing the previous one; without stream
  /// identifiers, its streams stay the same.
  func attach(
    _ track: any SentTrack, _ transceiver: UInt32, streamIDs: [String]?,
    streams: [MediaStream] = []
  ) {
    let (before, connection) = state.withLock { state in
      let index = state.sent.firstIndex { $0.transceiver == transceiver }
      let before = index.map { state.sent[$0] }
      let ids = streamIDs ?? before?.streamIDs ?? []
      let entry = Sent(transceiver: transceiver, track: track, streamIDs: ids)
      if let index { state.sent[index] = entry } else { state.sent.append(entry) }
      for id in ids {
        if let given = streams.first(where: { $0.id == id }) {
          state.localStreams.removeAll { $0.id == id }
          state.localStreams.append(given)
        } else if let known = state.localStreams.first(where: { $0.id == id }) {
          known.insert(track)
        } else {
          let made = MediaStream(id: id)
          made.insert(track)
          state.localStreams.append(made)
        }
      }
      return (before?.track, state.connection)
    }
    guard let connection else { return }
    before?.core.detach(connection, transceiver)
    track.core.attach(connection, transceiver)
  }

  /// Records that transceivers no longer send a track.
  func detach(where isGone: (UInt32) -> Bool) {
    let (gone, connection) = state.withLock { state in
      let gone = state.sent.filter { isGone($0.transceiver) }
      state.sent.removeAll { isGone($0.transceiver) }
      return (gone, state.connection)
    }
    for entry in gone {
      if let connection {
        entry.track?.core.detach(connection, entry.transceiver)
      } else {
        entry.track?.core.connectionIsGone()
      }
    }
  }

  /// Records that a transceiver currently sends nothing.
  private func release(_ transceiver: UInt32) {
    let (track, connection) = state.withLock { state -> ((any SentTrack)?, PeerConnection?) in
      guard let index = state.sent.firstIndex(where: { $0.transceiver == transceiver }) else {
        return (nil, state.connection)
      }
      defer { state.sent[index].track = nil }
      return (state.sent[index].track, state.connection)
    }
    if let connection { track?.core.detach(connection, transceiver) }
  }

  /// Updates the registry after a successful call.
  func performed(_ call: PeerCall) {
    switch call {
    case .removeTrack(let id), .stopTransceiver(let id): detach { $0 == id }
    case .replaceSource(let id, _, _): release(id)
    default: break
    }
  }

  // MARK: Received tracks

  var remoteStreams: [MediaStream] { state.withLock { $0.remoteStreams } }
  var receivedTracks: [any MediaStreamTrack] { state.withLock { $0.received } }

  func receivedTrack(on transceiver: UInt32) -> (any ReceivedTrack)? {
    state.withLock { state in state.received.last { $0.core.transceiver == transceiver } }
  }

  /// Passes media to its track.
  func deliver(_ media: ReceivedMedia) { receivedTrack(on: media.transceiver)?.receive(media) }

  /// Adds, removes and updates tracks and streams as an event requires, then notifies the delegate.
  func receive(_ news: PeerConnectionNews) {
    guard case .event(let event) = news else { return }
    switch event {
    case .track(let info): addTrack(info)
    case .trackEnded(let transceiver): removeTrack(transceiver)
    case .streamAdded(let info):
      let stream = stream(info.id)
      guard let (connection, delegate) = audience else { break }
      delegate.peerConnection(connection, didAdd: stream)
    case .streamRemoved(let id): removeStream(id)
    case .trackChanged(let change) where change.isInbound: follow(change)
    default: break
    }
    notify(event)
  }

  /// Returns the peer's stream with this identifier, and creates it if necessary.
  private func stream(_ id: String) -> MediaStream {
    state.withLock { $0.remoteStream(id) }
  }

  private func addTrack(_ info: TransceiverInfo) {
    let streams = state.withLock { state in
      let id = info.remoteTrackID ?? "track-\(info.id)"
      let known = state.received.last { $0.core.transceiver == info.id && $0.id == id }
      let isLive = known?.core.condition.withLock { $0.readyState == .live } ?? false
      let track = known.flatMap { isLive ? $0 : nil } ?? state.newTrack(id, info)
      let streams = info.remoteStreamIDs.map { state.remoteStream($0) }
      for stream in state.remoteStreams {
        if streams.contains(where: { $0 === stream }) {
          stream.insert(track)
        } else {
          stream.removeTrack(track)
        }
      }
      return streams
    }
    guard let (connection, delegate) = audience else { return }
    let transceiver = RTPTransceiver(connection: connection, id: info.id)
    delegate.peerConnection(connection, didStartReceivingOn: transceiver)
    delegate.peerConnection(connection, didAdd: transceiver.receiver, streams: streams)
  }

  private func removeTrack(_ transceiver: UInt32) {
    guard let track = receivedTrack(on: transceiver) else { return }
    for stream in remoteStreams { stream.removeTrack(track) }
    track.core.condition.withLock { $0.setMuted(true, .removed) }
    guard let (connection, delegate) = audience else { return }
    let receiver = RTPReceiver(connection: connection, transceiver: transceiver)
    delegate.peerConnection(connection, didRemove: receiver)
  }

  private func removeStream(_ id: String) {
    let stream = state.withLock { state in
      let index = state.remoteStreams.firstIndex { $0.id == id }
      return index.map { state.remoteStreams.remove(at: $0) }
    }
    guard let stream, let (connection, delegate) = audience else { return }
    delegate.peerConnection(connection, didRemove: stream)
  }

  private func follow(_ change: TrackChange) {
    guard let track = receivedTrack(on: change.transceiver) else { return }
    switch change.kind {
    case .mute: track.core.condition.withLock { $0.setMuted(true, change.reason) }
    case .unmute: track.core.condition.withLock { $0.setMuted(false, nil) }
    case .ended:
      if track.core.condition.withLock({ $0.end(change.reason) }) { track.didEnd() }
    case .enabled, .disabled: break
    }
  }

  /// Ends all tracks because the connection is closed.
  func finish() {
    for track in state.withLock({ $0.received }) {
      if track.core.condition.withLock({ $0.end(.closed) }) { track.didEnd() }
    }
    detach { _ in true }
  }

  private func notify(_ event: PeerConnectionEvent) {
    guard let (connection, delegate) = audience else { return }
    switch event {
    case .signalingState(let state): delegate.peerConnection(connection, didChange: state)
    case .iceConnectionState(let state): delegate.peerConnection(connection, didChange: state)
    case .iceGatheringState(let state): delegate.peerConnection(connection, didChange: state)
    case .connectionState(let state): delegate.peerConnection(connection, didChange: state)
    case .negotiationNeeded: delegate.peerConnectionShouldNegotiate(connection)
    case .iceCandidate(let candidate?):
      delegate.peerConnection(connection, didGenerate: candidate)
    case .iceCandidatesRemoved(let candidates):
      delegate.peerConnection(connection, didRemove: candidates)
    case .iceCandidateError(let error): delegate.peerConnection(connection, didFailToGather: error)
    case .selectedCandidatePair(let change):
      delegate.peerConnection(connection, didChangeSelectedPair: change)
    case .dataChannel(let channel): delegate.peerConnection(connection, didOpen: channel)
    case .mutedSpeech(let transceiver, let isSpeaking):
      delegate.peerConnection(
        connection, didNoticeMutedSpeech: isSpeaking, transceiver: transceiver)
    case .connectionEnded(let reason): delegate.peerConnection(connection, didEnd: reason)
    default: break
    }
  }
}

extension TrackRegistry.State {
  /// Returns the peer's stream with this identifier, and creates it if necessary.
  fileprivate mutating func remoteStream(_ id: String) -> MediaStream {
    if let known = remoteStreams.first(where: { $0.id == id }) { return known }
    let made = MediaStream(id: id, isRemote: true)
    remoteStreams.append(made)
    return made
  }

  fileprivate mutating func newTrack(_ id: String, _ info: TransceiverInfo) -> any ReceivedTrack {
    let core = RemoteTrackCore(id: id, transceiver: info.id, of: connection)
    let track: any ReceivedTrack =
      info.kind == .audio ? RemoteAudioTrack(core) : RemoteVideoTrack(core)
    received.removeAll { $0.core.transceiver == info.id }
    received.append(track)
    return track
  }
}

import Synchronization

/// Tracks that belong together, usually one audio and one video track.
public final class RTCMediaStream: Sendable {
  private struct State {
    var audioTracks: [RTCAudioTrack] = []
    var videoTracks: [RTCVideoTrack] = []
    var followers: [Follower] = []
  }

  private struct Follower: Sendable {
    weak var connection: RTCPeerConnection?
  }

  /// The identifier of the stream.
  public let streamId: String
  private let state = Mutex(State())

  init(streamId: String) { self.streamId = streamId }

  /// The audio tracks in the order in which they were added.
  public var audioTracks: [RTCAudioTrack] { state.withLock { $0.audioTracks } }
  /// The video tracks in the order in which they were added.
  public var videoTracks: [RTCVideoTrack] { state.withLock { $0.videoTracks } }

  /// Adds an audio track; connections that send the stream send it too.
  public func addAudioTrack(_ audioTrack: RTCAudioTrack) {
    add(audioTrack, to: \.audioTracks)
  }

  /// Adds a video track; connections that send the stream send it too.
  public func addVideoTrack(_ videoTrack: RTCVideoTrack) {
    add(videoTrack, to: \.videoTracks)
  }

  /// Removes an audio track; connections that send the stream stop sending it.
  public func removeAudioTrack(_ audioTrack: RTCAudioTrack) {
    remove(audioTrack, from: \.audioTracks)
  }

  /// Removes a video track; connections that send the stream stop sending it.
  public func removeVideoTrack(_ videoTrack: RTCVideoTrack) {
    remove(videoTrack, from: \.videoTracks)
  }

  private func add<Track: RTCMediaStreamTrack>(
    _ track: Track, to place: WritableKeyPath<State, [Track]>
  ) {
    let followers = state.withLock { state -> [Follower] in
      guard !state[keyPath: place].contains(where: { $0 === track }) else { return [] }
      state[keyPath: place].append(track)
      return state.followers
    }
    for follower in followers { follower.connection?.stream(self, got: track) }
  }

  private func remove<Track: RTCMediaStreamTrack>(
    _ track: Track, from place: WritableKeyPath<State, [Track]>
  ) {
    let followers = state.withLock { state -> [Follower] in
      guard state[keyPath: place].contains(where: { $0 === track }) else { return [] }
      state[keyPath: place].removeAll { $0 === track }
      return state.followers
    }
    for follower in followers { follower.connection?.stream(self, lost: track) }
  }

  // MARK: Connections

  /// The tracks, audio first.
  var localTracks: [RTCMediaStreamTrack] {
    state.withLock { state in state.audioTracks + state.videoTracks }
  }

  /// Makes a connection send tracks that are added from now on.
  func follow(_ connection: RTCPeerConnection) {
    state.withLock { $0.followers.append(Follower(connection: connection)) }
  }

  func leave(_ connection: RTCPeerConnection) {
    state.withLock { state in
      state.followers.removeAll { $0.connection == nil || $0.connection === connection }
    }
  }

  /// A track was added to a remote stream.
  func received(_ track: RTCMediaStreamTrack) {
    if let track = track as? RTCAudioTrack { addAudioTrack(track) }
    if let track = track as? RTCVideoTrack { addVideoTrack(track) }
  }

  /// A track was removed from a remote stream.
  func lost(_ track: RTCMediaStreamTrack) {
    if let track = track as? RTCAudioTrack { removeAudioTrack(track) }
    if let track = track as? RTCVideoTrack { removeVideoTrack(track) }
  }
}

extension RTCMediaStream: Hashable {
  /// Whether both are the same object.
  public static func == (left: RTCMediaStream, right: RTCMediaStream) -> Bool { left === right }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

import Synchronization

/// Tracks that belong together, usually one of audio and one of video frames.
public final class RTCMediaStream: Sendable {
  private struct State {
    var audioTracks: [RTCAudioTrack] = []
    var videoTracks: [RTCVideoTrack] = []
    var followers: [Follower] = []
  }

  private struct Follower: Sendable {
    weak var connection: RTCPeerConnection?
  }

  /// Names the stream.
  public let streamId: String
  private let state = Mutex(State())

  init(streamId: String) { self.streamId = streamId }

  /// The tracks of audio in the order in which they were added.
  public var audioTracks: [RTCAudioTrack] { state.withLock { $0.audioTracks } }
  /// The tracks of video frames in the order in which they were added.
  public var videoTracks: [RTCVideoTrack] { state.withLock { $0.videoTracks } }

  /// Adds a track of audio; connections that send the stream send it too.
  public func addAudioTrack(_ audioTrack: RTCAudioTrack) {
    add(audioTrack, to: \.audioTracks)
  }

  /// Adds a track of video frames; connections that send the stream send it too.
  public func addVideoTrack(_ videoTrack: RTCVideoTrack) {
    add(videoTrack, to: \.videoTracks)
  }

  /// Removes a track of audio; connections that send the stream no longer send it.
  public func removeAudioTrack(_ audioTrack: RTCAudioTrack) {
    remove(audioTrack, from: \.audioTracks)
  }

  /// Removes a track of video frames; connections that send the stream no longer send it.
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

  /// Lets a connection send what is added from now on.
  func follow(_ connection: RTCPeerConnection) {
    state.withLock { $0.followers.append(Follower(connection: connection)) }
  }

  func leave(_ connection: RTCPeerConnection) {
    state.withLock { state in
      state.followers.removeAll { $0.connection == nil || $0.connection === connection }
    }
  }

  /// A stream of the peer has a track.
  func received(_ track: RTCMediaStreamTrack) {
    if let track = track as? RTCAudioTrack { addAudioTrack(track) }
    if let track = track as? RTCVideoTrack { addVideoTrack(track) }
  }

  /// A stream of the peer has a track no longer.
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

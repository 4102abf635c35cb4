import Live
import Media
import Peer
import Synchronization
import Wire

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

  /// The stream's identifier.
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

  /// Adds a received track to a remote stream.
  func received(_ track: RTCMediaStreamTrack) {
    if let track = track as? RTCAudioTrack { addAudioTrack(track) }
    if let track = track as? RTCVideoTrack { addVideoTrack(track) }
  }

  /// Removes a track from a remote stream.
  func lost(_ track: RTCMediaStreamTrack) {
    if let track = track as? RTCAudioTrack { removeAudioTrack(track) }
    if let track = track as? RTCVideoTrack { removeVideoTrack(track) }
  }
}

extension RTCMediaStream: Hashable {
  /// Returns whether both are the same object.
  public static func == (left: RTCMediaStream, right: RTCMediaStream) -> Bool { left === right }

  /// Hashes the object's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// MARK: - RTCMediaStreamTrack

/// An audio track's `kind`.
public let kRTCMediaStreamTrackKindAudio = "audio"
/// A video track's `kind`.
public let kRTCMediaStreamTrackKindVideo = "video"

/// Whether a track can still produce media, numbered as in the Objective-C header.
public enum RTCMediaStreamTrackState: Int, Sendable {
  /// The track can produce media.
  case live
  /// The track produces no more media.
  case ended
}

/// Whether a source produces media, numbered as in the Objective-C header.
public enum RTCSourceState: Int, Sendable {
  /// The source has not started.
  case initializing
  /// The source produces media.
  case live
  /// The source produces no more media.
  case ended
  /// The source currently produces no media.
  case muted
}

/// A global actor that makes classes with subclasses Sendable; all their members are nonisolated.
@globalActor public actor RTCMediaObjects {
  /// The shared actor.
  public static let shared = RTCMediaObjects()
}

/// A track's source: an `RTCAudioSource` or an `RTCVideoSource`.
@RTCMediaObjects public class RTCMediaSource {
  /// The transceiver that receives the source's media; nil for a local source.
  nonisolated let inlet: TrackCore.Place?

  nonisolated init(received inlet: TrackCore.Place?) { self.inlet = inlet }

  /// The source's state; a remote source is live until its connection closes.
  nonisolated public final var state: RTCSourceState {
    inlet?.connection.connectionState == .closed ? .ended : .live
  }
}

/// A local or remote track: an `RTCAudioTrack` or an `RTCVideoTrack`.
@RTCMediaObjects public class RTCMediaStreamTrack {
  nonisolated let core: TrackCore

  nonisolated init(_ core: TrackCore) { self.core = core }

  /// The track's kind, `audio` or `video`.
  nonisolated public final var kind: String {
    core.kind == .audio ? kRTCMediaStreamTrackKindAudio : kRTCMediaStreamTrackKindVideo
  }
  /// The track's identifier.
  nonisolated public final var trackId: String { core.id }
  /// Whether the track is enabled; a disabled track is silent or black, but its packets continue.
  nonisolated public final var isEnabled: Bool {
    get { core.isEnabled }
    set { core.isEnabled = newValue }
  }
  /// Whether a received track can still produce media.
  nonisolated public final var readyState: RTCMediaStreamTrackState { core.readyState }
}

extension RTCMediaStreamTrack: Hashable {
  /// Returns whether both are the same object.
  nonisolated public static func == (
    left: RTCMediaStreamTrack, right: RTCMediaStreamTrack
  ) -> Bool { left === right }

  /// Hashes the object's identity.
  nonisolated public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(self))
  }
}

// MARK: - RTCAudioTrack

/// An audio track's source: the factory's microphone, or the peer.
public final class RTCAudioSource: RTCMediaSource {
  nonisolated let mediaSource: MediaSource?
  /// The audio device that supplies the source, if any.
  nonisolated let lines: AudioLines?
  nonisolated private let gain = Mutex(1.0)

  nonisolated init(_ mediaSource: MediaSource, _ lines: AudioLines?) {
    self.mediaSource = mediaSource
    self.lines = lines
    super.init(received: nil)
  }

  nonisolated override init(received inlet: TrackCore.Place?) {
    mediaSource = nil
    lines = nil
    super.init(received: inlet)
  }

  /// The volume of received audio, 0 to 10; other values are clamped.
  ///
  /// A microphone's volume cannot be changed and stays 1.
  nonisolated public var volume: Double {
    get { gain.withLock { $0 } }
    set {
      guard let inlet, !newValue.isNaN else { return }
      let volume = min(max(newValue, 0), 10)
      let isNew = gain.withLock { gain in
        defer { gain = volume }
        return gain != volume
      }
      if isNew { inlet.post(.setVolume(transceiver: inlet.transceiver, volume: volume)) }
    }
  }
}

/// A local or received audio track.
public final class RTCAudioTrack: RTCMediaStreamTrack {
  /// The source that supplies the audio.
  nonisolated public let source: RTCAudioSource

  nonisolated init(_ source: RTCAudioSource, trackId: String) {
    self.source = source
    super.init(TrackCore(id: trackId, kind: .audio, source: source.mediaSource ?? .application))
  }

  nonisolated init(received trackId: String, at inlet: TrackCore.Place) {
    source = RTCAudioSource(received: inlet)
    super.init(TrackCore(id: trackId, kind: .audio, received: inlet))
  }
}

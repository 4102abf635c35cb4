public import Peer
import Synchronization
import Wire

/// Handlers for switching the audio or video of a stream on or off.
public struct MediaStreamHandlers: Sendable {
  /// The audio.
  public var onSwitchAudio: (@Sendable (_ isEnabled: Bool) -> Void)?
  /// The video frames.
  public var onSwitchVideo: (@Sendable (_ isEnabled: Bool) -> Void)?

  /// Creates handlers that do nothing.
  public init() {}
}

/// Tracks that belong together (W3C MediaStream): local ones that a connection sends, or the
/// peer's.
///
/// A stream's identifier is unique in a connection. Where a peer names its streams after the
/// connections they come from (`msid`), streams can be found by these.
public final class MediaStream: Sendable {
  private struct State {
    var tracks: [any MediaStreamTrack] = []
    var handlers = MediaStreamHandlers()
  }

  /// The stream's identifier.
  public let id: String
  /// Whether the peer sends it.
  public let isRemote: Bool
  private let state = Mutex(State())

  /// Creates a local stream without tracks.
  public convenience init(id: String) { self.init(id: id, isRemote: false) }

  init(id: String, isRemote: Bool) {
    self.id = id
    self.isRemote = isRemote
  }

  // MARK: Tracks

  /// All tracks in the order in which they were added.
  public var tracks: [any MediaStreamTrack] { state.withLock { $0.tracks } }
  /// The tracks of audio.
  public var audioTracks: [any MediaStreamTrack] { tracks.filter { $0.kind == .audio } }
  /// The tracks of video frames.
  public var videoTracks: [any MediaStreamTrack] { tracks.filter { $0.kind == .video } }

  /// A track by its identifier (W3C getTrackById).
  public func track(id: String) -> (any MediaStreamTrack)? { tracks.first { $0.id == id } }

  /// Adds a track; connections that send the stream are not affected.
  /// - Throws: `DuplicateIDError` if another track of the stream has its identifier; the same track
  ///   again has no effect. `InvalidAccessError` for a track of the other direction.
  public func addTrack(_ track: any MediaStreamTrack) throws(PeerError) {
    guard (track is any SentTrack) != isRemote else {
      throw PeerError(
        name: "InvalidAccessError", message: "own and received tracks make streams of their own")
    }
    let isDuplicate = insert(track)
    guard !isDuplicate else {
      throw PeerError(
        name: PeerError.duplicateIDName,
        message: "the stream \(id) has another track with the identifier \(track.id)")
    }
  }

  /// Removes a track; connections that send the stream are not affected.
  public func removeTrack(_ track: any MediaStreamTrack) {
    state.withLock { state in state.tracks.removeAll { $0 === track } }
  }

  /// Adds a track; returns whether another one has its identifier.
  @discardableResult
  func insert(_ track: any MediaStreamTrack) -> Bool {
    state.withLock { state in
      guard let known = state.tracks.first(where: { $0.id == track.id }) else {
        state.tracks.append(track)
        return false
      }
      return known !== track
    }
  }

  // MARK: Switching

  /// The handlers for switching by this object.
  public var handlers: MediaStreamHandlers {
    get { state.withLock { $0.handlers } }
    set { state.withLock { $0.handlers = newValue } }
  }

  /// Whether the audio is enabled; false without audio.
  ///
  /// No effect if unchanged, or without a track.
  public var audioEnabled: Bool {
    get { audioTracks.first?.isEnabled ?? false }
    set {
      guard setEnabled(newValue, audioTracks) else { return }
      handlers.onSwitchAudio?(newValue)
      for renderer in renderers { renderer.onSwitch(audio: newValue) }
    }
  }

  /// Whether the video is enabled; false without video.
  ///
  /// No effect if unchanged, or without a track.
  public var videoEnabled: Bool {
    get { videoTracks.first?.isEnabled ?? false }
    set {
      guard setEnabled(newValue, videoTracks) else { return }
      handlers.onSwitchVideo?(newValue)
      for renderer in renderers { renderer.onSwitch(video: newValue) }
    }
  }

  /// The volume of received audio, 0 to 10; nil without audio.
  ///
  /// Setting nil has no effect. Sent audio has no volume.
  public var remoteAudioVolume: Double? {
    get { remoteAudioTracks.first?.volume }
    set { for track in remoteAudioTracks { track.volume = newValue } }
  }

  private var remoteAudioTracks: [RemoteAudioTrack] {
    tracks.compactMap { $0 as? RemoteAudioTrack }
  }

  private var renderers: [any VideoRenderer] {
    tracks.flatMap { track -> [any VideoRenderer] in
      switch track {
      case let track as RemoteVideoTrack: track.shownBy
      case let track as LocalVideoTrack: track.core.renderers.withLock { $0.all }
      default: []
      }
    }
  }

  private func setEnabled(_ isEnabled: Bool, _ tracks: [any MediaStreamTrack]) -> Bool {
    let others = tracks.filter { $0.isEnabled != isEnabled }
    for track in others { track.isEnabled = isEnabled }
    return !others.isEmpty
  }
}

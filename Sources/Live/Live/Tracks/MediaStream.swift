public import Peer
import Synchronization
import Wire

/// What is called when the audio or the video frames of a stream are switched on or off.
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
/// The identifier of a stream is unique in a connection; a peer that names its streams by the
/// connections that they come from (`msid`) is found by it.
public final class MediaStream: Sendable {
  private struct State {
    var tracks: [any MediaStreamTrack] = []
    var handlers = MediaStreamHandlers()
  }

  /// Names the stream.
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

  /// All tracks, in the order in which they were added.
  public var tracks: [any MediaStreamTrack] { state.withLock { $0.tracks } }
  /// The tracks of audio.
  public var audioTracks: [any MediaStreamTrack] { tracks.filter { $0.kind == .audio } }
  /// The tracks of video frames.
  public var videoTracks: [any MediaStreamTrack] { tracks.filter { $0.kind == .video } }

  /// A track by its name (W3C getTrackById).
  public func track(id: String) -> (any MediaStreamTrack)? { tracks.first { $0.id == id } }

  /// Adds a track; connections that send the stream continue as they are.
  /// - Throws: `DuplicateIDError` when another track of the stream has its name; the same track
  ///   again does nothing. `InvalidAccessError` for a track of the other direction.
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

  /// Takes a track out; connections that send the stream continue as they are.
  public func removeTrack(_ track: any MediaStreamTrack) {
    state.withLock { state in state.tracks.removeAll { $0 === track } }
  }

  /// Adds a track; whether another one has its name.
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

  /// What is called when the audio or the video frames are switched on or off by this object.
  public var handlers: MediaStreamHandlers {
    get { state.withLock { $0.handlers } }
    set { state.withLock { $0.handlers = newValue } }
  }

  /// Whether the audio is enabled; false without any.
  ///
  /// To set what it is already, or without a track, does nothing.
  public var audioEnabled: Bool {
    get { audioTracks.first?.isEnabled ?? false }
    set {
      guard setEnabled(newValue, audioTracks) else { return }
      handlers.onSwitchAudio?(newValue)
      for renderer in renderers { renderer.onSwitch(audio: newValue) }
    }
  }

  /// Whether the video frames are enabled; false without any.
  ///
  /// To set what it is already, or without a track, does nothing.
  public var videoEnabled: Bool {
    get { videoTracks.first?.isEnabled ?? false }
    set {
      guard setEnabled(newValue, videoTracks) else { return }
      handlers.onSwitchVideo?(newValue)
      for renderer in renderers { renderer.onSwitch(video: newValue) }
    }
  }

  /// The volume of received audio, 0 to 10; nil without any.
  ///
  /// To set nil does nothing. What is sent has no volume.
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

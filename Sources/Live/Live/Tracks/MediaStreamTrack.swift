public import Media
public import Peer
import Synchronization
public import Wire

/// W3C MediaStreamTrackState.
public enum MediaStreamTrackState: String, Hashable, Sendable {
  /// Media flows, or may flow again.
  case live
  /// The track has ended.
  case ended
}

/// An event of a track: enabled, disabled, muted, unmuted or ended.
public enum MediaStreamTrackEvent: Hashable, Sendable {
  /// The application enabled or disabled the track.
  case enabled(Bool)
  /// W3C mute: media stopped arriving, with the reason.
  case mute(TrackChange.Reason?)
  /// W3C unmute: media arrives.
  case unmute
  /// W3C ended, with the reason.
  case ended(TrackChange.Reason?)
}

/// A track as an object (W3C MediaStreamTrack): sent, possibly over several connections, or
/// received.
///
/// There are four ways not to send, and a take distinguishes them: a disabled track sends silence
/// or black frames (`setEnabled`), a sender without a track sends nothing (`replaceSource`), a
/// transceiver may have another direction (`setDirection`), and an audio device may stop capturing,
/// after which there are no captured blocks.
public protocol MediaStreamTrack: AnyObject, Sendable {
  /// The track's identifier, which the sender states in the `msid` of descriptions (RFC 8830).
  var id: String { get }
  /// Audio or video.
  var kind: MediaKind { get }
  /// Whether the track is enabled; a disabled track is silent or black, but its packets continue.
  ///
  /// Setting it is a recorded call on every connection with the track; no effect if unchanged.
  var isEnabled: Bool { get set }
  /// Whether nothing currently arrives from the peer (W3C muted); false for local tracks.
  ///
  /// Needs the notice `tracks` in the configuration; a factory's connections have it by default.
  var isMuted: Bool { get }
  /// Whether media can still flow.
  var readyState: MediaStreamTrackState { get }
  /// Events from now on; every access returns a new stream.
  var events: AsyncStream<MediaStreamTrackEvent> { get }
}

/// Receives a track's decoded audio.
public protocol AudioTrackSink: AnyObject, Sendable {
  /// Handles the next block, on the loop's thread; must not block.
  ///
  /// A received track's blocks are contiguous; a disabled track's are silent.
  func audioTrack(_ id: String, didReceive block: AudioBlock)
}

/// Renders a track's frames (RTCVideoRenderer).
public protocol VideoRenderer: AnyObject, Sendable {
  /// Receives the size of the frames that follow.
  func setSize(width: Int, height: Int)
  /// Renders a frame, on the loop's or the capturer's thread; must not block.
  ///
  /// Nil clears the display: the track has ended or capturing has stopped.
  func renderFrame(_ frame: VideoFrame?)
  /// Reports that the stream's video was switched on or off.
  func onSwitch(video isEnabled: Bool)
  /// Reports that the stream's audio was switched on or off.
  func onSwitch(audio isEnabled: Bool)
}

extension VideoRenderer {
  /// Does nothing by default.
  public func onSwitch(video isEnabled: Bool) {}
  /// Does nothing by default.
  public func onSwitch(audio isEnabled: Bool) {}
}

/// State that all tracks share: whether they are enabled and live, and their readers.
struct TrackCondition {
  var isEnabled = true
  var isMuted = false
  var readyState = MediaStreamTrackState.live
  private var readers = Readers<MediaStreamTrackEvent>()

  init(isMuted: Bool = false) { self.isMuted = isMuted }

  /// The maximum number of events buffered for a slow reader; if there are more, the oldest are
  /// dropped.
  private static let eventsMaximum = 256

  /// Returns a stream of events from now on, already finished if the track has ended.
  mutating func eventStream() -> AsyncStream<MediaStreamTrackEvent> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: MediaStreamTrackEvent.self, bufferingPolicy: .bufferingNewest(Self.eventsMaximum))
    if readyState == .ended { continuation.finish() } else { readers.add(continuation) }
    return stream
  }

  /// Enables or disables the track; returns false if that changes nothing.
  mutating func setEnabled(_ isEnabled: Bool) -> Bool {
    guard isEnabled != self.isEnabled else { return false }
    self.isEnabled = isEnabled
    readers.yield(.enabled(isEnabled))
    return true
  }

  mutating func setMuted(_ isMuted: Bool, _ reason: TrackChange.Reason?) {
    guard isMuted != self.isMuted, readyState == .live else { return }
    self.isMuted = isMuted
    readers.yield(isMuted ? .mute(reason) : .unmute)
  }

  /// Ends the track; returns false if it had already ended.
  mutating func end(_ reason: TrackChange.Reason?) -> Bool {
    guard readyState == .live else { return false }
    readyState = .ended
    readers.yield(.ended(reason))
    readers.finish()
    return true
  }
}

/// Renderers by identity, each with the last reported size.
struct RendererList {
  private struct Entry {
    let renderer: any VideoRenderer
    var size: (width: Int, height: Int)?
  }

  private var entries: [Entry] = []

  var isEmpty: Bool { entries.isEmpty }
  var all: [any VideoRenderer] { entries.map(\.renderer) }

  /// Adds a renderer unless it has already been added.
  mutating func add(_ renderer: any VideoRenderer) {
    guard !entries.contains(where: { $0.renderer === renderer }) else { return }
    entries.append(Entry(renderer: renderer))
  }

  mutating func remove(_ renderer: any VideoRenderer) {
    entries.removeAll { $0.renderer === renderer }
  }

  /// Returns the renderers for the next frame; `isResized` means that the renderer's size must be
  /// set first.
  mutating func next(_ frame: VideoFrame) -> [(renderer: any VideoRenderer, isResized: Bool)] {
    let size = (frame.displayWidth, frame.displayHeight)
    return entries.indices.map { index in
      let isResized = entries[index].size.map { $0 != size } ?? true
      entries[index].size = size
      return (entries[index].renderer, isResized)
    }
  }
}

extension [(renderer: any VideoRenderer, isResized: Bool)] {
  /// Renders a frame without holding a lock, so that a renderer may call its track.
  func show(_ frame: VideoFrame) {
    for entry in self {
      if entry.isResized {
        entry.renderer.setSize(width: frame.displayWidth, height: frame.displayHeight)
      }
      entry.renderer.renderFrame(frame)
    }
  }
}

// MARK: - MediaStream

/// Handlers called when a stream's audio or video is switched on or off.
public struct MediaStreamHandlers: Sendable {
  /// Called when the audio is switched.
  public var onSwitchAudio: (@Sendable (_ isEnabled: Bool) -> Void)?
  /// Called when the video is switched.
  public var onSwitchVideo: (@Sendable (_ isEnabled: Bool) -> Void)?

  /// Creates handlers that do nothing.
  public init() {}
}

/// Tracks that belong together (W3C MediaStream): local tracks that a connection sends, or the
/// peer's tracks.
///
/// A stream's identifier is unique in a connection. If a peer names its streams after the
/// connections they come from (`msid`), streams can be found by these names.
public final class MediaStream: Sendable {
  private struct State {
    var tracks: [any MediaStreamTrack] = []
    var handlers = MediaStreamHandlers()
  }

  /// The identifier in descriptions (`msid`).
  public let id: String
  /// Whether the peer sends the stream.
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
  /// The audio tracks in the order in which they were added.
  public var audioTracks: [any MediaStreamTrack] { tracks.filter { $0.kind == .audio } }
  /// The video tracks in the order in which they were added.
  public var videoTracks: [any MediaStreamTrack] { tracks.filter { $0.kind == .video } }

  /// Returns a track by its identifier (W3C getTrackById); nil if the stream has no such track.
  public func track(id: String) -> (any MediaStreamTrack)? { tracks.first { $0.id == id } }

  /// Adds a track; connections that already send the stream are not affected.
  /// - Throws: `DuplicateIDError` if another track in the stream has its identifier; adding the
  ///   same track again has no effect. `InvalidAccessError` for a local track in a remote stream
  ///   and vice versa.
  public func addTrack(_ track: any MediaStreamTrack) throws(PeerError) {
    guard (track is any SentTrack) != isRemote else {
      throw PeerError(
        name: "InvalidAccessError", message: "local and received tracks cannot share a stream")
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

  /// Adds a track; returns whether another track already has its identifier.
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

  /// Handlers called when audio or video is switched through this object.
  public var handlers: MediaStreamHandlers {
    get { state.withLock { $0.handlers } }
    set { state.withLock { $0.handlers = newValue } }
  }

  /// Whether the audio is enabled; false without audio.
  ///
  /// Setting it has no effect if the value is unchanged or there is no audio track.
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
  /// Setting it has no effect if the value is unchanged or there is no video track.
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

public import Media
import Peer
import Synchronization
public import Wire

/// A track to send (W3C MediaStreamTrack) over any number of connections: a `LocalAudioTrack` or a
/// `LocalVideoTrack`.
public final class LocalTrack<Source: Sendable>: MediaStreamTrack {
  /// The source that supplies the track's media.
  public let source: Source
  let core: LocalTrackCore

  init(source: Source, core: LocalTrackCore) {
    self.source = source
    self.core = core
  }

  /// The track's identifier; the peer sees it in the `msid` of descriptions (RFC 8830).
  public var id: String { core.id }
  /// Audio or video.
  public var kind: MediaKind { core.kind }
  /// False: only received tracks can be muted (W3C muted).
  public var isMuted: Bool { false }
  /// Whether media can still flow.
  public var readyState: MediaStreamTrackState { core.condition.withLock { $0.readyState } }
  /// Events from now on; every access returns a new stream.
  public var events: AsyncStream<MediaStreamTrackEvent> {
    core.condition.withLock { $0.eventStream() }
  }
  /// Whether the track is enabled; a disabled track sends silence or black frames.
  public var isEnabled: Bool {
    get { core.condition.withLock { $0.isEnabled } }
    set { core.setEnabled(newValue) }
  }

  /// Ends the track permanently on all connections (W3C stop).
  public func stop() { core.stop() }
}

/// A local audio track (W3C MediaStreamTrack of kind audio).
public typealias LocalAudioTrack = LocalTrack<AudioSource>

extension LocalTrack<AudioSource> {
  /// Creates a track; add it to connections with `addTrack` or `add`.
  public convenience init(source: AudioSource, id: String) {
    let core = LocalTrackCore(id: id, kind: .audio, source: source.mediaSource)
    self.init(source: source, core: core)
    source.hub.attach(core)
  }

  /// The level over the last 100 ms as sent by a connection; nil before the first window is
  /// complete.
  public var audioLevel: TrackLevel? { core.audioLevel }
}

/// A local video track (W3C MediaStreamTrack of kind video).
public typealias LocalVideoTrack = LocalTrack<VideoSource>

extension LocalTrack<VideoSource> {
  /// Creates a track; add it to connections with `addTrack` or `add`.
  public convenience init(source: VideoSource, id: String) {
    let core = LocalTrackCore(id: id, kind: .video, source: source.mediaSource)
    self.init(source: source, core: core)
    source.hub.attach(core)
  }

  /// Renders the source's frames, or black frames while the track is disabled; adding a renderer
  /// again has no effect.
  public func add(_ renderer: any VideoRenderer) { core.renderers.withLock { $0.add(renderer) } }

  /// Stops rendering frames with a renderer.
  public func remove(_ renderer: any VideoRenderer) {
    core.renderers.withLock { $0.remove(renderer) }
  }
}

/// A local track of any kind, as connections use it.
protocol SentTrack: MediaStreamTrack {
  var core: LocalTrackCore { get }
}

extension LocalTrack: SentTrack {}

/// A local track's state, and where it is sent.
final class LocalTrackCore: Sendable {
  private struct Attachment {
    weak var connection: PeerConnection?
    let transceiver: UInt32
  }

  let id: String
  let kind: MediaKind
  let source: MediaSource
  let condition = Mutex(TrackCondition())
  let renderers = Mutex(RendererList())
  private let blackout = Mutex(Blackout())
  private let attachments = Mutex<[Attachment]>([])
  private let hub = Mutex<WeakHub>(WeakHub())

  private struct WeakHub {
    weak var hub: SourceHub?
  }

  init(id: String, kind: MediaKind, source: MediaSource) {
    self.id = id
    self.kind = kind
    self.source = source
  }

  /// False if the track is disabled, nil if it is enabled; passed with the call that adds the
  /// track.
  var initialState: Bool? { condition.withLock { $0.isEnabled } ? nil : false }
  var isLive: Bool { condition.withLock { $0.readyState == .live } }

  /// The connections that send the track, each with its transceiver.
  var targets: [(connection: PeerConnection, transceiver: UInt32)] {
    attachments.withLock { attachments in
      attachments.removeAll { $0.connection == nil }
      return attachments.compactMap { entry in
        entry.connection.map { ($0, entry.transceiver) }
      }
    }
  }

  /// Sets the source's hub, which is notified when connections start or stop sending the track.
  func belong(to hub: SourceHub) { self.hub.withLock { $0.hub = hub } }

  private var siblings: SourceHub? { hub.withLock { $0.hub } }

  func attach(_ connection: PeerConnection, _ transceiver: UInt32) {
    attachments.withLock { attachments in
      attachments.removeAll { $0.connection === connection && $0.transceiver == transceiver }
      attachments.append(Attachment(connection: connection, transceiver: transceiver))
    }
    if isLive { siblings?.began(connection, transceiver) }
  }

  /// Notifies the source that a connection is gone.
  func connectionIsGone() { siblings?.changed() }

  func detach(_ connection: PeerConnection, _ transceiver: UInt32) {
    attachments.withLock { attachments in
      attachments.removeAll { $0.connection === connection && $0.transceiver == transceiver }
    }
    siblings?.changed()
  }

  var audioLevel: TrackLevel? {
    guard let target = targets.first else { return nil }
    let track = SpeakingTrack(transceiver: target.transceiver, isInbound: false)
    return target.connection.audioLevels.first { $0.track == track }
  }

  func setEnabled(_ isEnabled: Bool) {
    guard condition.withLock({ $0.setEnabled(isEnabled) }) else { return }
    for (connection, transceiver) in targets {
      connection.post(
        .setEnabled(transceiver: transceiver, isInbound: false, isEnabled: isEnabled))
    }
  }

  func stop() {
    guard condition.withLock({ $0.end(.stopped) }) else { return }
    for (connection, transceiver) in targets {
      connection.post(.replaceSource(transceiver: transceiver, nil))
    }
    attachments.withLock { $0 = [] }
    siblings?.changed()
    for renderer in renderers.withLock({ $0.all }) { renderer.renderFrame(nil) }
  }

  /// Sends the source's media on all connections; returns false if one of the connections has no
  /// room or the track has ended.
  func send(_ media: SourceMedia) -> Bool {
    guard isLive else { return false }
    var isTaken = true
    for (connection, transceiver) in targets {
      let isRoom =
        switch media {
        case .audio(let block): connection.send(block, on: transceiver)
        case .frame(let frame): connection.send(frame, on: transceiver)
        case .videoFrame(let videoFrame): connection.send(videoFrame, on: transceiver)
        case .encoded(let videoFrame): connection.send(videoFrame, on: transceiver)
        }
      isTaken = isTaken && isRoom
    }
    show(media)
    return isTaken
  }

  /// Renders a frame with the track's renderers; while the track is disabled, the frame is black.
  private func show(_ media: SourceMedia) {
    guard !renderers.withLock({ $0.isEmpty }), let frame = frame(of: media) else { return }
    renderers.withLock { $0.next(frame) }.show(frame)
  }

  private func frame(of media: SourceMedia) -> VideoFrame? {
    let (videoFrame, time): (I420Buffer, Int64)
    let isEnabled = condition.withLock { $0.isEnabled }
    switch media {
    case .frame(let frame) where isEnabled: return frame
    case .frame(let frame): (videoFrame, time) = (frame.videoFrame(), frame.timestampNanoseconds)
    case .videoFrame(let taken): (videoFrame, time) = (taken, 0)
    case .audio, .encoded: return nil
    }
    let shown = isEnabled ? videoFrame : blackout.withLock { $0.black(like: videoFrame) }
    return try? VideoFrame(shown, timestampNanoseconds: time)
  }
}

// MARK: - MediaSources

/// A microphone or other audio source, as factories use it.
public protocol AudioCaptureDevice: Sendable {
  /// Calls a closure with every captured block at 48 kHz until the result is released.
  func addCaptureSink(_ sink: @escaping @Sendable (AudioBlock) -> Void) -> AudioCaptureSubscription
}

/// Keeps an audio device's sink registered until this object is released.
public final class AudioCaptureSubscription: Sendable {
  private let end: @Sendable () -> Void

  /// Creates a subscription that calls a closure when it ends.
  public init(end: @escaping @Sendable () -> Void) { self.end = end }

  deinit { end() }
}

/// A source for local audio tracks (RTCAudioSource).
///
/// All of the source's tracks send its audio on all their connections, and each connection records
/// it. The source has no volume: a microphone's audio can only be muted.
public final class AudioSource: Sendable {
  let mediaSource: MediaSource
  let hub = SourceHub()
  private let subscription = Mutex<AudioCaptureSubscription?>(nil)

  /// Creates a source that the application feeds with `deliver`.
  public init() { mediaSource = .application }

  /// Creates a source that every connection generates for itself: a tone or an echo.
  public init(_ source: MediaSource) { mediaSource = source }

  /// Creates a source fed by a device.
  public init(device: some AudioCaptureDevice) {
    mediaSource = .application
    let made = device.addCaptureSink { [weak self] block in self?.deliver(block) }
    subscription.withLock { $0 = made }
  }

  /// Sends a block of any length.
  /// - Returns: false if a track has ended, or if a connection has ended or is too busy to accept
  ///   it.
  @discardableResult
  public func deliver(_ block: AudioBlock) -> Bool { hub.send(.audio(block)) }
}

/// A source for local video tracks (RTCVideoSource).
public final class VideoSource: Sendable {
  let mediaSource: MediaSource
  let hub = SourceHub()

  /// Creates a source that the application or a capturer feeds with `capture`.
  /// - Parameter contentHint: a hint about the content, unless a capturer provides one.
  public init(contentHint: ContentHint = .none) {
    mediaSource = .application
    hub.contentHint = contentHint
  }

  /// Creates a source that every connection generates for itself: a pattern or an echo.
  public init(_ source: MediaSource) { mediaSource = source }

  /// The content hint (W3C MediaStreamTrack.contentHint) for all of the source's tracks; a screen
  /// capturer implies `detail`.
  public var contentHint: ContentHint {
    get { hub.contentHint }
    set { hub.contentHint = newValue }
  }

  /// Sends a frame with its own timestamp, converting it once for all tracks.
  /// - Returns: false if a track has ended, or if a connection has ended or is too busy to accept
  ///   it.
  @discardableResult
  public func capture(_ frame: VideoFrame) -> Bool { hub.send(.frame(frame.upright)) }

  /// Sends a video frame now.
  /// - Returns: false if a track has ended, or if a connection has ended or is too busy to accept
  ///   it.
  @discardableResult
  public func capture(_ videoFrame: I420Buffer) -> Bool { hub.send(.videoFrame(videoFrame)) }

  /// Sends an encoded frame now, in a codec that is not encoded here.
  ///
  /// Disabled tracks drop it, because a black frame cannot be encoded.
  @discardableResult
  public func capture(_ videoFrame: EncodedVideoChunk) -> Bool { hub.send(.encoded(videoFrame)) }
}

/// Media from a source to its tracks.
enum SourceMedia {
  case audio(AudioBlock)
  /// An upright frame with its own timestamp.
  case frame(VideoFrame)
  case videoFrame(I420Buffer)
  case encoded(EncodedVideoChunk)
}

/// A source's tracks, and the state they share.
final class SourceHub: Sendable {
  private struct Member {
    weak var track: LocalTrackCore?
  }

  private struct Watcher {
    weak var session: VideoCaptureSession?
  }

  private struct State {
    var members: [Member] = []
    var watchers: [Watcher] = []
    var contentHint = ContentHint.none
    /// The last capturer event, for connections that start to send a track later.
    var note: CaptureNote?

    var tracks: [LocalTrackCore] { members.compactMap(\.track) }
  }

  private let state = Mutex(State())

  func attach(_ track: LocalTrackCore) {
    track.belong(to: self)
    state.withLock { state in
      state.members.removeAll { $0.track == nil }
      state.members.append(Member(track: track))
    }
  }

  func send(_ media: SourceMedia) -> Bool {
    let tracks = state.withLock { $0.tracks }
    return tracks.map { $0.send(media) }.allSatisfy { $0 }
  }

  // MARK: Senders

  /// Whether any connection sends one of the tracks.
  var isSent: Bool { state.withLock { $0.tracks }.contains { !$0.targets.isEmpty } }

  /// Notifies a capture session, held weakly, whenever tracks start or stop being sent.
  func watch(_ session: VideoCaptureSession) {
    state.withLock { state in
      state.watchers.removeAll { $0.session == nil || $0.session === session }
      state.watchers.append(Watcher(session: session))
    }
  }

  /// Passes the content hint and a running capture to a connection that now sends a track, and
  /// notifies capture sessions.
  func began(_ connection: PeerConnection, _ transceiver: UInt32) {
    let (note, hint) = state.withLock { ($0.note, $0.contentHint) }
    if hint != .none { connection.post(.setContentHint(transceiver: transceiver, hint)) }
    if let note, note.event == .started { connection.record(note, of: transceiver) }
    changed()
  }

  /// Notifies capture sessions that the connections sending a track have changed.
  func changed() {
    for watcher in state.withLock({ $0.watchers }) { watcher.session?.followSenders() }
  }

  // MARK: Content

  var contentHint: ContentHint {
    get { state.withLock { $0.contentHint } }
    set {
      let tracks = state.withLock { state in
        defer { state.contentHint = newValue }
        return state.contentHint == newValue ? [] : state.tracks
      }
      for (connection, transceiver) in tracks.flatMap(\.targets) {
        connection.post(.setContentHint(transceiver: transceiver, newValue))
      }
    }
  }

  /// Records a capturer event in the takes of all connections.
  func record(_ note: CaptureNote) {
    let tracks = state.withLock { state in
      state.note = note
      return state.tracks
    }
    for (connection, transceiver) in tracks.flatMap(\.targets) {
      connection.record(note, of: transceiver)
    }
  }
}

public import Media
import Peer
import Synchronization

/// A microphone or other audio source, as a factory needs it.
public protocol AudioCaptureDevice: Sendable {
  /// Calls a closure with every captured block at 48 kHz for as long as the result is kept.
  func addCaptureSink(_ sink: @escaping @Sendable (AudioBlock) -> Void) -> AudioCaptureSubscription
}

/// Keeps a sink of an audio device for as long as it lives.
public final class AudioCaptureSubscription: Sendable {
  private let end: @Sendable () -> Void

  /// Creates a subscription that ends by a closure.
  public init(end: @escaping @Sendable () -> Void) { self.end = end }

  deinit { end() }
}

/// The source of local audio tracks (RTCAudioSource).
///
/// Its audio is sent by all its tracks on all their connections, and recorded on each. It has no
/// volume: a microphone's audio can only be muted.
public final class AudioSource: Sendable {
  let mediaSource: MediaSource
  let hub = SourceHub()
  private let subscription = Mutex<AudioCaptureSubscription?>(nil)

  /// Creates a source that the application feeds with `deliver`.
  public init() { mediaSource = .application }

  /// Creates a source that every connection generates by itself: a tone, or an echo.
  public init(_ source: MediaSource) { mediaSource = source }

  /// Creates a source fed by a device.
  public init(device: some AudioCaptureDevice) {
    mediaSource = .application
    let made = device.addCaptureSink { [weak self] block in self?.deliver(block) }
    subscription.withLock { $0 = made }
  }

  /// Sends a block of any length.
  /// - Returns: false if a connection is too busy to accept it, or has ended.
  @discardableResult
  public func deliver(_ block: AudioBlock) -> Bool { hub.send(.audio(block)) }
}

/// The source of local video tracks (RTCVideoSource).
public final class VideoSource: Sendable {
  let mediaSource: MediaSource
  let hub = SourceHub()

  /// Creates a source that the application or a capturer feeds with `capture`.
  /// - Parameter contentHint: the content, unless a capturer states it.
  public init(contentHint: ContentHint = .none) {
    mediaSource = .application
    hub.contentHint = contentHint
  }

  /// Creates a source that every connection generates by itself: a pattern, or an echo.
  public init(_ source: MediaSource) { mediaSource = source }

  /// The content hint (W3C MediaStreamTrack.contentHint) on all tracks of the source; a capturer of
  /// a screen implies `detail`.
  public var contentHint: ContentHint {
    get { hub.contentHint }
    set { hub.contentHint = newValue }
  }

  /// Sends a frame at its own time; it is converted once for all tracks.
  /// - Returns: false if a connection is too busy to accept it, or has ended.
  @discardableResult
  public func capture(_ frame: VideoFrame) -> Bool { hub.send(.frame(frame.upright)) }

  /// Sends a video frame now.
  /// - Returns: false if a connection is too busy to accept it, or has ended.
  @discardableResult
  public func capture(_ videoFrame: I420Buffer) -> Bool { hub.send(.videoFrame(videoFrame)) }

  /// Sends a frame of a codec that is not encoded here now.
  ///
  /// Disabled tracks drop it, because a black one cannot be encoded.
  @discardableResult
  public func capture(_ videoFrame: EncodedVideoChunk) -> Bool { hub.send(.encoded(videoFrame)) }
}

/// Media from a source to its tracks.
enum SourceMedia {
  case audio(AudioBlock)
  /// An upright frame with its own time.
  case frame(VideoFrame)
  case videoFrame(I420Buffer)
  case encoded(EncodedVideoChunk)
}

/// The tracks of a source, and the state of what it provides.
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
    /// The last event of the capturer.
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

  // MARK: Where it is sent

  /// Whether a connection sends one of the tracks.
  var isSent: Bool { state.withLock { $0.tracks }.contains { !$0.targets.isEmpty } }

  /// Notifies a capture session, held weakly, whenever tracks start or stop being sent.
  func watch(_ session: VideoCaptureSession) {
    state.withLock { state in
      state.watchers.removeAll { $0.session == nil || $0.session === session }
      state.watchers.append(Watcher(session: session))
    }
  }

  /// Records that a connection sends a track.
  func began(_ connection: PeerConnection, _ transceiver: UInt32) {
    let (note, hint) = state.withLock { ($0.note, $0.contentHint) }
    if hint != .none { connection.post(.setContentHint(transceiver: transceiver, hint)) }
    if let note, note.event == .started { connection.record(note, of: transceiver) }
    changed()
  }

  /// Records that the connections that send a track changed.
  func changed() {
    for watcher in state.withLock({ $0.watchers }) { watcher.session?.followSenders() }
  }

  // MARK: What it shows

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

  /// Records an event of the capturer in the takes of all connections.
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

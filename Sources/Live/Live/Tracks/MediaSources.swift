public import Media
import Peer
import Synchronization

/// A microphone, or whatever gives audio: what a factory needs of an audio device.
public protocol AudioCaptureDevice: Sendable {
  /// Calls a closure with every captured block, in 48 kHz, from now on; keep the result as long as
  /// it shall continue.
  func addCaptureSink(_ sink: @escaping @Sendable (AudioBlock) -> Void) -> AudioCaptureSubscription
}

/// Keeps a sink of an audio device for as long as it lives.
public final class AudioCaptureSubscription: Sendable {
  private let end: @Sendable () -> Void

  /// Creates a subscription that ends by a closure.
  public init(end: @escaping @Sendable () -> Void) { self.end = end }

  deinit { end() }
}

/// Where the audio of local tracks comes from (RTCAudioSource).
///
/// What goes in is sent by all tracks of the source on all their connections, and recorded on each.
/// There is no volume: what a microphone sends cannot be changed, only muted.
public final class AudioSource: Sendable {
  let mediaSource: MediaSource
  let hub = SourceHub()
  private let subscription = Mutex<AudioCaptureSubscription?>(nil)

  /// Creates a source that the application feeds with `deliver`.
  public init() { mediaSource = .application }

  /// Creates a source whose audio every connection makes by itself: a tone, or what it receives.
  public init(_ source: MediaSource) { mediaSource = source }

  /// Creates a source that a device feeds.
  public init(device: some AudioCaptureDevice) {
    mediaSource = .application
    let made = device.addCaptureSink { [weak self] block in self?.deliver(block) }
    subscription.withLock { $0 = made }
  }

  /// Sends a block of any length.
  ///
  /// - Returns: false when a connection is too busy to take it, or has ended.
  @discardableResult
  public func deliver(_ block: AudioBlock) -> Bool { hub.send(.audio(block)) }
}

/// Where the video frames of local tracks come from (RTCVideoSource).
public final class VideoSource: Sendable {
  let mediaSource: MediaSource
  let hub = SourceHub()

  /// Creates a source that the application or a capturer feeds with `capture`.
  ///
  /// - Parameter contentHint: what the frames show, where no capturer says it.
  public init(contentHint: ContentHint = .none) {
    mediaSource = .application
    hub.contentHint = contentHint
  }

  /// Creates a source whose video frames every connection makes by itself: a pattern, or what it
  /// receives.
  public init(_ source: MediaSource) { mediaSource = source }

  /// What the frames show (W3C MediaStreamTrack.contentHint), on all tracks of the source; a
  /// capturer of a screen says `detail` by itself.
  public var contentHint: ContentHint {
    get { hub.contentHint }
    set { hub.contentHint = newValue }
  }

  /// Sends a frame at its own time; it is converted once, however many tracks there are.
  ///
  /// - Returns: false when a connection is too busy to take it, or has ended.
  @discardableResult
  public func capture(_ frame: VideoFrame) -> Bool { hub.send(.frame(frame.upright)) }

  /// Sends a video frame as of now.
  ///
  /// - Returns: false when a connection is too busy to take it, or has ended.
  @discardableResult
  public func capture(_ videoFrame: I420Buffer) -> Bool { hub.send(.videoFrame(videoFrame)) }

  /// Sends a video frame of a codec that is not encoded here as of now.
  ///
  /// Tracks that are not enabled leave it out, for a black one cannot be made.
  @discardableResult
  public func capture(_ videoFrame: EncodedVideoChunk) -> Bool { hub.send(.encoded(videoFrame)) }
}

/// What a source hands to its tracks.
enum SourceMedia {
  case audio(AudioBlock)
  /// A frame with a time of its own, upright.
  case frame(VideoFrame)
  case videoFrame(I420Buffer)
  case encoded(EncodedVideoChunk)
}

/// The tracks of a source, and what is known of what it gives.
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
    /// What the capturer did last.
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

  /// Tells a capture session whenever tracks begin or end to be sent; it is not kept alive.
  func watch(_ session: VideoCaptureSession) {
    state.withLock { state in
      state.watchers.removeAll { $0.session == nil || $0.session === session }
      state.watchers.append(Watcher(session: session))
    }
  }

  /// A track is sent by a connection from now on.
  func began(_ connection: PeerConnection, _ transceiver: UInt32) {
    let (note, hint) = state.withLock { ($0.note, $0.contentHint) }
    if hint != .none { connection.post(.setContentHint(transceiver: transceiver, hint)) }
    if let note, note.event == .started { connection.record(note, of: transceiver) }
    changed()
  }

  /// A track is sent by other connections than before.
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

  /// Keeps in the takes of all connections what the capturer did.
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

import Media
import Peer
import Synchronization
public import Wire

/// Audio that is sent (W3C MediaStreamTrack of kind audio), over as many connections as it is added
/// to.
public final class LocalAudioTrack: MediaStreamTrack {
  /// Where the audio comes from.
  public let source: AudioSource
  let core: LocalTrackCore

  /// Creates a track; connections take it by `addTrack` and `add`.
  public init(source: AudioSource, id: String) {
    self.source = source
    core = LocalTrackCore(id: id, kind: .audio, source: source.mediaSource)
    source.hub.attach(core)
  }

  /// Names the track; the other side sees it in the `msid` of descriptions (RFC 8830).
  public var id: String { core.id }
  /// Audio or video frames.
  public var kind: MediaKind { .audio }
  /// Whether nothing comes from the peer at present (W3C muted).
  public var isMuted: Bool { false }
  /// Whether media may still flow.
  public var readyState: MediaStreamTrackState { core.condition.withLock { $0.readyState } }
  /// What becomes of the track from now on; every use gives a stream of its own.
  public var events: AsyncStream<MediaStreamTrackEvent> {
    core.condition.withLock { $0.eventStream() }
  }
  /// Whether the track is heard or seen; else it is silent or black while packets flow on.
  public var isEnabled: Bool {
    get { core.condition.withLock { $0.isEnabled } }
    set { core.setEnabled(newValue) }
  }

  /// How loud the track was in the last 100 ms as a connection sent it; nil before the first.
  public var audioLevel: TrackLevel? { core.audioLevel }

  /// Ends the track for good on all connections (W3C stop).
  public func stop() { core.stop() }
}

/// Video frames that are sent (W3C MediaStreamTrack of kind video), over as many connections as
/// they are added to.
public final class LocalVideoTrack: MediaStreamTrack {
  /// Where the video frames come from.
  public let source: VideoSource
  let core: LocalTrackCore

  /// Creates a track; connections take it by `addTrack` and `add`.
  public init(source: VideoSource, id: String) {
    self.source = source
    core = LocalTrackCore(id: id, kind: .video, source: source.mediaSource)
    source.hub.attach(core)
  }

  /// Names the track; the other side sees it in the `msid` of descriptions (RFC 8830).
  public var id: String { core.id }
  /// Audio or video frames.
  public var kind: MediaKind { .video }
  /// Whether nothing comes from the peer at present (W3C muted).
  public var isMuted: Bool { false }
  /// Whether media may still flow.
  public var readyState: MediaStreamTrackState { core.condition.withLock { $0.readyState } }
  /// What becomes of the track from now on; every use gives a stream of its own.
  public var events: AsyncStream<MediaStreamTrackEvent> {
    core.condition.withLock { $0.eventStream() }
  }
  /// Whether the track is heard or seen; else it is silent or black while packets flow on.
  public var isEnabled: Bool {
    get { core.condition.withLock { $0.isEnabled } }
    set { core.setEnabled(newValue) }
  }

  /// Shows the frames that the source takes from now on, black ones while the track is not enabled;
  /// a renderer that is there already is not added again.
  public func add(_ renderer: any VideoRenderer) { core.renderers.withLock { $0.add(renderer) } }

  /// Shows no more frames there.
  public func remove(_ renderer: any VideoRenderer) {
    core.renderers.withLock { $0.remove(renderer) }
  }

  /// Ends the track for good on all connections (W3C stop).
  public func stop() { core.stop() }
}

/// An own track: what a connection needs of it, whatever its kind.
protocol SentTrack: MediaStreamTrack {
  var core: LocalTrackCore { get }
}

extension LocalAudioTrack: SentTrack {}
extension LocalVideoTrack: SentTrack {}

/// The state of an own track, and where it is sent.
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

  init(id: String, kind: MediaKind, source: MediaSource) {
    self.id = id
    self.kind = kind
    self.source = source
  }

  /// Whether it is not enabled, as a call that adds the track has it: nil when it is.
  var initialState: Bool? { condition.withLock { $0.isEnabled } ? nil : false }
  var isLive: Bool { condition.withLock { $0.readyState == .live } }

  /// The connections that send the track, each with the transceiver.
  var targets: [(connection: PeerConnection, transceiver: UInt32)] {
    attachments.withLock { attachments in
      attachments.removeAll { $0.connection == nil }
      return attachments.compactMap { entry in
        entry.connection.map { ($0, entry.transceiver) }
      }
    }
  }

  func attach(_ connection: PeerConnection, _ transceiver: UInt32) {
    attachments.withLock { attachments in
      attachments.removeAll { $0.connection === connection && $0.transceiver == transceiver }
      attachments.append(Attachment(connection: connection, transceiver: transceiver))
    }
  }

  func detach(_ connection: PeerConnection, _ transceiver: UInt32) {
    attachments.withLock { attachments in
      attachments.removeAll { $0.connection === connection && $0.transceiver == transceiver }
    }
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
    for renderer in renderers.withLock({ $0.all }) { renderer.renderFrame(nil) }
  }

  /// Hands media of the source to all connections; false when one of them had no room for it.
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

  /// Shows a frame where the track is shown: a black one while it is not enabled.
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

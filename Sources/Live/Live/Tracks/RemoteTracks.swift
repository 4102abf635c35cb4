import Media
import Peer
import Synchronization
public import Wire

/// Audio that a connection receives.
public final class RemoteAudioTrack: MediaStreamTrack {
  let core: RemoteTrackCore
  private let sinks = Mutex<[any AudioTrackSink]>([])
  /// What was set, 0 to 10.
  private let gain = Mutex(1.0)

  init(_ core: RemoteTrackCore) { self.core = core }

  /// Names the track; the other side sees it in the `msid` of descriptions (RFC 8830).
  public var id: String { core.id }
  /// Audio or video frames.
  public var kind: MediaKind { .audio }
  /// Whether nothing comes from the peer at present (W3C muted).
  public var isMuted: Bool { core.condition.withLock { $0.isMuted } }
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

  /// How loud the audio is played: 0 is silent, 1 as received, 10 the most; others are taken for
  /// the nearest of these.
  ///
  /// It is applied before sinks, levels and statistics, and kept while the track is not enabled.
  /// Setting it is a recorded call; nil and what is no number are ignored. There is no volume of
  /// what is sent.
  public var volume: Double? {
    get { gain.withLock { $0 } }
    set {
      guard let newValue, !newValue.isNaN else { return }
      let volume = min(max(newValue, 0), 10)
      let isNew = gain.withLock { gain in
        defer { gain = volume }
        return gain != volume
      }
      if isNew { core.post { .setVolume(transceiver: $0, volume: volume) } }
    }
  }

  /// How loud the track was played in the last 100 ms, after the volume; nil before the first.
  public var audioLevel: TrackLevel? { core.audioLevel }

  /// Hands the decoded audio to a sink from now on; a sink that is there already is not added
  /// again.
  public func addSink(_ sink: any AudioTrackSink) {
    sinks.withLock { sinks in
      if !sinks.contains(where: { $0 === sink }) { sinks.append(sink) }
    }
  }

  /// Hands no more audio to a sink.
  public func removeSink(_ sink: any AudioTrackSink) {
    sinks.withLock { sinks in sinks.removeAll { $0 === sink } }
  }
}

/// Video frames that a connection receives.
public final class RemoteVideoTrack: MediaStreamTrack {
  let core: RemoteTrackCore
  private let renderers = Mutex(RendererList())

  init(_ core: RemoteTrackCore) { self.core = core }

  /// Names the track; the other side sees it in the `msid` of descriptions (RFC 8830).
  public var id: String { core.id }
  /// Audio or video frames.
  public var kind: MediaKind { .video }
  /// Whether nothing comes from the peer at present (W3C muted).
  public var isMuted: Bool { core.condition.withLock { $0.isMuted } }
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

  /// Shows the frames from now on, black ones while the track is not enabled; a renderer that is
  /// there already is not added again.
  public func add(_ renderer: any VideoRenderer) { renderers.withLock { $0.add(renderer) } }

  /// Shows no more frames there.
  public func remove(_ renderer: any VideoRenderer) { renderers.withLock { $0.remove(renderer) } }
}

/// A received track: what a connection tells it, whatever its kind.
protocol ReceivedTrack: MediaStreamTrack {
  var core: RemoteTrackCore { get }
  /// Takes media, on the loop's thread.
  func receive(_ media: ReceivedMedia)
  /// Records that it has ended, on the loop's thread.
  func didEnd()
  /// Who shows it.
  var shownBy: [any VideoRenderer] { get }
}

extension RemoteAudioTrack: ReceivedTrack {
  func receive(_ media: ReceivedMedia) {
    guard case .audio(let block) = media.content else { return }
    for sink in sinks.withLock({ $0 }) { sink.audioTrack(id, didReceive: block) }
  }

  func didEnd() {}
  var shownBy: [any VideoRenderer] { [] }
}

extension RemoteVideoTrack: ReceivedTrack {
  func receive(_ media: ReceivedMedia) {
    guard let frame = media.frame else { return }
    renderers.withLock { $0.next(frame) }.show(frame)
  }

  func didEnd() {
    for renderer in shownBy { renderer.renderFrame(nil) }
  }

  var shownBy: [any VideoRenderer] { renderers.withLock { $0.all } }
}

/// The state of a received track, and the transceiver that it comes on.
final class RemoteTrackCore: Sendable {
  let id: String
  let transceiver: UInt32
  let condition: Mutex<TrackCondition>
  private struct Owner {
    weak var connection: PeerConnection?
  }
  private let owner: Mutex<Owner>

  init(id: String, transceiver: UInt32, of connection: PeerConnection?) {
    self.id = id
    self.transceiver = transceiver
    // Nothing has come yet.
    condition = Mutex(TrackCondition(isMuted: true))
    owner = Mutex(Owner(connection: connection))
  }

  private var connection: PeerConnection? { owner.withLock { $0.connection } }

  func post(_ call: (UInt32) -> PeerCall) { connection?.post(call(transceiver)) }

  func setEnabled(_ isEnabled: Bool) {
    guard condition.withLock({ $0.setEnabled(isEnabled) }) else { return }
    post { .setEnabled(transceiver: $0, isInbound: true, isEnabled: isEnabled) }
  }

  var audioLevel: TrackLevel? {
    let track = SpeakingTrack(transceiver: transceiver, isInbound: true)
    return connection?.audioLevels.first { $0.track == track }
  }
}

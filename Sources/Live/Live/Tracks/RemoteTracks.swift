import Media
import Peer
import Synchronization
public import Wire

/// A received audio track.
public final class RemoteAudioTrack: MediaStreamTrack {
  let core: RemoteTrackCore
  private let sinks = Mutex<[any AudioTrackSink]>([])
  /// The volume, from 0 to 10.
  private let gain = Mutex(1.0)

  init(_ core: RemoteTrackCore) { self.core = core }

  /// The track's identifier, which the peer states in the `msid` of descriptions (RFC 8830).
  public var id: String { core.id }
  /// Always audio.
  public var kind: MediaKind { .audio }
  /// Whether nothing currently arrives from the peer (W3C muted).
  public var isMuted: Bool { core.condition.withLock { $0.isMuted } }
  /// Whether media can still flow.
  public var readyState: MediaStreamTrackState { core.condition.withLock { $0.readyState } }
  /// Events from now on; every access returns a new stream.
  public var events: AsyncStream<MediaStreamTrackEvent> {
    core.condition.withLock { $0.eventStream() }
  }
  /// Whether the track is enabled; a disabled track is silent, although packets still arrive.
  public var isEnabled: Bool {
    get { core.condition.withLock { $0.isEnabled } }
    set { core.setEnabled(newValue) }
  }

  /// The volume: 0 is silent, 1 unchanged, 10 the maximum; other values are clamped.
  ///
  /// The volume applies before sinks, levels and statistics, and is kept while the track is
  /// disabled. Setting it is a recorded call; nil and NaN are ignored. Sent audio has no volume.
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

  /// The level over the last 100 ms as played, after the volume; nil before the first window is
  /// complete.
  public var audioLevel: TrackLevel? { core.audioLevel }

  /// Passes decoded audio to a sink from now on; adding a sink again has no effect.
  public func addSink(_ sink: any AudioTrackSink) {
    sinks.withLock { sinks in
      if !sinks.contains(where: { $0 === sink }) { sinks.append(sink) }
    }
  }

  /// Stops passing audio to a sink.
  public func removeSink(_ sink: any AudioTrackSink) {
    sinks.withLock { sinks in sinks.removeAll { $0 === sink } }
  }
}

/// A received video track.
public final class RemoteVideoTrack: MediaStreamTrack {
  let core: RemoteTrackCore
  private let renderers = Mutex(RendererList())

  init(_ core: RemoteTrackCore) { self.core = core }

  /// The track's identifier, which the peer states in the `msid` of descriptions (RFC 8830).
  public var id: String { core.id }
  /// Always video.
  public var kind: MediaKind { .video }
  /// Whether nothing currently arrives from the peer (W3C muted).
  public var isMuted: Bool { core.condition.withLock { $0.isMuted } }
  /// Whether media can still flow.
  public var readyState: MediaStreamTrackState { core.condition.withLock { $0.readyState } }
  /// Events from now on; every access returns a new stream.
  public var events: AsyncStream<MediaStreamTrackEvent> {
    core.condition.withLock { $0.eventStream() }
  }
  /// Whether the track is enabled; a disabled track is black, although packets still arrive.
  public var isEnabled: Bool {
    get { core.condition.withLock { $0.isEnabled } }
    set { core.setEnabled(newValue) }
  }

  /// Renders frames from now on, or black frames while the track is disabled; adding a renderer
  /// again has no effect.
  public func add(_ renderer: any VideoRenderer) { renderers.withLock { $0.add(renderer) } }

  /// Stops rendering frames with a renderer.
  public func remove(_ renderer: any VideoRenderer) { renderers.withLock { $0.remove(renderer) } }
}

/// A received track of any kind, as connections use it.
protocol ReceivedTrack: MediaStreamTrack {
  var core: RemoteTrackCore { get }
  /// Handles media, on the loop's thread.
  func receive(_ media: ReceivedMedia)
  /// Cleans up after the track has ended; called on the loop's thread.
  func didEnd()
  /// The renderers that show the track's frames.
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

/// A received track's state and transceiver.
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
    // Muted, because nothing has arrived yet.
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

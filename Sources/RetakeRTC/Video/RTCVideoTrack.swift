import Live
import Media
import Peer
import Synchronization
import Wire

/// A track of video frames.
public final class RTCVideoTrack: CoredTrack {
  /// Where its video frames come from; that of a received track gets none.
  public let source: RTCVideoSource
  let core: TrackCore
  private let renderers = RendererList()
  private let subscription = Mutex<MediaSubscription?>(nil)

  init(_ source: RTCVideoSource, trackId: String) {
    self.source = source
    core = TrackCore(id: trackId, kind: .video, source: .application)
    source.feed(self)
  }

  /// Makes a received track.
  init(received trackId: String, at inlet: TrackCore.Place) {
    source = RTCVideoSource()
    core = TrackCore(id: trackId, kind: .video, received: inlet)
    core.atEnd { [renderers] in renderers.show(nil) }
  }

  /// `video`.
  public var kind: String { kRTCMediaStreamTrackKindVideo }
  /// Names the track.
  public var trackId: String { core.id }
  /// Whether the track is seen; else it is black while its packets flow on.
  public var isEnabled: Bool {
    get { core.isEnabled }
    set { core.isEnabled = newValue }
  }
  /// Whether a received track can still give video frames.
  public var readyState: RTCMediaStreamTrackState { core.readyState }

  // MARK: Renderers

  /// Shows what the track has, from now on.
  public func add(_ renderer: any RTCVideoRenderer) {
    renderers.add(renderer)
    guard let inlet = core.inlet else { return }
    subscription.withLock { subscription in
      guard subscription == nil else { return }
      subscription = inlet.connection.onMedia { [renderers] media in
        guard media.transceiver == inlet.transceiver, let frame = media.frame else { return }
        renderers.show(RTCVideoFrame(frame))
      }
    }
  }

  /// Shows a renderer nothing more.
  public func remove(_ renderer: any RTCVideoRenderer) {
    renderers.remove(renderer)
    if renderers.isEmpty { subscription.withLock { $0 = nil } }
  }

  /// Sends and shows a frame of the source.
  func captured(_ frame: RTCVideoFrame, _ upright: VideoFrame?) {
    if let upright {
      for place in core.outlets { place.connection.send(upright, on: place.transceiver) }
    }
    guard !renderers.isEmpty else { return }
    // What is sent black is shown black.
    let shown =
      isEnabled
      ? frame
      : RTCVideoFrame(
        buffer: RTCI420Buffer(width: frame.width, height: frame.height),
        rotation: frame.rotation, timeStampNs: frame.timeStampNs)
    renderers.show(shown)
  }
}

import Live
import Media
import Peer
import Synchronization
import Wire

/// A track of video frames.
public final class RTCVideoTrack: RTCMediaStreamTrack {
  /// Where its video frames come from; that of a received track gets none.
  nonisolated public let source: RTCVideoSource
  nonisolated private let renderers = RendererList()
  nonisolated private let subscription = Mutex<MediaSubscription?>(nil)

  nonisolated init(_ source: RTCVideoSource, trackId: String) {
    self.source = source
    super.init(TrackCore(id: trackId, kind: .video, source: .application))
    source.feed(self)
    core.onOutlets { [weak source] place, isSent in source?.outletChanged(place, isSent: isSent) }
  }

  /// Creates a received track.
  nonisolated init(received trackId: String, at inlet: TrackCore.Place) {
    source = RTCVideoSource(received: inlet)
    super.init(TrackCore(id: trackId, kind: .video, received: inlet))
    core.atEnd { [renderers] in renderers.show(nil) }
  }

  // MARK: Renderers

  /// Shows what the track has, from now on.
  nonisolated public func add(_ renderer: any RTCVideoRenderer) {
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
  nonisolated public func remove(_ renderer: any RTCVideoRenderer) {
    renderers.remove(renderer)
    if renderers.isEmpty { subscription.withLock { $0 = nil } }
  }

  /// Sends and shows a frame of the source.
  nonisolated func captured(_ frame: RTCVideoFrame, _ upright: VideoFrame?) {
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

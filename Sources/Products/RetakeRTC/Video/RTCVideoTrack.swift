import Live
import Media
import Peer
import Synchronization
import Wire

/// A video track.
public final class RTCVideoTrack: RTCMediaStreamTrack {
  /// The source of its frames; that of a received track stays empty.
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

  /// Displays the track in a renderer from now on.
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

  /// Stops displaying the track in a renderer.
  nonisolated public func remove(_ renderer: any RTCVideoRenderer) {
    renderers.remove(renderer)
    if renderers.isEmpty { subscription.withLock { $0 = nil } }
  }

  /// Sends and displays a frame of the source.
  nonisolated func captured(_ frame: RTCVideoFrame, _ upright: VideoFrame?) {
    if let upright {
      for place in core.outlets { place.connection.send(upright, on: place.transceiver) }
    }
    guard !renderers.isEmpty else { return }
    // A disabled track is displayed black too.
    let shown =
      isEnabled
      ? frame
      : RTCVideoFrame(
        buffer: RTCI420Buffer(width: frame.width, height: frame.height),
        rotation: frame.rotation, timeStampNs: frame.timeStampNs)
    renderers.show(shown)
  }
}

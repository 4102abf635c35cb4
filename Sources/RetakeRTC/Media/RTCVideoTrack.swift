import Live
import Media
import Peer
import Wire

/// A track of pictures.
public final class RTCVideoTrack: CoredTrack {
  /// Where its pictures come from.
  public let source: RTCVideoSource
  let core: TrackCore

  init(_ source: RTCVideoSource, trackId: String) {
    self.source = source
    core = TrackCore(id: trackId, kind: .video, source: .application)
  }

  /// Makes a received track.
  init(received trackId: String, at inlet: TrackCore.Place) {
    source = RTCVideoSource()
    core = TrackCore(id: trackId, kind: .video, received: inlet)
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
  /// Whether a received track can still give pictures.
  public var readyState: RTCMediaStreamTrackState { core.readyState }
}

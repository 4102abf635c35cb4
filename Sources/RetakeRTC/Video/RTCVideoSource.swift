import Live
import Media
import Synchronization

/// Where the video frames of own tracks come from: whatever calls `capturer(_:didCapture:)`.
public final class RTCVideoSource: RTCVideoCapturerDelegate {
  private struct Feed: Sendable {
    weak var track: RTCVideoTrack?
  }

  private let feeds = Mutex<[Feed]>([])
  private let isScreenCast: Bool

  init(forScreenCast isScreenCast: Bool = false) { self.isScreenCast = isScreenCast }

  /// What the take notes of the video frames: whether a screen shows them.
  var contentHint: ContentHint? { isScreenCast ? .detail : nil }

  func feed(_ track: RTCVideoTrack) {
    feeds.withLock { feeds in
      feeds.removeAll { $0.track == nil }
      feeds.append(Feed(track: track))
    }
  }

  /// Sends a frame on all tracks of the source, and shows it to their renderers.
  ///
  /// A frame that a connection is too busy to take is left out.
  public func capturer(_ capturer: RTCVideoCapturer, didCapture frame: RTCVideoFrame) {
    // Converted once, however many connections there are.
    let upright = frame.native?.upright
    for feed in feeds.withLock({ $0 }) { feed.track?.captured(frame, upright) }
  }
}

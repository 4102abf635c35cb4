public import Media
public import Peer
import Wire

// Frames of cameras and screens on their way to a sender, and received ones on their way to a
// renderer.
extension PeerConnection {
  /// Hands a frame to a transceiver whose source is `.application`.
  ///
  /// It becomes an upright I420 video frame here, before it is recorded: nothing is converted
  /// again, neither by the encoder nor in a replay. Its own timestamp, not the time of the call,
  /// decides how far it is from the frame before.
  ///
  /// - Returns: false when the loop is too busy to take it, or has ended.
  @discardableResult
  public func send(_ frame: VideoFrame, on transceiver: UInt32) -> Bool {
    send(on: transceiver) {
      .frame(frame.videoFrame(), timestamp: frame.timestampNanoseconds)
    }
  }

  /// Tells what the video frames of a sender show (W3C MediaStreamTrack.contentHint).
  ///
  /// Where the parameters say nothing else, it decides what is given up first when they take too
  /// much: of a screen video frames are left out, and what is sent keeps its size.
  public func setContentHint(_ hint: ContentHint, of transceiver: UInt32) async throws(PeerError) {
    try await perform(.setContentHint(transceiver: transceiver, hint))
  }

  /// Shows what is received to a renderer from now on; keep the result as long as it shall
  /// continue.
  ///
  /// The renderer is called on the loop's thread and must return at once.
  /// - Parameter transceiver: whose video frames; nil for those of all.
  public func addRenderer(_ renderer: some VideoRenderer, of transceiver: UInt32? = nil)
    -> MediaSubscription
  {
    let feed = RendererFeed(renderer)
    return onMedia { media in
      if let transceiver, media.transceiver != transceiver { return }
      if let frame = media.frame { feed.show(frame) }
    }
  }
}

extension PeerConnection {
  /// Keeps in the take what the capturer of a sender did.
  func record(_ note: CaptureNote, of transceiver: UInt32) {
    post(.noteCapture(transceiver: transceiver, note))
  }
}

extension ReceivedMedia {
  /// The received video frame as a frame, which shares its samples, with the instant of its playout
  /// as timestamp; nil for audio, and for video frames that are not decoded here.
  public var frame: VideoFrame? {
    guard case .videoFrame(let videoFrame) = content else { return nil }
    return try? VideoFrame(videoFrame, timestampNanoseconds: at.nanoseconds)
  }
}

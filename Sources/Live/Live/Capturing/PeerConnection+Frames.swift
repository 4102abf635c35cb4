public import Media
public import Peer
import Wire

// Frames from cameras and screens to a sender, and received ones to a renderer.
extension PeerConnection {
  /// Sends a frame on a transceiver whose source is `.application`.
  ///
  /// It is converted to upright I420 here, before it is recorded, so neither the encoder nor a
  /// replay converts it again. Its distance from the previous frame is given by its timestamp, not
  /// by the time of the call.
  /// - Returns: false if the loop is too busy to accept it, or has ended.
  @discardableResult
  public func send(_ frame: VideoFrame, on transceiver: UInt32) -> Bool {
    send(on: transceiver) {
      .frame(frame.videoFrame(), timestamp: frame.timestampNanoseconds)
    }
  }

  /// Sets the content hint of a sender's video (W3C MediaStreamTrack.contentHint).
  ///
  /// Unless the parameters say otherwise, it determines what is reduced first: for a screen the
  /// frame rate, and the size is kept.
  public func setContentHint(_ hint: ContentHint, of transceiver: UInt32) async throws(PeerError) {
    try await perform(.setContentHint(transceiver: transceiver, hint))
  }

  /// Renders received video for as long as the result is kept.
  ///
  /// The renderer is called on the loop's thread and must return at once.
  /// - Parameter transceiver: whose video; nil for all.
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
  /// Records an event of a sender's capturer in the take.
  func record(_ note: CaptureNote, of transceiver: UInt32) {
    post(.noteCapture(transceiver: transceiver, note))
  }
}

extension ReceivedMedia {
  /// The received video as a frame that shares its samples, with the instant of its playout as
  /// timestamp; nil for audio, and for video that is not decoded here.
  public var frame: VideoFrame? {
    guard case .videoFrame(let videoFrame) = content else { return nil }
    return try? VideoFrame(videoFrame, timestampNanoseconds: at.nanoseconds)
  }
}

public import Media
import RTP
public import Wire

/// A received block of audio or video frame, when it is played.
public struct ReceivedMedia: Sendable {
  /// The transceiver that received it.
  public var transceiver: UInt32
  /// When it is played.
  public var at: Instant
  /// The RTP timestamp of the packet or frame.
  public var rtpTime: UInt32
  /// Whether the audio is concealment, because its packet was lost or late.
  public var isConcealed: Bool
  /// The media.
  public var content: MediaContent
  /// The sender's level in -dBov (RFC 6464), if it states one.
  package var audioLevel: UInt8?

  /// Creates the media of an inbound frame; nil if it was not decoded, or is outbound.
  package init?(_ frame: FrameRecord, at: Instant) {
    guard frame.isInbound, !frame.isWithheld else { return nil }
    switch frame.decoded {
    case .none where frame.codec.isPassedThrough:
      content = .encodedVideo(
        EncodedVideoChunk(codec: frame.codec.rawValue, isKey: frame.isKey, bytes: frame.bytes))
    case .none, .digest: return nil
    case .audio(let block): content = .audio(block)
    case .videoFrame(let videoFrame): content = .videoFrame(videoFrame)
    }
    transceiver = frame.transceiver
    self.at = at
    rtpTime = frame.rtpTime
    isConcealed = frame.outcome == "concealed"
    audioLevel = frame.audioLevel
  }
}

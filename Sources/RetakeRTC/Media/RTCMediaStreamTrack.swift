/// The kind of tracks of audio.
public let kRTCMediaStreamTrackKindAudio = "audio"
/// The kind of tracks of video frames.
public let kRTCMediaStreamTrackKindVideo = "video"

/// Whether a track can still give media, numbered as in the Objective-C header.
public enum RTCMediaStreamTrackState: Int, Sendable {
  /// It can.
  case live
  /// It gives nothing any more.
  case ended
}

/// A track of audio or video frames, own or received: `RTCAudioTrack` or `RTCVideoTrack`.
public protocol RTCMediaStreamTrack: AnyObject, Sendable {
  /// `audio` or `video`.
  var kind: String { get }
  /// Names the track.
  var trackId: String { get }
  /// Whether the track is heard or seen; else it is silent or black while its packets flow on.
  var isEnabled: Bool { get set }
  /// Whether a received track can still give media.
  var readyState: RTCMediaStreamTrackState { get }
}

/// A track of this module.
protocol CoredTrack: RTCMediaStreamTrack {
  var core: TrackCore { get }
}

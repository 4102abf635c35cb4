import Live
import Peer
import Wire

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

/// Whether a source gives media, numbered as in the Objective-C header.
public enum RTCSourceState: Int, Sendable {
  /// It has not begun.
  case initializing
  /// It gives media.
  case live
  /// It gives nothing any more.
  case ended
  /// It gives nothing at present.
  case muted
}

/// What lets classes that have heirs be used from every thread: all that they have is declared
/// outside of it.
@globalActor public actor RTCMediaObjects {
  /// The one object.
  public static let shared = RTCMediaObjects()
}

/// Where the media of a track comes from: an `RTCAudioSource` or an `RTCVideoSource`.
@RTCMediaObjects public class RTCMediaSource {
  /// The track of a peer that it belongs to; nil for a local source.
  nonisolated let inlet: TrackCore.Place?

  nonisolated init(received inlet: TrackCore.Place?) { self.inlet = inlet }

  /// Whether it gives media: of a peer's as long as its connection is not closed.
  nonisolated public final var state: RTCSourceState {
    inlet?.connection.connectionState == .closed ? .ended : .live
  }
}

/// A track of audio or video frames, own or received: an `RTCAudioTrack` or an `RTCVideoTrack`.
@RTCMediaObjects public class RTCMediaStreamTrack {
  nonisolated let core: TrackCore

  nonisolated init(_ core: TrackCore) { self.core = core }

  /// `audio` or `video`.
  nonisolated public final var kind: String {
    core.kind == .audio ? kRTCMediaStreamTrackKindAudio : kRTCMediaStreamTrackKindVideo
  }
  /// Names the track.
  nonisolated public final var trackId: String { core.id }
  /// Whether the track is heard or seen; else it is silent or black while its packets flow on.
  nonisolated public final var isEnabled: Bool {
    get { core.isEnabled }
    set { core.isEnabled = newValue }
  }
  /// Whether a received track can still give media.
  nonisolated public final var readyState: RTCMediaStreamTrackState { core.readyState }
}

extension RTCMediaStreamTrack: Hashable {
  /// Whether both are the same object.
  nonisolated public static func == (
    left: RTCMediaStreamTrack, right: RTCMediaStreamTrack
  ) -> Bool { left === right }

  /// Hashes the identity.
  nonisolated public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(self))
  }
}

import Live
import Peer
import Wire

/// The kind of an audio track.
public let kRTCMediaStreamTrackKindAudio = "audio"
/// The kind of a video track.
public let kRTCMediaStreamTrackKindVideo = "video"

/// Whether a track can still produce media, numbered as in the Objective-C header.
public enum RTCMediaStreamTrackState: Int, Sendable {
  /// The track can produce media.
  case live
  /// The track produces no more media.
  case ended
}

/// Whether a source produces media, numbered as in the Objective-C header.
public enum RTCSourceState: Int, Sendable {
  /// The source has not started.
  case initializing
  /// The source produces media.
  case live
  /// The source produces no more media.
  case ended
  /// The source produces no media at present.
  case muted
}

/// The isolation of classes with subclasses, which makes them Sendable; all their members are
/// declared nonisolated.
@globalActor public actor RTCMediaObjects {
  /// The shared actor.
  public static let shared = RTCMediaObjects()
}

/// The source of a track: an `RTCAudioSource` or an `RTCVideoSource`.
@RTCMediaObjects public class RTCMediaSource {
  /// The remote track that it belongs to; nil for a local source.
  nonisolated let inlet: TrackCore.Place?

  nonisolated init(received inlet: TrackCore.Place?) { self.inlet = inlet }

  /// The state of the source; a remote one is live until its connection closes.
  nonisolated public final var state: RTCSourceState {
    inlet?.connection.connectionState == .closed ? .ended : .live
  }
}

/// A local or remote track: an `RTCAudioTrack` or an `RTCVideoTrack`.
@RTCMediaObjects public class RTCMediaStreamTrack {
  nonisolated let core: TrackCore

  nonisolated init(_ core: TrackCore) { self.core = core }

  /// `audio` or `video`.
  nonisolated public final var kind: String {
    core.kind == .audio ? kRTCMediaStreamTrackKindAudio : kRTCMediaStreamTrackKindVideo
  }
  /// The identifier of the track.
  nonisolated public final var trackId: String { core.id }
  /// Whether the track is enabled; a disabled one is silent or black while its packets continue.
  nonisolated public final var isEnabled: Bool {
    get { core.isEnabled }
    set { core.isEnabled = newValue }
  }
  /// Whether a received track can still produce media.
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

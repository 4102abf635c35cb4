import Media
import Peer
import Synchronization
import Wire

/// The source of an audio track: the factory's microphone, or the peer.
public final class RTCAudioSource: RTCMediaSource {
  nonisolated let mediaSource: MediaSource?
  /// The audio device behind it, if there is one.
  nonisolated let lines: AudioLines?
  nonisolated private let gain = Mutex(1.0)

  nonisolated init(_ mediaSource: MediaSource, _ lines: AudioLines?) {
    self.mediaSource = mediaSource
    self.lines = lines
    super.init(received: nil)
  }

  nonisolated override init(received inlet: TrackCore.Place?) {
    mediaSource = nil
    lines = nil
    super.init(received: inlet)
  }

  /// The volume of received audio, 0 to 10; other values are clamped.
  ///
  /// The volume of a microphone cannot be changed and stays 1.
  nonisolated public var volume: Double {
    get { gain.withLock { $0 } }
    set {
      guard let inlet, !newValue.isNaN else { return }
      let volume = min(max(newValue, 0), 10)
      let isNew = gain.withLock { gain in
        defer { gain = volume }
        return gain != volume
      }
      if isNew { inlet.post(.setVolume(transceiver: inlet.transceiver, volume: volume)) }
    }
  }
}

/// An audio track.
public final class RTCAudioTrack: RTCMediaStreamTrack {
  /// The source of its audio.
  nonisolated public let source: RTCAudioSource

  nonisolated init(_ source: RTCAudioSource, trackId: String) {
    self.source = source
    super.init(TrackCore(id: trackId, kind: .audio, source: source.mediaSource ?? .application))
  }

  /// Creates a received track.
  nonisolated init(received trackId: String, at inlet: TrackCore.Place) {
    source = RTCAudioSource(received: inlet)
    super.init(TrackCore(id: trackId, kind: .audio, received: inlet))
  }
}

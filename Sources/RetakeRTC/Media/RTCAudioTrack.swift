import Media
import Peer
import Synchronization
import Wire

/// Where the audio of a track comes from: the microphone of the factory, or the peer.
public final class RTCAudioSource: Sendable {
  let mediaSource: MediaSource?
  /// The audio device that gives it, where there is one.
  let lines: AudioLines?
  private let inlet: TrackCore.Place?
  private let gain = Mutex(1.0)

  init(_ mediaSource: MediaSource, _ lines: AudioLines?) {
    self.mediaSource = mediaSource
    self.lines = lines
    inlet = nil
  }

  init(received inlet: TrackCore.Place) {
    self.inlet = inlet
    mediaSource = nil
    lines = nil
  }

  /// How loud received audio is played, 0 to 10; what is beyond counts as the nearest of these.
  ///
  /// The volume of a microphone cannot be changed and stays 1.
  public var volume: Double {
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

/// A track of audio.
public final class RTCAudioTrack: CoredTrack {
  /// Where its audio comes from.
  public let source: RTCAudioSource
  let core: TrackCore

  init(_ source: RTCAudioSource, trackId: String) {
    self.source = source
    core = TrackCore(id: trackId, kind: .audio, source: source.mediaSource ?? .application)
  }

  /// Makes a received track.
  init(received trackId: String, at inlet: TrackCore.Place) {
    source = RTCAudioSource(received: inlet)
    core = TrackCore(id: trackId, kind: .audio, received: inlet)
  }

  /// `audio`.
  public var kind: String { kRTCMediaStreamTrackKindAudio }
  /// Names the track.
  public var trackId: String { core.id }
  /// Whether the track is heard; else it is silent while its packets flow on.
  public var isEnabled: Bool {
    get { core.isEnabled }
    set { core.isEnabled = newValue }
  }
  /// Whether a received track can still give audio.
  public var readyState: RTCMediaStreamTrackState { core.readyState }
}

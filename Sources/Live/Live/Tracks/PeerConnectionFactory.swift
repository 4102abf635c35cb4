import Media
public import Peer
import Synchronization
public import Tape

/// Makes connections, tracks and streams (RTCPeerConnectionFactory).
///
/// Its connections share a clock, a take when there is one, the codecs and the audio device. A
/// factory is a thread and little else; one is enough for a process, and several do not disturb
/// each other.
public final class PeerConnectionFactory: Sendable {
  /// The session of all connections.
  public let session: Session
  /// The audio device of all connections; nil when the application feeds its sources itself.
  public let audioDeviceModule: (any AudioCaptureDevice)?
  private let applicationCodecs: [OwnCodec]

  /// Creates a factory.
  ///
  /// - Parameters:
  ///   - encoderFactory: the application's video encoders; what it does not make, libraries
  ///     do.
  ///   - decoderFactory: the same for decoders.
  ///   - audioDeviceModule: what captures audio.
  ///   - options: whether and where it is recorded.
  /// - Throws: `SessionError` when the take or the thread cannot be made.
  public init(
    encoderFactory: (any VideoEncoderFactory)? = nil,
    decoderFactory: (any VideoDecoderFactory)? = nil,
    audioDeviceModule: (any AudioCaptureDevice)? = nil,
    options: Session.Options = Session.Options()
  ) throws(SessionError) {
    self.audioDeviceModule = audioDeviceModule
    applicationCodecs = FactoryCodecs(encoderFactory, decoderFactory).applicationCodecs
    session = try Session(options, loop: nil) {
      TimedPeer(codecs: FactoryCodecs(encoderFactory, decoderFactory))
    }
  }

  /// Creates a connection that tells all notices, unless its configuration names those that it
  /// wants.
  /// - Parameters:
  ///   - label: names the connection in the take.
  ///   - role: what it is in this session: `caller`, `publisher`, ...
  ///   - delegate: hears of all that happens, from the first step on; held weakly.
  public func peerConnection(
    with configuration: PeerConfiguration = PeerConfiguration(), label: String = "",
    role: String = "", delegate: (any PeerConnectionDelegate)? = nil
  ) -> PeerConnection {
    var configuration = configuration
    configuration.notices = configuration.notices ?? PeerNotice.all
    if !applicationCodecs.isEmpty { configuration.ownCodecs = applicationCodecs }
    return session.makePeer(label: label, role: role, configuration: configuration) {
      $0.delegate = delegate
    }
  }

  /// Creates a source of audio: the audio device's if there is one, else one that the application
  /// feeds.
  public func audioSource() -> AudioSource {
    audioDeviceModule.map { AudioSource(device: $0) } ?? AudioSource()
  }

  /// Creates a source of video frames that a capturer or the application feeds.
  public func videoSource() -> VideoSource { VideoSource() }

  /// Creates a track of audio.
  public func audioTrack(with source: AudioSource, trackID: String) -> LocalAudioTrack {
    LocalAudioTrack(source: source, id: trackID)
  }

  /// Creates a track of video frames.
  public func videoTrack(with source: VideoSource, trackID: String) -> LocalVideoTrack {
    LocalVideoTrack(source: source, id: trackID)
  }

  /// Creates a stream without tracks.
  public func mediaStream(withStreamID id: String) -> MediaStream { MediaStream(id: id) }

  /// Closes all connections and completes the take.
  @discardableResult
  public func finish() async throws(TapeError) -> TakeSummary? { try await session.finish() }
}

import Media
public import Peer
import Synchronization
public import Tape

/// Creates connections, tracks and streams (RTCPeerConnectionFactory).
///
/// Its connections share a clock, a take if there is one, the codecs and the audio device. A
/// factory is little more than a thread; one per process is enough, and several are independent.
public final class PeerConnectionFactory: Sendable {
  /// The session of all connections.
  public let session: Session
  /// The audio device of all connections; nil if the application feeds its sources itself.
  public let audioDeviceModule: (any AudioCaptureDevice)?
  private let applicationCodecs: [OwnCodec]

  /// Creates a factory.
  /// - Parameters:
  ///   - encoderFactory: the application's video encoders; libraries encode the rest.
  ///   - decoderFactory: the application's video decoders; libraries decode the rest.
  ///   - audioDeviceModule: captures audio.
  ///   - options: whether and where it is recorded.
  /// - Throws: `SessionError` if the take or the thread cannot be created.
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

  /// Creates a connection with all notices, unless its configuration names some.
  /// - Parameters:
  ///   - label: names the connection in the take.
  ///   - role: its role in this session: `caller`, `publisher`, ...
  ///   - delegate: receives all events from the first step on; held weakly.
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

  /// Creates an audio source: the audio device's, or one that the application feeds.
  public func audioSource() -> AudioSource {
    audioDeviceModule.map { AudioSource(device: $0) } ?? AudioSource()
  }

  /// Creates a video source that a capturer or the application feeds.
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

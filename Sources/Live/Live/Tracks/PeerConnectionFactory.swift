public import ICE
public import JSEP
import Media
public import Peer
public import SDP
import Synchronization
public import Tape

/// Creates connections, tracks and streams (RTCPeerConnectionFactory).
///
/// Its connections share a clock, a take if there is one, the codecs and the audio device. A
/// factory is little more than a thread; one per process is enough, but an application may have
/// several independent ones.
public final class PeerConnectionFactory: Sendable {
  /// The session that all connections belong to.
  public let session: Session
  /// The audio device for all connections; nil if the application feeds its sources itself.
  public let audioDeviceModule: (any AudioCaptureDevice)?
  private let applicationCodecs: [OwnCodec]

  /// Creates a factory.
  /// - Parameters:
  ///   - encoderFactory: the application's video encoders; libraries encode the rest.
  ///   - decoderFactory: the application's video decoders; libraries decode the rest.
  ///   - audioDeviceModule: captures audio.
  ///   - options: whether and where connections are recorded.
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
  ///   - label: the connection's name in the take.
  ///   - role: the connection's role in this session: `caller`, `publisher`, ...
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

  /// Creates an audio source fed by the audio device, or by the application if there is no device.
  public func audioSource() -> AudioSource {
    audioDeviceModule.map { AudioSource(device: $0) } ?? AudioSource()
  }

  /// Creates a video source that a capturer or the application feeds.
  public func videoSource() -> VideoSource { VideoSource() }

  /// Creates a local track that carries a source's audio.
  public func audioTrack(with source: AudioSource, trackID: String) -> LocalAudioTrack {
    LocalAudioTrack(source: source, id: trackID)
  }

  /// Creates a local track that carries a source's video.
  public func videoTrack(with source: VideoSource, trackID: String) -> LocalVideoTrack {
    LocalVideoTrack(source: source, id: trackID)
  }

  /// Creates a stream without tracks.
  public func mediaStream(withStreamID id: String) -> MediaStream { MediaStream(id: id) }

  /// Closes all connections and completes the take.
  @discardableResult
  public func finish() async throws(TapeError) -> TakeSummary? { try await session.finish() }
}

// MARK: - PeerConnectionDelegate

/// Receives a connection's events (RTCPeerConnectionDelegate) in order, on the loop's thread;
/// methods must not block.
///
/// All methods are optional. Streams and tracks that the application itself adds or removes are not
/// reported. Removed candidates, gathering errors, pair changes, speech into disabled tracks and
/// the connection's end are reported only if `PeerConfiguration.notices` includes them; a factory's
/// connections include all.
public protocol PeerConnectionDelegate: AnyObject, Sendable {
  /// W3C signalingstatechange.
  func peerConnection(_ connection: PeerConnection, didChange state: SignalingState)
  /// W3C iceconnectionstatechange.
  func peerConnection(_ connection: PeerConnection, didChange state: ICEConnectionState)
  /// W3C icegatheringstatechange.
  func peerConnection(_ connection: PeerConnection, didChange state: ICEGatheringState)
  /// W3C connectionstatechange.
  func peerConnection(_ connection: PeerConnection, didChange state: ConnectionState)
  /// W3C negotiationneeded.
  func peerConnectionShouldNegotiate(_ connection: PeerConnection)
  /// The peer started to send a stream.
  func peerConnection(_ connection: PeerConnection, didAdd stream: MediaStream)
  /// The peer stopped sending a stream.
  func peerConnection(_ connection: PeerConnection, didRemove stream: MediaStream)
  /// W3C track: the peer sends a track, which belongs to `streams`.
  func peerConnection(
    _ connection: PeerConnection, didAdd receiver: RTPReceiver, streams: [MediaStream])
  /// The peer stopped sending a track.
  func peerConnection(_ connection: PeerConnection, didRemove receiver: RTPReceiver)
  /// The peer's description made a transceiver start receiving.
  func peerConnection(
    _ connection: PeerConnection, didStartReceivingOn transceiver: RTPTransceiver)
  /// W3C icecandidate: a candidate to signal; the end of candidates is not reported.
  func peerConnection(_ connection: PeerConnection, didGenerate candidate: CandidateInit)
  /// Signaled candidates became invalid.
  func peerConnection(_ connection: PeerConnection, didRemove candidates: [CandidateInit])
  /// W3C icecandidateerror.
  func peerConnection(_ connection: PeerConnection, didFailToGather error: GatheringError)
  /// Another candidate pair was selected.
  func peerConnection(
    _ connection: PeerConnection, didChangeSelectedPair change: SelectedPairChange)
  /// W3C datachannel: the peer created a channel.
  func peerConnection(_ connection: PeerConnection, didOpen channel: DataChannel)
  /// A participant started or stopped speaking into a disabled sent track.
  func peerConnection(
    _ connection: PeerConnection, didNoticeMutedSpeech isSpeaking: Bool, transceiver: UInt32)
  /// The connection ended, with the reason.
  func peerConnection(_ connection: PeerConnection, didEnd reason: ConnectionEnd)
}

extension PeerConnectionDelegate {
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didChange state: SignalingState) {}
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didChange state: ICEConnectionState) {}
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didChange state: ICEGatheringState) {}
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didChange state: ConnectionState) {}
  /// Does nothing by default.
  public func peerConnectionShouldNegotiate(_ connection: PeerConnection) {}
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didAdd stream: MediaStream) {}
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didRemove stream: MediaStream) {}
  /// Does nothing by default.
  public func peerConnection(
    _ connection: PeerConnection, didAdd receiver: RTPReceiver, streams: [MediaStream]
  ) {}
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didRemove receiver: RTPReceiver) {}
  /// Does nothing by default.
  public func peerConnection(
    _ connection: PeerConnection, didStartReceivingOn transceiver: RTPTransceiver
  ) {}
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didGenerate candidate: CandidateInit) {}
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didRemove candidates: [CandidateInit]) {}
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didFailToGather error: GatheringError) {}
  /// Does nothing by default.
  public func peerConnection(
    _ connection: PeerConnection, didChangeSelectedPair change: SelectedPairChange
  ) {}
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didOpen channel: DataChannel) {}
  /// Does nothing by default.
  public func peerConnection(
    _ connection: PeerConnection, didNoticeMutedSpeech isSpeaking: Bool, transceiver: UInt32
  ) {}
  /// Does nothing by default.
  public func peerConnection(_ connection: PeerConnection, didEnd reason: ConnectionEnd) {}
}

import Dispatch
public import Live
public import Media
import Peer
import Synchronization

/// Makes connections, tracks and streams; one for the life of an application is enough.
///
/// All delegates of what a factory made, and all completion handlers, are called on one serial
/// queue, as libwebrtc calls them on its signaling thread. Methods may be called from any thread,
/// that queue included.
public final class RTCPeerConnectionFactory: Sendable {
  /// Where connections come from.
  private enum Origin {
    /// A session of the factory's own, begun with the first connection.
    case own(Session?)
    /// A session of the caller's, which may be recorded.
    case session(Session)
    /// Connections that are there already, in the order in which they are handed out.
    case given([PeerConnection])
  }

  private let origin: Mutex<Origin>
  private let microphone: MediaSource
  private let encoders: EncoderFactory?
  private let decoders: DecoderFactory?
  /// The audio device, where there is one.
  let lines: AudioLines?
  let queue = DispatchQueue(label: "RetakeRTC.signaling")

  /// Creates a factory whose connections are not recorded, and whose audio sources are silent.
  public convenience init() { self.init(.own(nil)) }

  /// Creates a factory whose connections are not recorded, with codecs and an audio device of the
  /// application's; nil has the library's codecs.
  public convenience init(
    encoderFactory: (any RTCVideoEncoderFactory)?, decoderFactory: (any RTCVideoDecoderFactory)?,
    audioDeviceModule: RTCAudioDeviceModule? = nil
  ) {
    self.init(
      .own(nil), encoders: encoderFactory, decoders: decoderFactory, device: audioDeviceModule)
  }

  /// Creates a factory whose connections belong to a session, to record them or to choose the
  /// addresses that they use.
  ///
  /// - Parameters:
  ///   - microphone: what the factory's audio sources give, without an audio device.
  ///   - encoderFactory: encoders of the application's, which a take names; the library has the
  ///     others.
  ///   - decoderFactory: the same for decoders.
  ///   - audioDeviceModule: what records and plays, of the same session.
  public convenience init(
    session: Session, microphone: MediaSource = .application,
    encoderFactory: (any RTCVideoEncoderFactory)? = nil,
    decoderFactory: (any RTCVideoDecoderFactory)? = nil,
    audioDeviceModule: RTCAudioDeviceModule? = nil
  ) {
    self.init(
      .session(session), microphone: microphone, encoders: encoderFactory,
      decoders: decoderFactory, device: audioDeviceModule)
  }

  /// Creates a factory that hands out connections that are there already, one after the other: of a
  /// take, to test an application against a call that happened.
  ///
  ///     let network = try RecordedNetwork("Captures/june.take")
  ///     let factory = RTCPeerConnectionFactory(connections: [network.connection])
  ///     let client = MyClient(factory: factory)
  ///
  /// - Parameter microphone: what the factory's audio sources give.
  public convenience init(connections: [PeerConnection], microphone: MediaSource = .application) {
    self.init(.given(connections), microphone: microphone)
  }

  private init(
    _ origin: Origin, microphone: MediaSource = .application,
    encoders: (any RTCVideoEncoderFactory)? = nil, decoders: (any RTCVideoDecoderFactory)? = nil,
    device: RTCAudioDeviceModule? = nil
  ) {
    self.origin = Mutex(origin)
    self.microphone = device == nil ? microphone : .application
    self.encoders = EncoderFactory(encoders)
    self.decoders = DecoderFactory(decoders)
    lines = device.map { AudioLines($0) }
  }

  // MARK: Connections

  /// Makes a connection; nil when the configuration asks for something that cannot be had, or when
  /// the system refuses a thread.
  ///
  /// The constraints of a connection mean nothing any more; those of an offer do.
  public func peerConnection(
    with configuration: RTCConfiguration, constraints: RTCMediaConstraints,
    delegate: (any RTCPeerConnectionDelegate)?
  ) -> RTCPeerConnection? {
    guard let native = configuration.native else { return nil }
    let values = configuration.values
    return origin.withLock { origin in
      switch origin {
      case .given(var connections):
        guard !connections.isEmpty else { return nil }
        let connection = connections.removeFirst()
        origin = .given(connections)
        return RTCPeerConnection(
          connection, factory: self, configuration: values, delegate: delegate)
      case .session(let session):
        return make(in: session, native, values, delegate)
      case .own(let present):
        guard let session = present ?? Self.unrecorded() else { return nil }
        origin = .own(session)
        return make(in: session, native, values, delegate)
      }
    }
  }

  private func make(
    in session: Session, _ native: PeerConfiguration, _ values: RTCConfiguration.Values,
    _ delegate: (any RTCPeerConnectionDelegate)?
  ) -> RTCPeerConnection? {
    var made: RTCPeerConnection?
    _ = session.makePeer(
      label: "RTCPeerConnection", configuration: native, encoders: encoders, decoders: decoders
    ) { connection in
      made = RTCPeerConnection(
        connection, factory: self, configuration: values, delegate: delegate)
    }
    return made
  }

  private static func unrecorded() -> Session? {
    var options = Session.Options()
    options.statsInterval = nil
    return try? Session(options)
  }

  // MARK: Media

  /// Makes a source of audio: the microphone that the factory was made with.
  public func audioSource(with constraints: RTCMediaConstraints?) -> RTCAudioSource {
    RTCAudioSource(microphone, lines)
  }

  /// Makes a track of a source of audio.
  public func audioTrack(with source: RTCAudioSource, trackId: String) -> RTCAudioTrack {
    RTCAudioTrack(source, trackId: trackId)
  }

  /// Makes a track of the factory's microphone.
  public func audioTrack(withTrackId trackId: String) -> RTCAudioTrack {
    audioTrack(with: audioSource(with: nil), trackId: trackId)
  }

  /// Makes a source of video frames, which a capturer fills.
  public func videoSource() -> RTCVideoSource { RTCVideoSource() }

  /// Makes a source of video frames; of a screen, clarity counts more than motion.
  public func videoSource(forScreenCast isScreenCast: Bool) -> RTCVideoSource {
    RTCVideoSource(forScreenCast: isScreenCast)
  }

  /// Makes a track of a source of video frames.
  public func videoTrack(with source: RTCVideoSource, trackId: String) -> RTCVideoTrack {
    RTCVideoTrack(source, trackId: trackId)
  }

  /// Makes a stream without tracks.
  public func mediaStream(withStreamId streamId: String) -> RTCMediaStream {
    RTCMediaStream(streamId: streamId)
  }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Prepares the process for connections; nothing has to be prepared here.
@discardableResult
public func RTCInitializeSSL() -> Bool { true }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Ends what `RTCInitializeSSL` began.
@discardableResult
public func RTCCleanupSSL() -> Bool { true }

import Dispatch
public import Live
public import Media
import Peer
import Synchronization

/// Creates connections, tracks and streams; one for the lifetime of an application is enough.
///
/// By default a factory uses the machine's microphone and loudspeaker, through PulseAudio or
/// PipeWire; without either it sends silence. The state `audio-route` in the take shows which one
/// is in use.
///
/// A factory calls its objects' delegates and all completion handlers on one serial queue, as
/// libwebrtc calls them on its signaling thread. Methods may be called from any thread and from
/// that queue.
public final class RTCPeerConnectionFactory: Sendable {
  /// How the factory obtains its connections.
  fileprivate enum Origin {
    /// A session that the factory owns, started with the first connection.
    case own(Session?)
    /// A session that may be recorded.
    case session(Session)
    /// Existing connections, in the order in which they are returned.
    case given([PeerConnection])
  }

  private let origin: Mutex<Origin>
  private let microphone: MediaSource
  private let encoders: EncoderFactory?
  private let decoders: DecoderFactory?
  /// Connects tracks and connections to the audio device; nil if there is no device.
  let lines: AudioLines?
  private let usesDefaultCamera: Bool
  private let chosenQueue = Mutex(DispatchQueue(label: "RetakeRTC.signaling"))

  /// Creates a factory that uses the machine's microphone and camera, and does not record its
  /// connections.
  ///
  /// The camera feeds video sources that have no capturer, and runs only while such a source is
  /// sent. Without a camera, the frames are black.
  public convenience init() {
    self.init(.own(nil), device: RTCAudioDeviceModule(), usesDefaultCamera: true)
  }

  /// Creates a factory like `init()` whose connections and audio are recorded from the first
  /// connection on; `finish` completes the take.
  ///
  /// - Parameter path: the take to create.
  /// - Throws: `SessionError` if the take cannot be written.
  public convenience init(recordingTo path: String) throws {
    var options = Session.Options()
    options.takePath = path
    self.init(
      .session(try Session(options)), device: RTCAudioDeviceModule(), usesDefaultCamera: true)
  }

  /// Creates a factory whose connections are not recorded, with the application's codecs and audio
  /// device; nil for the library's codecs and the machine's device.
  public convenience init(
    encoderFactory: (any RTCVideoEncoderFactory)?, decoderFactory: (any RTCVideoDecoderFactory)?,
    audioDeviceModule: RTCAudioDeviceModule? = nil
  ) {
    self.init(
      .own(nil), encoders: encoderFactory, decoders: decoderFactory,
      device: audioDeviceModule ?? RTCAudioDeviceModule())
  }

  /// Creates a factory whose connections belong to a session, to record them or to choose their
  /// addresses.
  /// - Parameters:
  ///   - microphone: the media that the factory's audio sources send if there is no audio device.
  ///   - encoderFactory: the application's encoders, which a take names; other codecs use the
  ///     library's.
  ///   - decoderFactory: the application's decoders; other codecs use the library's.
  ///   - audioDeviceModule: records and plays, in the same session; nil leaves recording to
  ///     `microphone` and plays nothing.
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

  /// Creates a factory that returns existing connections in order, for example to test an
  /// application against a recorded call.
  ///
  ///     let network = try RecordedNetwork("Captures/june.take")
  ///     let factory = RTCPeerConnectionFactory(connections: [network.connection])
  ///     let client = MyClient(factory: factory)
  ///
  /// - Parameter microphone: the media that the factory's audio sources send.
  public convenience init(connections: [PeerConnection], microphone: MediaSource = .application) {
    self.init(.given(connections), microphone: microphone)
  }

  private init(
    _ origin: Origin, microphone: MediaSource = .application,
    encoders: (any RTCVideoEncoderFactory)? = nil, decoders: (any RTCVideoDecoderFactory)? = nil,
    device: RTCAudioDeviceModule? = nil, usesDefaultCamera: Bool = false
  ) {
    self.origin = Mutex(origin)
    self.microphone = device == nil ? microphone : .application
    self.encoders = EncoderFactory(encoders)
    self.decoders = DecoderFactory(decoders)
    self.usesDefaultCamera = usesDefaultCamera
    lines = device.map { AudioLines($0) }
  }

  /// The serial queue on which delegates and completion handlers are called.
  ///
  /// Set it before the first connection: to `.main` if the application's delegates run on the main
  /// thread.
  public var callbackQueue: DispatchQueue {
    get { chosenQueue.withLock { $0 } }
    set { chosenQueue.withLock { $0 = newValue } }
  }

  var queue: DispatchQueue { callbackQueue }

  /// Closes all connections, stops the audio device, and completes the take if the factory records.
  ///
  /// - Throws: `TapeError` if writing failed; everything written before stays valid.
  public func finish() async throws {
    let session: Session? = origin.withLock { origin in
      switch origin {
      case .own(let session): session
      case .session(let session): session
      case .given: nil
      }
    }
    try await session?.finish()
  }

  // MARK: Connections

  /// Creates a connection; returns nil if the configuration is not supported, if no thread can be
  /// created, or if all existing connections have been returned.
  ///
  /// The constraints are ignored; only those passed with an offer have an effect.
  public func peerConnection(
    with configuration: RTCConfiguration, constraints: RTCMediaConstraints,
    delegate: (any RTCPeerConnectionDelegate)?
  ) -> RTCPeerConnection? {
    guard let native = configuration.native else { return nil }
    let values = configuration.values
    let session: Session
    switch origin.withLock({ $0.begin() }) {
    case .connection(let connection):
      return RTCPeerConnection(
        connection, factory: self, configuration: values, delegate: delegate)
    case .session(let present): session = present
    case nil: return nil
    }
    lines?.begin(in: session)
    return make(in: session, native, values, delegate)
  }

  /// Creates a connection as the other method does, but returns a closed connection instead of nil.
  public func peerConnection(
    with configuration: RTCConfiguration, constraints: RTCMediaConstraints?,
    delegate: (any RTCPeerConnectionDelegate)?
  ) -> RTCPeerConnection {
    let none = RTCMediaConstraints(mandatoryConstraints: nil, optionalConstraints: nil)
    let made: RTCPeerConnection? = peerConnection(
      with: configuration, constraints: none, delegate: delegate)
    return made
      ?? RTCPeerConnection(
        .ended, factory: self, configuration: configuration.values, delegate: delegate)
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

  // MARK: Media

  /// Creates an audio source for the factory's microphone.
  public func audioSource(with constraints: RTCMediaConstraints?) -> RTCAudioSource {
    RTCAudioSource(microphone, lines)
  }

  /// Creates an audio track for a source.
  public func audioTrack(with source: RTCAudioSource, trackId: String) -> RTCAudioTrack {
    RTCAudioTrack(source, trackId: trackId)
  }

  /// Creates an audio track for the factory's microphone.
  public func audioTrack(withTrackId trackId: String) -> RTCAudioTrack {
    audioTrack(with: audioSource(with: nil), trackId: trackId)
  }

  /// Creates a video source, to be fed by a capturer.
  ///
  /// If the factory was created with `init()` or `init(recordingTo:)`, the source sends the
  /// machine's camera until a capturer feeds it.
  public func videoSource() -> RTCVideoSource {
    let source = RTCVideoSource()
    if usesDefaultCamera { source.useDefaultCamera() }
    return source
  }

  /// Creates a video source; for a screen, the encoder prefers sharpness to frame rate.
  public func videoSource(forScreenCast isScreenCast: Bool) -> RTCVideoSource {
    RTCVideoSource(forScreenCast: isScreenCast)
  }

  /// Creates a video track for a source.
  public func videoTrack(with source: RTCVideoSource, trackId: String) -> RTCVideoTrack {
    RTCVideoTrack(source, trackId: trackId)
  }

  /// Creates a stream without tracks.
  public func mediaStream(withStreamId streamId: String) -> RTCMediaStream {
    RTCMediaStream(streamId: streamId)
  }
}

extension RTCPeerConnectionFactory.Origin {
  fileprivate enum Place {
    case session(Session)
    case connection(PeerConnection)
  }

  /// Returns the next existing connection, or the session that creates the next one; nil if there
  /// is neither.
  fileprivate mutating func begin() -> Place? {
    switch self {
    case .given(var connections):
      guard !connections.isEmpty else { return nil }
      let connection = connections.removeFirst()
      self = .given(connections)
      return .connection(connection)
    case .session(let session): return .session(session)
    case .own(let present):
      var options = Session.Options()
      options.statsInterval = nil
      guard let session = try? present ?? Session(options) else { return nil }
      self = .own(session)
      return .session(session)
    }
  }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Prepares the process for connections; does nothing here.
@discardableResult
public func RTCInitializeSSL() -> Bool { true }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Reverses `RTCInitializeSSL`; does nothing here.
@discardableResult
public func RTCCleanupSSL() -> Bool { true }

import AudioSession
public import Live
import Media
import Peer
import Synchronization

/// Whether somebody speaks into a track that is disabled, numbered as in the Objective-C header.
public enum RTCSpeechActivityEvent: Int, Sendable {
  /// Somebody began to.
  case started
  /// Nobody does any longer.
  case ended
}

/// Hears what an audio device notices, on the queue of the factory that it belongs to.
public protocol RTCAudioDeviceModuleDelegate: AnyObject {
  /// Somebody speaks into the microphone of a track that is disabled, or no longer does.
  func audioDeviceModule(
    _ audioDeviceModule: RTCAudioDeviceModule,
    didReceiveSpeechActivityEvent speechActivityEvent: RTCSpeechActivityEvent)
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The unit that cancels echo: `vpio`.
public let kAudioUnitSubType_VoiceProcessingIO: OSType = 0x7670_696f
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The unit that does not: `rioc`.
public let kAudioUnitSubType_RemoteIO: OSType = 0x7269_6f63

/// The audio device of a factory's connections, over an `AudioSession`: what it records is sent by
/// the factory's audio tracks, and what connections receive is played.
public final class RTCAudioDeviceModule: Sendable {
  /// The unit that cancels echo: `vpio`.
  public static let voiceProcessingIO = kAudioUnitSubType_VoiceProcessingIO
  /// The unit that does not: `rioc`.
  public static let remoteIO = kAudioUnitSubType_RemoteIO

  private struct State: Sendable {
    var delegate = WeakDelegate<any RTCAudioDeviceModuleDelegate> { nil }
    var session: AudioSession?
    /// What was set; nil leaves the device as its session has it.
    var subType: OSType?
  }

  private let state: Mutex<State>

  /// Creates a module of the machine's microphone and loudspeaker; without PulseAudio or PipeWire
  /// it records silence and plays nothing.
  ///
  /// It begins with the first connection of the factory that it is given to.
  public init() { state = Mutex(State()) }

  private static let machine = Mutex<(@Sendable () -> any AudioDeviceModule)?>(nil)

  /// Chooses what stands for the machine's microphone and loudspeaker.
  ///
  /// - Parameter make: makes a device for each module that is made without a session; nil: the
  ///   machine's own again.
  public static func useDevice(_ make: (@Sendable () -> any AudioDeviceModule)?) {
    machine.withLock { $0 = make }
  }

  /// Creates a module over an audio session.
  public init(audioSession: AudioSession) { state = Mutex(State(session: audioSession)) }

  /// The session behind it; nil before the first connection of its factory.
  public var audioSession: AudioSession? { state.withLock { $0.session } }

  /// Who hears what the device notices; it is not kept alive.
  public var delegate: (any RTCAudioDeviceModuleDelegate)? {
    get { state.withLock { $0.delegate }.value }
    set {
      let delegate = WeakDelegate { [weak newValue] in newValue }
      state.withLock { $0.delegate = delegate }
    }
  }

  /// Which unit records and plays: `kAudioUnitSubType_VoiceProcessingIO` asks the device for what a
  /// voice needs, any other for nothing.
  public var audioUnitSubType: OSType {
    get { state.withLock { $0.subType } ?? kAudioUnitSubType_VoiceProcessingIO }
    set {
      let session = state.withLock { state in
        state.subType = newValue
        return state.session
      }
      session.map { Self.choose(newValue, of: $0) }
    }
  }

  private static func choose(_ subType: OSType, of session: AudioSession) {
    let isVoice = subType == kAudioUnitSubType_VoiceProcessingIO
    try? session.call(.setProcessing(isVoice ? .voice : .custom(subType)))
  }

  /// Hands in recorded audio, while the device itself records nothing: of a broadcast, for example.
  ///
  /// What is refused, and what comes before the factory has a connection, is dropped; the session
  /// counts what it refused. Several threads may call.
  public func deliverRecordedData(_ sampleBuffer: CMSampleBuffer) {
    guard let chunk = sampleBuffer.chunk else { return }
    _ = try? audioSession?.deliver(chunk)
  }

  /// Creates the session of a module that has none, of the machine's device.
  package func begin(in session: Session) {
    var policy = AudioSessionPolicy()
    policy.declaresMicrophoneUse = CaptureAccess.shared.isDeclared(.audio)
    let subType = state.withLock { state -> OSType?? in
      guard state.session == nil else { return nil }
      state.session = try? session.makeAudioSession(
        device: AccessDevice(Self.makeDevice()), policy: policy)
      return state.session == nil ? nil : .some(state.subType)
    }
    guard let subType, let made = audioSession else { return }
    if let subType { Self.choose(subType, of: made) }
    if let usual = RTCAudioSessionConfiguration.chosen {
      try? made.configure { (audio) throws(AudioSessionError) in
        try audio.call(.configure(usual))
      }
    }
    RTCAudioSession.sharedInstance().join(made)
  }

  private static func makeDevice() -> any AudioDeviceModule {
    machine.withLock { $0 }?() ?? SystemAudioDevice.make()
  }

  func notify(_ event: RTCSpeechActivityEvent) {
    delegate?.audioDeviceModule(self, didReceiveSpeechActivityEvent: event)
  }
}

/// A device whose microphone needs the access that `AVCaptureDevice` asks for.
private final class AccessDevice: AudioDeviceModule {
  private let device: any AudioDeviceModule

  init(_ device: any AudioDeviceModule) { self.device = device }

  var name: String { device.name }
  var captureFormat: AudioFormat? { device.captureFormat }
  var renderFormat: AudioFormat? { device.renderFormat }
  func connect(_ port: AudioDevicePort) { device.connect(port) }

  func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    guard operation == .requestPermission else { return device.perform(operation) }
    return CaptureAccess.shared.isAllowed(.audio)
      ? device.perform(operation) : .permission(.denied)
  }
}

/// What ties the tracks and connections of a factory to its audio device.
final class AudioLines: Sendable {
  private let attachments = Mutex<[Key: AudioAttachment]>([:])
  private let module: RTCAudioDeviceModule

  private struct Key: Hashable {
    var connection: ObjectIdentifier
    /// Nil for what is received.
    var transceiver: UInt32?
  }

  init(_ module: RTCAudioDeviceModule) { self.module = module }

  /// The first connection is made: a module without a session gets one.
  func begin(in session: Session) { module.begin(in: session) }

  /// Tells that somebody speaks into a disabled track, or no longer does.
  func notify(isSpeaking: Bool) { module.notify(isSpeaking ? .started : .ended) }

  /// Sends what the device records; refused by the device or its user, the track is silent.
  func send(_ connection: PeerConnection, _ transceiver: UInt32) {
    attach(connection, sending: transceiver)
  }

  /// Plays what a connection receives.
  func receive(_ connection: PeerConnection) { attach(connection, sending: nil) }

  private func attach(_ connection: PeerConnection, sending transceiver: UInt32?) {
    guard let session = module.audioSession else { return }
    let key = Key(connection: ObjectIdentifier(connection), transceiver: transceiver)
    if let present = attachments.withLock({ $0[key] }) {
      if let transceiver { session.resume(present, sending: transceiver, of: connection) }
      return
    }
    let made = try? session.attach(
      connection, sending: transceiver, receiving: transceiver == nil)
    attachments.withLock { $0[key] = made }
  }

  /// Stops sending on a transceiver; the microphone keeps running until the connection closes.
  func end(_ connection: PeerConnection, _ transceiver: UInt32) {
    let key = Key(connection: ObjectIdentifier(connection), transceiver: transceiver)
    attachments.withLock { $0[key] }?.endSending()
  }

  /// Ends all of a connection.
  func end(_ connection: PeerConnection) {
    let id = ObjectIdentifier(connection)
    let gone = attachments.withLock { attachments in
      let gone = attachments.filter { $0.key.connection == id }
      for key in gone.keys { attachments[key] = nil }
      return Array(gone.values)
    }
    withExtendedLifetime(gone) {}
  }
}

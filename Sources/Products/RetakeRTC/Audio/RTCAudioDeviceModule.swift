import AudioSession
public import Live
import Media
import Peer
import Synchronization

/// The start or end of the user's speech while the sent track is disabled, numbered as in the
/// Objective-C header.
public enum RTCSpeechActivityEvent: Int, Sendable {
  /// The user started speaking.
  case started
  /// The user stopped speaking.
  case ended
}

/// Receives an audio device's events, on its factory's queue.
public protocol RTCAudioDeviceModuleDelegate: AnyObject {
  /// Reports that the user started or stopped speaking while the track is disabled.
  func audioDeviceModule(
    _ audioDeviceModule: RTCAudioDeviceModule,
    didReceiveSpeechActivityEvent speechActivityEvent: RTCSpeechActivityEvent)
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The audio unit with echo cancellation: `vpio`.
public let kAudioUnitSubType_VoiceProcessingIO: OSType = 0x7670_696f
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The audio unit without echo cancellation: `rioc`.
public let kAudioUnitSubType_RemoteIO: OSType = 0x7269_6f63

/// The audio device for a factory's connections, based on an `AudioSession`: it records audio for
/// the factory's audio tracks, and plays the audio that the connections receive.
public final class RTCAudioDeviceModule: Sendable {
  /// The audio unit with echo cancellation: `vpio`.
  public static let voiceProcessingIO = kAudioUnitSubType_VoiceProcessingIO
  /// The audio unit without echo cancellation: `rioc`.
  public static let remoteIO = kAudioUnitSubType_RemoteIO

  private struct State: Sendable {
    var delegate = WeakDelegate<any RTCAudioDeviceModuleDelegate> { nil }
    var session: AudioSession?
    /// The subtype that the application set; nil leaves the choice to the session.
    var subType: OSType?
  }

  private let state: Mutex<State>

  /// Creates a module for the machine's microphone and loudspeaker; without PulseAudio or PipeWire
  /// it records silence and plays nothing.
  ///
  /// The module starts with its factory's first connection.
  public init() { state = Mutex(State()) }

  private static let machine = Mutex<(@Sendable () -> any AudioDeviceModule)?>(nil)

  /// Replaces the machine's microphone and loudspeaker.
  /// - Parameter make: creates the device of each module that was created without a session; nil
  ///   restores the machine's own device.
  public static func useDevice(_ make: (@Sendable () -> any AudioDeviceModule)?) {
    machine.withLock { $0 = make }
  }

  /// Creates a module that uses an audio session.
  public init(audioSession: AudioSession) { state = Mutex(State(session: audioSession)) }

  /// The module's session; unless the application passed one, nil before its factory's first
  /// connection.
  public var audioSession: AudioSession? { state.withLock { $0.session } }

  /// Receives the device's events; held weakly.
  public var delegate: (any RTCAudioDeviceModuleDelegate)? {
    get { state.withLock { $0.delegate }.value }
    set {
      let delegate = WeakDelegate { [weak newValue] in newValue }
      state.withLock { $0.delegate = delegate }
    }
  }

  /// The audio unit that records and plays: `kAudioUnitSubType_VoiceProcessingIO` enables voice
  /// processing, any other value disables it.
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

  /// Supplies recorded audio, for example from a screen broadcast, while the device itself records
  /// nothing.
  ///
  /// Audio that is rejected, or arrives before the factory has a connection, is dropped; the
  /// session counts rejected chunks. This method may be called from several threads.
  public func deliverRecordedData(_ sampleBuffer: CMSampleBuffer) {
    guard let chunk = sampleBuffer.chunk else { return }
    _ = try? audioSession?.deliver(chunk)
  }

  /// Creates an audio session with the machine's device, unless the module already has a session.
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

/// A device whose microphone needs the permission that `AVCaptureDevice` requests.
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

/// Connects a factory's tracks and connections to its audio device.
final class AudioLines: Sendable {
  private let attachments = Mutex<[Key: AudioAttachment]>([:])
  private let module: RTCAudioDeviceModule

  private struct Key: Hashable {
    var connection: ObjectIdentifier
    /// The number of the transceiver that sends the audio; nil for received audio.
    var transceiver: UInt32?
  }

  init(_ module: RTCAudioDeviceModule) { self.module = module }

  /// Starts the module with the first connection; creates an audio session if the module has none.
  func begin(in session: Session) { module.begin(in: session) }

  /// Reports that the user started or stopped speaking while the track is disabled.
  func notify(isSpeaking: Bool) { module.notify(isSpeaking ? .started : .ended) }

  /// Sends the audio that the device records; the track is silent if the device does not record or
  /// the user denies access.
  func send(_ connection: PeerConnection, _ transceiver: UInt32) {
    attach(connection, sending: transceiver)
  }

  /// Plays the audio that a connection receives.
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

  /// Stops sending on a transceiver; the microphone runs until the connection closes.
  func end(_ connection: PeerConnection, _ transceiver: UInt32) {
    let key = Key(connection: ObjectIdentifier(connection), transceiver: transceiver)
    attachments.withLock { $0[key] }?.endSending()
  }

  /// Stops sending and playing for a connection.
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

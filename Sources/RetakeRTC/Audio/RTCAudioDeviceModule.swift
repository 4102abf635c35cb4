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
public protocol RTCAudioDeviceModuleDelegate: AnyObject, Sendable {
  /// Somebody speaks into the microphone of a track that is disabled, or no longer does.
  func audioDeviceModule(
    _ audioDeviceModule: RTCAudioDeviceModule,
    didReceiveSpeechActivityEvent speechActivityEvent: RTCSpeechActivityEvent)
}

/// The audio device of a factory's connections, over an `AudioSession`: what it records is sent by
/// the factory's audio tracks, and what connections receive is played.
public final class RTCAudioDeviceModule: Sendable {
  /// The unit that cancels echo: `vpio`.
  public static let voiceProcessingIO: OSType = 0x7670_696f
  /// The unit that does not: `rioc`.
  public static let remoteIO: OSType = 0x7269_6f63

  private struct State {
    weak var delegate: (any RTCAudioDeviceModuleDelegate)?
    var audioUnitSubType = RTCAudioDeviceModule.voiceProcessingIO
  }

  /// The session behind it.
  public let audioSession: AudioSession
  private let state = Mutex(State())

  /// Creates a module over an audio session.
  public init(audioSession: AudioSession) { self.audioSession = audioSession }

  /// Who hears what the device notices; it is not kept alive.
  public var delegate: (any RTCAudioDeviceModuleDelegate)? {
    get { state.withLock { $0.delegate } }
    set { state.withLock { $0.delegate = newValue } }
  }

  /// Which unit records and plays: `voiceProcessingIO` asks the device for what a voice needs, any
  /// other for nothing.
  public var audioUnitSubType: OSType {
    get { state.withLock { $0.audioUnitSubType } }
    set {
      state.withLock { $0.audioUnitSubType = newValue }
      let profile: AudioProcessingProfile =
        newValue == Self.voiceProcessingIO ? .voice : .custom(newValue)
      try? audioSession.call(.setProcessing(profile))
    }
  }

  /// Hands in recorded audio, while the device itself records nothing: of a broadcast, for example.
  ///
  /// What is refused is dropped and counted in the session; several threads may call.
  public func deliverRecordedData(_ sampleBuffer: CMSampleBuffer) {
    _ = try? audioSession.deliver(sampleBuffer.chunk)
  }

  func tell(_ event: RTCSpeechActivityEvent) {
    delegate?.audioDeviceModule(self, didReceiveSpeechActivityEvent: event)
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

  /// Tells that somebody speaks into a disabled track, or no longer does.
  func tell(isSpeaking: Bool) { module.tell(isSpeaking ? .started : .ended) }

  /// Sends what the device records; refused by the device or its user, the track is silent.
  func send(_ connection: PeerConnection, _ transceiver: UInt32) {
    attach(connection, sending: transceiver)
  }

  /// Plays what a connection receives.
  func receive(_ connection: PeerConnection) { attach(connection, sending: nil) }

  private func attach(_ connection: PeerConnection, sending transceiver: UInt32?) {
    let key = Key(connection: ObjectIdentifier(connection), transceiver: transceiver)
    guard attachments.withLock({ $0[key] }) == nil else { return }
    let made = try? module.audioSession.attach(
      connection, sending: transceiver, receiving: transceiver == nil)
    attachments.withLock { $0[key] = made }
  }

  func end(_ connection: PeerConnection, _ transceiver: UInt32) {
    let key = Key(connection: ObjectIdentifier(connection), transceiver: transceiver)
    let gone = attachments.withLock { $0.removeValue(forKey: key) }
    withExtendedLifetime(gone) {}
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

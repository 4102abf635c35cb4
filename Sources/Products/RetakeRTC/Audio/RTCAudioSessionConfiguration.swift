import AudioSession
public import Foundation
import Live
import Synchronization

/// The configuration of an audio session; it is read when it is applied.
public final class RTCAudioSessionConfiguration {
  /// The name of the `AVAudioSession.Category`.
  public var category = AVAudioSession.Category.playAndRecord.rawValue
  /// How the category mixes with other audio, and which ports it may use.
  public var categoryOptions: AVAudioSession.CategoryOptions = .allowBluetooth
  /// The name of the `AVAudioSession.Mode`.
  public var mode = AVAudioSession.Mode.voiceChat.rawValue
  /// The preferred sample rate in Hz.
  public var sampleRate = 48_000.0
  /// The preferred duration of an I/O buffer in seconds.
  public var ioBufferDuration: TimeInterval = 0.02
  /// The preferred number of microphone channels.
  public var inputNumberOfChannels = 1
  /// The preferred number of output channels.
  public var outputNumberOfChannels = 1

  private static let usual = Mutex<AudioSessionConfiguration?>(nil)

  /// Creates the configuration of a call.
  public init() {}

  convenience init(_ native: AudioSessionConfiguration) {
    self.init()
    category = AVAudioSession.Category(native.category).rawValue
    categoryOptions = AVAudioSession.CategoryOptions(rawValue: native.options.rawValue)
    mode = AVAudioSession.Mode(native.mode).rawValue
    sampleRate = Double(native.sampleRate)
    ioBufferDuration = Double(native.ioBufferMilliseconds) / 1000
    inputNumberOfChannels = native.inputChannels
    outputNumberOfChannels = native.outputChannels
  }

  /// The default configuration of calls.
  public static func webRTC() -> RTCAudioSessionConfiguration {
    chosen.map { RTCAudioSessionConfiguration($0) }
      ?? RTCAudioSessionConfiguration(
        AudioSessionConfiguration())
  }

  /// The configuration set for calls; nil leaves the default of audio sessions.
  static var chosen: AudioSessionConfiguration? { usual.withLock { $0 } }

  /// Sets the default configuration of factories that start later.
  public static func setWebRTC(_ configuration: RTCAudioSessionConfiguration) {
    usual.withLock { $0 = configuration.native }
  }

  var native: AudioSessionConfiguration {
    var native = AudioSessionConfiguration()
    native.category = AVAudioSession.Category(rawValue: category).native
    native.options = AudioSessionOptions(rawValue: categoryOptions.rawValue)
    native.mode = AVAudioSession.Mode(rawValue: mode).native
    native.sampleRate = whole(sampleRate)
    native.ioBufferMilliseconds = whole(ioBufferDuration * 1000)
    native.inputChannels = inputNumberOfChannels
    native.outputChannels = outputNumberOfChannels
    return native
  }
}

/// Converts a number to an integer; one that is not finite becomes 0, which a device rejects.
func whole(_ value: Double) -> Int { Int(exactly: value.rounded()) ?? 0 }

/// A mode of the audio session, with AVFoundation's name of the category.
package enum AudioModeChoice: Sendable {
  /// A category with the default mode.
  case plain(AVAudioSession.Category, toSpeaker: Bool)
  /// A video call.
  case videoChat
  /// A call.
  case voiceChat(toSpeaker: Bool)

  var native: AudioMode {
    switch self {
    case .plain(let category, let toSpeaker):
      .default(category: category.native, output: toSpeaker ? .speaker : .default)
    case .videoChat: .videoChat
    case .voiceChat(let toSpeaker): .voiceChat(output: toSpeaker ? .speaker : .default)
    }
  }
}

// MARK: - KeptAudioSettings

/// The settings that an application made for the audio session of its process, applied to sessions
/// that start later.
struct KeptAudioSettings: Sendable {
  private(set) var locks = 0
  private(set) var category = AudioSessionCategory.soloAmbient
  private(set) var mode = AudioSessionMode.default
  private(set) var options: AudioSessionOptions = []
  private(set) var portOverride = AudioPortOverride.none
  private(set) var configuration = AudioSessionConfiguration()
  private(set) var isManual = false
  private(set) var isEnabled = false
  private var activations = 0
  /// The last call of each kind that needs no lock, and all calls that need it, in order.
  private var settings: [AudioSessionCall] = []

  /// Records a call that was made.
  mutating func store(_ call: AudioSessionCall) {
    switch call {
    case .lock: locks += 1
    case .unlock: locks = max(0, locks - 1)
    case .setActive(let isActive): activations = max(0, activations + (isActive ? 1 : -1))
    case .useManualAudio(let isManual): self.isManual = isManual
    case .setAudioEnabled(let isEnabled): self.isEnabled = isEnabled
    case .configure(let wanted):
      (category, mode, options) = (wanted.category, wanted.mode, wanted.options)
      settings = []
      set(call)
    case .setCategory(let category, let options):
      (self.category, self.options) = (category, options)
      set(call)
    case .setMode(let mode):
      self.mode = mode
      set(call)
    case .overridePort(let override):
      portOverride = override
      set(call)
    case .applyMode(let mode, let options): store(mode, options)
    case .setPreferredSampleRate, .setPreferredIOBuffer, .setPreferredChannels, .setIOType:
      set(call)
    default: break
    }
  }

  /// Records a mode as the calls that it stands for.
  private mutating func store(_ mode: AudioMode, _ options: AudioSessionOptions) {
    for operation in mode.operations(options: options, current: category) {
      switch operation {
      case .setCategory(let category, let options): store(.setCategory(category, options: options))
      case .setMode(let mode): store(.setMode(mode))
      case .overridePort(let override): store(.overridePort(override))
      default: break
      }
    }
  }

  private mutating func set(_ call: AudioSessionCall) {
    call.apply(to: &configuration)
    settings.removeAll { $0.name == call.name }
    settings.append(call)
  }

  /// Applies the settings to a session that starts; what its device rejects stays unchanged there.
  func apply(to session: AudioSession) {
    if isManual { try? session.call(.useManualAudio(true)) }
    if isEnabled { try? session.call(.setAudioEnabled(true)) }
    guard !settings.isEmpty || activations > 0 || locks > 0 else { return }
    let calls = settings + Array(repeating: .setActive(true), count: activations)
    try? session.call(.lock)
    for call in calls { try? session.call(call) }
    try? session.call(.unlock)
    for _ in 0..<locks { try? session.call(.lock) }
  }
}

extension AudioSessionCall {
  /// The name without arguments.
  fileprivate var name: String { "\(self)".prefix { $0 != "(" }.description }
}

// MARK: - RTCAudioSessionDelegate

/// Receives the events of the audio session, on a thread of its own; all methods are optional.
public protocol RTCAudioSessionDelegate: AnyObject {
  /// The system or another application takes over the device.
  func audioSessionDidBeginInterruption(_ session: RTCAudioSession)
  /// The device is free again.
  func audioSessionDidEndInterruption(_ session: RTCAudioSession, shouldResumeSession: Bool)
  /// The audio route changed.
  func audioSessionDidChangeRoute(
    _ session: RTCAudioSession, reason: AVAudioSession.RouteChangeReason,
    previousRoute: AVAudioSessionRouteDescription)
  /// The system's audio server terminated.
  func audioSessionMediaServerTerminated(_ session: RTCAudioSession)
  /// The audio server is available again.
  func audioSessionMediaServerReset(_ session: RTCAudioSession)
  /// Whether the device may run changed.
  func audioSession(_ session: RTCAudioSession, didChangeCanPlayOrRecord canPlayOrRecord: Bool)
  /// The first connection started to play or record.
  func audioSessionDidStartPlayOrRecord(_ session: RTCAudioSession)
  /// The last connection stopped playing and recording.
  func audioSessionDidStopPlayOrRecord(_ session: RTCAudioSession)
  /// The session is about to be activated or deactivated.
  func audioSession(_ audioSession: RTCAudioSession, willSetActive active: Bool)
  /// The session was activated or deactivated.
  func audioSession(_ audioSession: RTCAudioSession, didSetActive active: Bool)
  /// Activating or deactivating the session failed.
  func audioSession(
    _ audioSession: RTCAudioSession, failedToSetActive active: Bool, error: any Error)
}

// The methods that the header marks as optional.
extension RTCAudioSessionDelegate {
  /// Does nothing.
  public func audioSessionDidBeginInterruption(_ session: RTCAudioSession) {}
  /// Does nothing.
  public func audioSessionDidEndInterruption(
    _ session: RTCAudioSession, shouldResumeSession: Bool
  ) {}
  /// Does nothing.
  public func audioSessionDidChangeRoute(
    _ session: RTCAudioSession, reason: AVAudioSession.RouteChangeReason,
    previousRoute: AVAudioSessionRouteDescription
  ) {}
  /// Does nothing.
  public func audioSessionMediaServerTerminated(_ session: RTCAudioSession) {}
  /// Does nothing.
  public func audioSessionMediaServerReset(_ session: RTCAudioSession) {}
  /// Does nothing.
  public func audioSession(
    _ session: RTCAudioSession, didChangeCanPlayOrRecord canPlayOrRecord: Bool
  ) {}
  /// Does nothing.
  public func audioSessionDidStartPlayOrRecord(_ session: RTCAudioSession) {}
  /// Does nothing.
  public func audioSessionDidStopPlayOrRecord(_ session: RTCAudioSession) {}
  /// Does nothing.
  public func audioSession(_ audioSession: RTCAudioSession, willSetActive active: Bool) {}
  /// Does nothing.
  public func audioSession(_ audioSession: RTCAudioSession, didSetActive active: Bool) {}
  /// Does nothing.
  public func audioSession(
    _ audioSession: RTCAudioSession, failedToSetActive active: Bool, error: any Error
  ) {}
}

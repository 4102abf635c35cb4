import AudioSession
public import Foundation
import Live
import Synchronization

/// An audio session's configuration, read when it is applied.
public final class RTCAudioSessionConfiguration {
  /// The raw value of the `AVAudioSession.Category`.
  public var category = AVAudioSession.Category.playAndRecord.rawValue
  /// How the category mixes with other audio, and which ports it may use.
  public var categoryOptions: AVAudioSession.CategoryOptions = .allowBluetooth
  /// The raw value of the `AVAudioSession.Mode`.
  public var mode = AVAudioSession.Mode.voiceChat.rawValue
  /// The preferred sample rate in Hz.
  public var sampleRate = 48_000.0
  /// The preferred I/O buffer duration in seconds.
  public var ioBufferDuration: TimeInterval = 0.02
  /// The preferred number of microphone channels.
  public var inputNumberOfChannels = 1
  /// The preferred number of output channels.
  public var outputNumberOfChannels = 1

  private static let usual = Mutex<AudioSessionConfiguration?>(nil)

  /// Creates the default configuration for calls.
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

  /// Returns the configuration that `setWebRTC` set, or else the default configuration for calls.
  public static func webRTC() -> RTCAudioSessionConfiguration {
    chosen.map { RTCAudioSessionConfiguration($0) }
      ?? RTCAudioSessionConfiguration(
        AudioSessionConfiguration())
  }

  /// The default configuration that the application set; nil for the audio session's own default.
  static var chosen: AudioSessionConfiguration? { usual.withLock { $0 } }

  /// Sets the default configuration for factories that start later.
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

/// Rounds to an integer; a number that does not fit becomes 0, which a device rejects.
func whole(_ value: Double) -> Int { Int(exactly: value.rounded()) ?? 0 }

/// A combination of category, mode and output that client SDKs set together.
package enum AudioModeChoice: Sendable {
  /// A category with the default mode.
  case plain(AVAudioSession.Category, toSpeaker: Bool)
  /// The mode for video calls.
  case videoChat
  /// The mode for voice calls.
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

/// The settings that an application made for its process's audio session, to apply to sessions that
/// start later.
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
  /// The last call of each kind, in order; a complete configuration replaces all earlier calls.
  private var settings: [AudioSessionCall] = []

  /// Records a call for later sessions.
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

  /// Records a combined mode as separate calls for its category, mode and port.
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

  /// Applies the settings to a starting session; a setting that the device rejects stays unchanged.
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
  /// The call's name without arguments.
  fileprivate var name: String { "\(self)".prefix { $0 != "(" }.description }
}

// MARK: - RTCAudioSessionDelegate

/// Receives the audio session's events, on a separate thread; all methods are optional.
public protocol RTCAudioSessionDelegate: AnyObject {
  /// Reports that the system or another application has taken over the device.
  func audioSessionDidBeginInterruption(_ session: RTCAudioSession)
  /// Reports that the device is free again.
  func audioSessionDidEndInterruption(_ session: RTCAudioSession, shouldResumeSession: Bool)
  /// Reports a new audio route.
  func audioSessionDidChangeRoute(
    _ session: RTCAudioSession, reason: AVAudioSession.RouteChangeReason,
    previousRoute: AVAudioSessionRouteDescription)
  /// Reports that the system's audio server has terminated.
  func audioSessionMediaServerTerminated(_ session: RTCAudioSession)
  /// Reports that the audio server is available again.
  func audioSessionMediaServerReset(_ session: RTCAudioSession)
  /// Reports whether the device may run.
  func audioSession(_ session: RTCAudioSession, didChangeCanPlayOrRecord canPlayOrRecord: Bool)
  /// Reports that the first connection started to play or record.
  func audioSessionDidStartPlayOrRecord(_ session: RTCAudioSession)
  /// Reports that the last connection stopped playing and recording.
  func audioSessionDidStopPlayOrRecord(_ session: RTCAudioSession)
  /// Reports that the session is about to be activated or deactivated.
  func audioSession(_ audioSession: RTCAudioSession, willSetActive active: Bool)
  /// Reports that the session was activated or deactivated.
  func audioSession(_ audioSession: RTCAudioSession, didSetActive active: Bool)
  /// Reports that activating or deactivating the session failed.
  func audioSession(
    _ audioSession: RTCAudioSession, failedToSetActive active: Bool, error: any Error)
}

// Methods that the Objective-C header marks as optional.
extension RTCAudioSessionDelegate {
  /// Does nothing by default.
  public func audioSessionDidBeginInterruption(_ session: RTCAudioSession) {}
  /// Does nothing by default.
  public func audioSessionDidEndInterruption(
    _ session: RTCAudioSession, shouldResumeSession: Bool
  ) {}
  /// Does nothing by default.
  public func audioSessionDidChangeRoute(
    _ session: RTCAudioSession, reason: AVAudioSession.RouteChangeReason,
    previousRoute: AVAudioSessionRouteDescription
  ) {}
  /// Does nothing by default.
  public func audioSessionMediaServerTerminated(_ session: RTCAudioSession) {}
  /// Does nothing by default.
  public func audioSessionMediaServerReset(_ session: RTCAudioSession) {}
  /// Does nothing by default.
  public func audioSession(
    _ session: RTCAudioSession, didChangeCanPlayOrRecord canPlayOrRecord: Bool
  ) {}
  /// Does nothing by default.
  public func audioSessionDidStartPlayOrRecord(_ session: RTCAudioSession) {}
  /// Does nothing by default.
  public func audioSessionDidStopPlayOrRecord(_ session: RTCAudioSession) {}
  /// Does nothing by default.
  public func audioSession(_ audioSession: RTCAudioSession, willSetActive active: Bool) {}
  /// Does nothing by default.
  public func audioSession(_ audioSession: RTCAudioSession, didSetActive active: Bool) {}
  /// Does nothing by default.
  public func audioSession(
    _ audioSession: RTCAudioSession, failedToSetActive active: Bool, error: any Error
  ) {}
}

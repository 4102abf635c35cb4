import AudioSession
public import Foundation
public import Live
import Synchronization

/// The domain of errors of the audio session.
public let kRTCAudioSessionErrorDomain = "org.webrtc.RTCAudioSession"
/// A setting was changed without holding the lock.
public let kRTCAudioSessionErrorLockRequired = -1
/// The device refused a setting.
public let kRTCAudioSessionErrorConfiguration = -2

/// Why a call of the audio session failed.
public struct RTCAudioSessionError: LocalizedError, CustomNSError, Hashable {
  private let error: AudioSessionError

  init(_ error: AudioSessionError) { self.error = error }

  /// The reason in one sentence.
  public var errorDescription: String? { error.description }
  /// `kRTCAudioSessionErrorDomain`.
  public static var errorDomain: String { kRTCAudioSessionErrorDomain }
  /// The number of the header.
  public var errorCode: Int {
    error == .lockRequired ? kRTCAudioSessionErrorLockRequired : kRTCAudioSessionErrorConfiguration
  }
}

/// The audio session of the process, over an `AudioSession` that is recorded when its `Session` is.
public final class RTCAudioSession: Sendable {
  private struct Delegate: Sendable {
    weak var delegate: (any RTCAudioSessionDelegate)?
  }

  private struct State {
    var session: AudioSession?
    var listening: Task<Void, Never>?
    var channels = (input: 1, output: 1)
  }

  private static let shared = RTCAudioSession()
  private let state = Mutex(State())
  private let delegates = Mutex<[Delegate]>([])
  private let lock = NSRecursiveLock()

  private init() {}

  /// The one audio session of the process.
  public static func sharedInstance() -> RTCAudioSession { shared }

  /// Chooses what stands behind the audio session of the process; nil: nothing, and all settings
  /// fail.
  public func use(_ session: AudioSession?) {
    let events = session?.events
    let before = state.withLock { state in
      defer {
        state.session = session
        state.listening = events.map { events in
          Task { [weak self] in
            for await event in events { self?.tell(event) }
          }
        }
      }
      return state.listening
    }
    before?.cancel()
  }

  private var session: AudioSession? { state.withLock { $0.session } }

  private func call(_ call: AudioSessionCall) throws {
    guard let session else { throw RTCAudioSessionError(.busy) }
    do throws(AudioSessionError) {
      try session.call(call)
    } catch {
      throw RTCAudioSessionError(error)
    }
  }

  // MARK: The lock

  /// Takes the lock for changes; waits while another thread has it.
  ///
  /// It belongs to the thread, as that of libwebrtc does: give it back before the next `await`,
  /// after which a task may be on another one.
  public func lockForConfiguration() {
    lock.lock()
    try? call(.lock)
  }

  /// Gives the lock back.
  public func unlockForConfiguration() {
    try? call(.unlock)
    lock.unlock()
  }

  // MARK: State

  /// Whether somebody holds the lock.
  public var isLocked: Bool { session?.snapshot.isLocked ?? false }
  /// Whether the device gave the right to audio.
  public var isActive: Bool { session?.snapshot.isActive ?? false }
  /// What audio is used for.
  public var category: String {
    AVAudioSession.Category(
      AudioSessionCategory(rawValue: session?.snapshot.category ?? "")
    ).rawValue
  }
  /// What it is tuned for.
  public var mode: String {
    AVAudioSession.Mode(AudioSessionMode(rawValue: session?.snapshot.mode ?? "")).rawValue
  }
  /// Other audio, and ports.
  public var categoryOptions: AVAudioSession.CategoryOptions {
    AVAudioSession.CategoryOptions(rawValue: session?.snapshot.options ?? 0)
  }
  /// Whether the device waits for `isAudioEnabled`.
  public var useManualAudio: Bool {
    get { session?.useManualAudio ?? false }
    set { session?.useManualAudio = newValue }
  }
  /// Whether the device may run, with manual audio.
  public var isAudioEnabled: Bool {
    get { session?.isAudioEnabled ?? false }
    set { session?.isAudioEnabled = newValue }
  }

  // MARK: Settings, under the lock

  /// Takes the right to audio, or gives it back; it counts.
  public func setActive(_ active: Bool) throws { try call(.setActive(active)) }

  /// Sets what audio is used for.
  public func setCategory(
    _ category: AVAudioSession.Category, with options: AVAudioSession.CategoryOptions = []
  ) throws {
    try call(
      .setCategory(category.native, options: AudioSessionOptions(rawValue: options.rawValue)))
  }

  /// Sets what audio is used for, by its name.
  public func setCategory(
    _ category: String, with options: AVAudioSession.CategoryOptions = []
  ) throws { try setCategory(AVAudioSession.Category(rawValue: category), with: options) }

  /// Sets what it is tuned for.
  public func setMode(_ mode: AVAudioSession.Mode) throws { try call(.setMode(mode.native)) }

  /// Sets what it is tuned for, by its name.
  public func setMode(_ mode: String) throws {
    try setMode(AVAudioSession.Mode(rawValue: mode))
  }

  /// Sends output to the loudspeaker, or where the route says.
  public func overrideOutputAudioPort(_ portOverride: AVAudioSession.PortOverride) throws {
    try call(.overridePort(portOverride == .speaker ? .speaker : .none))
  }

  /// Asks for a rate in Hz.
  public func setPreferredSampleRate(_ sampleRate: Double) throws {
    try call(.setPreferredSampleRate(whole(sampleRate)))
  }

  /// Asks for a period of input and output in seconds.
  public func setPreferredIOBufferDuration(_ duration: TimeInterval) throws {
    try call(.setPreferredIOBuffer(milliseconds: whole(duration * 1000)))
  }

  /// Asks for channels of the microphone.
  public func setPreferredInputNumberOfChannels(_ count: Int) throws {
    let output = state.withLock { $0.channels.output }
    try call(.setPreferredChannels(input: count, output: output))
    state.withLock { $0.channels.input = count }
  }

  /// Asks for channels of the output.
  public func setPreferredOutputNumberOfChannels(_ count: Int) throws {
    let input = state.withLock { $0.channels.input }
    try call(.setPreferredChannels(input: input, output: count))
    state.withLock { $0.channels.output = count }
  }

  /// Sets all of the configuration.
  public func setConfiguration(_ configuration: RTCAudioSessionConfiguration) throws {
    try call(.configure(configuration.native))
  }

  /// Sets all of the configuration, and takes the right to audio or gives it back.
  public func setConfiguration(
    _ configuration: RTCAudioSessionConfiguration, active: Bool
  ) throws {
    try setConfiguration(configuration)
    try setActive(active)
  }

  // MARK: From outside

  /// The system activated the session by itself, as for a call of its own telephone.
  public func audioSessionDidActivate(_ session: AVAudioSession) {
    self.session?.handle(.externallyActivated)
  }

  /// The system deactivated the session.
  public func audioSessionDidDeactivate(_ session: AVAudioSession) {
    self.session?.handle(.externallyDeactivated)
  }

  // MARK: Delegates

  /// Adds a delegate; it is not kept alive.
  public func add(_ delegate: any RTCAudioSessionDelegate) {
    delegates.withLock { $0.append(Delegate(delegate: delegate)) }
  }

  /// Removes a delegate.
  public func remove(_ delegate: any RTCAudioSessionDelegate) {
    delegates.withLock { delegates in
      delegates.removeAll { $0.delegate == nil || $0.delegate === delegate }
    }
  }

  private func tell(_ event: AudioSessionEvent) {
    for entry in delegates.withLock({ $0 }) {
      if let delegate = entry.delegate { tell(event, to: delegate) }
    }
  }

  private func tell(_ event: AudioSessionEvent, to delegate: any RTCAudioSessionDelegate) {
    switch event {
    case .didBeginInterruption: delegate.audioSessionDidBeginInterruption(self)
    case .didEndInterruption(let resumes):
      delegate.audioSessionDidEndInterruption(self, shouldResumeSession: resumes)
    case .didChangeRoute(let reason, let previous, _):
      delegate.audioSessionDidChangeRoute(
        self, reason: AVAudioSession.RouteChangeReason(reason),
        previousRoute: AVAudioSessionRouteDescription(previous))
    case .mediaServerTerminated: delegate.audioSessionMediaServerTerminated(self)
    case .mediaServerReset: delegate.audioSessionMediaServerReset(self)
    case .didChangeCanPlayOrRecord(let can):
      delegate.audioSession(self, didChangeCanPlayOrRecord: can)
    case .didStartPlayOrRecord: delegate.audioSessionDidStartPlayOrRecord(self)
    case .didStopPlayOrRecord: delegate.audioSessionDidStopPlayOrRecord(self)
    case .willSetActive(let active): delegate.audioSession(self, willSetActive: active)
    case .didSetActive(let active): delegate.audioSession(self, didSetActive: active)
    case .failedToSetActive(let active, let code):
      delegate.audioSession(
        self, failedToSetActive: active,
        error: NSError(domain: kRTCAudioSessionErrorDomain, code: Int(code)))
    case .operationFailed, .sourceStarved, .sourceResumed, .sourceFormatChanged, .sourceRefused:
      break
    }
  }
}

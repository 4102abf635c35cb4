import AudioSession
public import Foundation
public import Live
import Synchronization

/// The domain of the errors that the audio session throws.
public let kRTCAudioSessionErrorDomain = "org.webrtc.RTCAudioSession"
/// The error code for changing a setting without holding the lock.
public let kRTCAudioSessionErrorLockRequired = -1
/// The error code for a setting that the device rejected.
public let kRTCAudioSessionErrorConfiguration = -2

/// An error from a call to the audio session.
public struct RTCAudioSessionError: LocalizedError, CustomNSError, Hashable {
  private let reason: String
  private let isLockMissing: Bool

  init(_ error: AudioSessionError) {
    self.init(error.description, isLockMissing: error == .lockRequired)
  }

  init(_ reason: String, isLockMissing: Bool = false) {
    (self.reason, self.isLockMissing) = (reason, isLockMissing)
  }

  /// The reason in one sentence.
  public var errorDescription: String? { reason }
  /// The error domain, always `kRTCAudioSessionErrorDomain`.
  public static var errorDomain: String { kRTCAudioSessionErrorDomain }
  /// The error code, as in the Objective-C header.
  public var errorCode: Int {
    isLockMissing ? kRTCAudioSessionErrorLockRequired : kRTCAudioSessionErrorConfiguration
  }
}

/// The process's audio session.
///
/// It controls the sessions of all factories that use the machine's device, or only the session
/// that the application set with `use`.
///
/// Settings are stored, so they can be made before the first factory exists.
public final class RTCAudioSession: Sendable {
  private struct Entry: Sendable {
    weak var session: AudioSession?
    let listening: Task<Void, Never>
  }

  private struct State: Sendable {
    /// The session that the application set to replace the factories' sessions.
    var chosen: AudioSession?
    var listening: Task<Void, Never>?
    /// The factories' sessions, newest last.
    var joined: [Entry] = []
    var kept = KeptAudioSettings()

    var sessions: [AudioSession] {
      chosen.map { [$0] } ?? joined.compactMap(\.session)
    }
  }

  private static let shared = RTCAudioSession()
  private let state = Mutex(State())
  private let delegates = Mutex<[WeakDelegate<any RTCAudioSessionDelegate>]>([])
  private let lock = NSRecursiveLock()

  private init() {}

  /// Returns the process's shared audio session.
  public static func sharedInstance() -> RTCAudioSession { shared }

  /// The same session with AVFoundation's interface.
  public var session: AVAudioSession { AVAudioSession.sharedInstance() }

  /// Replaces the factories' sessions with one session; nil restores them and discards the settings
  /// made so far.
  public func use(_ session: AudioSession?) {
    let listening = session.map { follow($0) }
    let before = state.withLock { state in
      defer {
        (state.chosen, state.listening) = (session, listening)
        if session == nil { state.kept = KeptAudioSettings() }
      }
      return state.listening
    }
    before?.cancel()
  }

  /// Adds a factory's new session and applies earlier settings to it.
  func join(_ session: AudioSession) {
    let entry = Entry(session: session, listening: follow(session))
    let kept = state.withLock { state in
      state.joined.removeAll { $0.session == nil }
      state.joined.append(entry)
      return state.kept
    }
    kept.apply(to: session)
  }

  private func follow(_ session: AudioSession) -> Task<Void, Never> {
    let events = session.events
    return Task { [weak self] in
      for await event in events { self?.notify(event) }
    }
  }

  /// The sessions that have not finished; calls apply to all of them.
  private var sessions: [AudioSession] {
    state.withLock { $0.sessions }.filter { !$0.isFinished }
  }
  private var snapshot: AudioSessionSnapshot? { sessions.last?.snapshot }
  private var kept: KeptAudioSettings { state.withLock { $0.kept } }

  private func call(_ call: AudioSessionCall) throws {
    let isChosen = state.withLock { $0.chosen != nil }
    let sessions = sessions
    do throws(AudioSessionError) {
      if !isChosen, call.needsLock, kept.locks == 0 { throw .lockRequired }
      for session in sessions { try session.call(call) }
    } catch {
      throw RTCAudioSessionError(error)
    }
    if !isChosen { state.withLock { $0.kept.store(call) } }
  }

  // MARK: Lock

  /// Acquires the lock for changes; blocks while another thread holds it.
  ///
  /// As in libwebrtc, the thread owns the lock: release it before the next `await`, after which a
  /// task may run on another thread.
  public func lockForConfiguration() {
    lock.lock()
    try? call(.lock)
  }

  /// Releases the lock.
  public func unlockForConfiguration() {
    try? call(.unlock)
    lock.unlock()
  }

  // MARK: State

  /// Whether a thread holds the lock.
  public var isLocked: Bool { snapshot?.isLocked ?? (kept.locks > 0) }
  /// Whether the session is active.
  public var isActive: Bool { snapshot?.isActive ?? false }
  /// The AVFoundation name of the category; before the first connection, the category that the
  /// application has set.
  public var category: String {
    AVAudioSession.Category(
      AudioSessionCategory(rawValue: snapshot?.category ?? kept.category.rawValue)
    ).rawValue
  }
  /// The AVFoundation name of the mode; before the first connection, the mode that the application
  /// has set.
  public var mode: String {
    AVAudioSession.Mode(AudioSessionMode(rawValue: snapshot?.mode ?? kept.mode.rawValue)).rawValue
  }
  /// How the category mixes with other audio, and which ports it may use.
  public var categoryOptions: AVAudioSession.CategoryOptions {
    AVAudioSession.CategoryOptions(rawValue: snapshot?.options ?? kept.options.rawValue)
  }
  /// Whether the device waits for `isAudioEnabled`.
  public var useManualAudio: Bool {
    get { snapshot?.useManualAudio ?? kept.isManual }
    set { try? call(.useManualAudio(newValue)) }
  }
  /// Whether the device may run while `useManualAudio` is set.
  public var isAudioEnabled: Bool {
    get { snapshot?.isAudioEnabled ?? kept.isEnabled }
    set { try? call(.setAudioEnabled(newValue)) }
  }

  // MARK: Device

  private var route: AudioRoute {
    snapshot?.audioRoute
      ?? AudioRoute(input: "", output: "", captureFormat: nil, renderFormat: nil)
  }
  private var wanted: AudioSessionConfiguration { snapshot?.wanted ?? kept.configuration }

  /// The current inputs and outputs; empty before a connection needs audio.
  public var currentRoute: AVAudioSessionRouteDescription {
    AVAudioSessionRouteDescription(route, isSpeaker: isSpeaker)
  }
  private var isSpeaker: Bool { (snapshot?.portOverride ?? kept.portOverride) == .speaker }
  /// Whether there is a microphone.
  public var inputAvailable: Bool { route.captureFormat != nil }
  /// The device's sample rate in Hz; the preferred rate while there is no device.
  public var sampleRate: Double {
    Double((route.captureFormat ?? route.renderFormat)?.sampleRate ?? wanted.sampleRate)
  }
  /// The preferred sample rate in Hz.
  public var preferredSampleRate: Double { Double(wanted.sampleRate) }
  /// The I/O buffer duration in seconds, which equals the preferred duration.
  public var ioBufferDuration: TimeInterval { preferredIOBufferDuration }
  /// The preferred I/O buffer duration in seconds.
  public var preferredIOBufferDuration: TimeInterval {
    Double(wanted.ioBufferMilliseconds) / 1000
  }
  /// The number of microphone channels.
  public var inputNumberOfChannels: Int { route.captureFormat?.channels ?? 0 }
  /// The number of output channels.
  public var outputNumberOfChannels: Int { route.renderFormat?.channels ?? 0 }
  /// The maximum number of microphone channels, which is the current number.
  public var maximumInputNumberOfChannels: Int { inputNumberOfChannels }
  /// The maximum number of output channels, which is the current number.
  public var maximumOutputNumberOfChannels: Int { outputNumberOfChannels }
  /// The microphone's latency in seconds: one buffer.
  public var inputLatency: TimeInterval { inputAvailable ? ioBufferDuration : 0 }
  /// The output's latency in seconds: one buffer.
  public var outputLatency: TimeInterval { route.renderFormat == nil ? 0 : ioBufferDuration }
  /// The output's volume, 0 to 1; the system controls it, so it is always 1 here.
  public var outputVolume: Float { 1 }
  /// The microphone's gain, 0 to 1; the system controls it, so it is always 1 here.
  public var inputGain: Float { 1 }
  /// Whether `setInputGain` has an effect; always false.
  public var isInputGainSettable: Bool { false }
  /// Whether secondary audio should be silenced; always false, since other applications' audio is
  /// not observed here.
  public var secondaryAudioShouldBeSilencedHint: Bool { false }
  /// The microphone's data sources; always nil, because they are not known here.
  public var inputDataSources: [AVAudioSessionDataSourceDescription]? { nil }
  /// The microphone's selected data source; always nil.
  public var inputDataSource: AVAudioSessionDataSourceDescription? { nil }
  /// The output's data sources; always nil, because they are not known here.
  public var outputDataSources: [AVAudioSessionDataSourceDescription]? { nil }
  /// The output's selected data source; always nil.
  public var outputDataSource: AVAudioSessionDataSourceDescription? { nil }

  /// Always throws: a microphone's gain cannot be set here.
  public func setInputGain(_ gain: Float) throws {
    throw RTCAudioSessionError("the system controls the microphone's gain here")
  }

  /// Requests permission for the microphone now, rather than when the first connection sends audio.
  /// - Parameter completionHandler: receives the error; nil on success.
  public func initializeInput(completionHandler: @escaping ((any Error)?) -> Void) {
    do {
      try call(.initializeInput)
      completionHandler(nil)
    } catch {
      completionHandler(error)
    }
  }

  // MARK: Settings that need the lock

  /// Activates or deactivates the session; activations are counted.
  public func setActive(_ active: Bool) throws { try call(.setActive(active)) }

  /// Sets the category and its options without changing the mode.
  public func setCategory(
    _ category: AVAudioSession.Category, with options: AVAudioSession.CategoryOptions = []
  ) throws {
    try call(
      .setCategory(category.native, options: AudioSessionOptions(rawValue: options.rawValue)))
  }

  /// Sets the category by its AVFoundation name, without changing the mode.
  public func setCategory(
    _ category: String, with options: AVAudioSession.CategoryOptions = []
  ) throws { try setCategory(AVAudioSession.Category(rawValue: category), with: options) }

  /// Sets the mode without changing the category.
  public func setMode(_ mode: AVAudioSession.Mode) throws { try call(.setMode(mode.native)) }

  /// Sets the mode by its AVFoundation name, without changing the category.
  public func setMode(_ mode: String) throws {
    try setMode(AVAudioSession.Mode(rawValue: mode))
  }

  /// Sends output to the loudspeaker, or restores the route's normal output.
  public func overrideOutputAudioPort(_ portOverride: AVAudioSession.PortOverride) throws {
    try call(.overridePort(portOverride == .speaker ? .speaker : .none))
  }

  /// Sets the preferred sample rate in Hz.
  public func setPreferredSampleRate(_ sampleRate: Double) throws {
    try call(.setPreferredSampleRate(whole(sampleRate)))
  }

  /// Sets the preferred I/O buffer duration in seconds.
  public func setPreferredIOBufferDuration(_ duration: TimeInterval) throws {
    try call(.setPreferredIOBuffer(milliseconds: whole(duration * 1000)))
  }

  /// Sets the preferred number of microphone channels.
  public func setPreferredInputNumberOfChannels(_ count: Int) throws {
    try call(.setPreferredChannels(input: count, output: wanted.outputChannels))
  }

  /// Sets the preferred number of output channels.
  public func setPreferredOutputNumberOfChannels(_ count: Int) throws {
    try call(.setPreferredChannels(input: wanted.inputChannels, output: count))
  }

  /// Applies a complete configuration.
  public func setConfiguration(_ configuration: RTCAudioSessionConfiguration) throws {
    try call(.configure(configuration.native))
  }

  /// Applies a complete configuration, and activates or deactivates the session.
  public func setConfiguration(
    _ configuration: RTCAudioSessionConfiguration, active: Bool
  ) throws {
    try setConfiguration(configuration)
    try setActive(active)
  }

  /// Applies a mode, which sets category, mode, options and port together.
  /// - Throws: `RTCAudioSessionError` if the device rejects one of these settings; the settings
  ///   after it stay unchanged.
  package func apply(_ mode: AudioModeChoice, options: AVAudioSession.CategoryOptions) throws {
    try call(.applyMode(mode.native, options: AudioSessionOptions(rawValue: options.rawValue)))
  }

  // MARK: External activation

  /// Reports that the system activated the session itself, as for a CallKit call.
  public func audioSessionDidActivate(_ session: AVAudioSession) {
    for session in sessions { session.handle(.externallyActivated) }
  }

  /// Reports that the system deactivated the session.
  public func audioSessionDidDeactivate(_ session: AVAudioSession) {
    for session in sessions { session.handle(.externallyDeactivated) }
  }

  // MARK: Delegates

  /// Adds a delegate, held weakly.
  public func add(_ delegate: any RTCAudioSessionDelegate) {
    let delegate = WeakDelegate { [weak delegate] in delegate }
    delegates.withLock { $0.append(delegate) }
  }

  /// Removes a delegate; a delegate that was not added is ignored.
  public func remove(_ delegate: any RTCAudioSessionDelegate) {
    let gone = WeakDelegate { [weak delegate] in delegate }
    delegates.withLock { delegates in
      delegates.removeAll { $0.value == nil || $0.refers(toSameAs: gone) }
    }
  }

  private func notify(_ event: AudioSessionEvent) {
    for entry in delegates.withLock({ $0 }) {
      if let delegate = entry.value { notify(event, to: delegate) }
    }
  }

  private func notify(_ event: AudioSessionEvent, to delegate: any RTCAudioSessionDelegate) {
    switch event {
    case .didBeginInterruption: delegate.audioSessionDidBeginInterruption(self)
    case .didEndInterruption(let resumes):
      delegate.audioSessionDidEndInterruption(self, shouldResumeSession: resumes)
    case .didChangeRoute(let reason, let previous, _):
      delegate.audioSessionDidChangeRoute(
        self, reason: AVAudioSession.RouteChangeReason(reason),
        previousRoute: AVAudioSessionRouteDescription(previous, isSpeaker: isSpeaker))
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

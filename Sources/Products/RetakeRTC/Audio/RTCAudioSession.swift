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
  /// `kRTCAudioSessionErrorDomain`.
  public static var errorDomain: String { kRTCAudioSessionErrorDomain }
  /// The number of the header.
  public var errorCode: Int {
    isLockMissing ? kRTCAudioSessionErrorLockRequired : kRTCAudioSessionErrorConfiguration
  }
}

/// The audio session of the process: that of every factory over the machine's device, each of them
/// recorded where its factory is, or one that the application chose.
///
/// What is set is kept for factories that come later, so that it may be set before there is one.
public final class RTCAudioSession: Sendable {
  private struct Entry: Sendable {
    weak var session: AudioSession?
    let listening: Task<Void, Never>
  }

  private struct State: Sendable {
    /// What the application chose in the place of the factories' sessions.
    var chosen: AudioSession?
    var listening: Task<Void, Never>?
    /// The sessions of factories, the newest last.
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

  /// The one audio session of the process.
  public static func sharedInstance() -> RTCAudioSession { shared }

  /// The names of AVFoundation for the same.
  public var session: AVAudioSession { AVAudioSession.sharedInstance() }

  /// Chooses what stands behind the audio session of the process, in the place of the sessions that
  /// factories make; nil: those again, and what was set so far is forgotten.
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

  /// A factory has made a session: it gets what was set before.
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

  /// What calls go to: sessions whose factories are not finished.
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
  public var isLocked: Bool { snapshot?.isLocked ?? (kept.locks > 0) }
  /// Whether the device gave the right to audio.
  public var isActive: Bool { snapshot?.isActive ?? false }
  /// What audio is used for.
  public var category: String {
    AVAudioSession.Category(
      AudioSessionCategory(rawValue: snapshot?.category ?? kept.category.rawValue)
    ).rawValue
  }
  /// What it is tuned for.
  public var mode: String {
    AVAudioSession.Mode(AudioSessionMode(rawValue: snapshot?.mode ?? kept.mode.rawValue)).rawValue
  }
  /// Other audio, and ports.
  public var categoryOptions: AVAudioSession.CategoryOptions {
    AVAudioSession.CategoryOptions(rawValue: snapshot?.options ?? kept.options.rawValue)
  }
  /// Whether the device waits for `isAudioEnabled`.
  public var useManualAudio: Bool {
    get { snapshot?.useManualAudio ?? kept.isManual }
    set { try? call(.useManualAudio(newValue)) }
  }
  /// Whether the device may run, with manual audio.
  public var isAudioEnabled: Bool {
    get { snapshot?.isAudioEnabled ?? kept.isEnabled }
    set { try? call(.setAudioEnabled(newValue)) }
  }

  // MARK: The device

  private var route: AudioRoute {
    snapshot?.audioRoute
      ?? AudioRoute(input: "", output: "", captureFormat: nil, renderFormat: nil)
  }
  private var wanted: AudioSessionConfiguration { snapshot?.wanted ?? kept.configuration }

  /// Where audio comes from and goes to; nothing before a connection needs it.
  public var currentRoute: AVAudioSessionRouteDescription {
    AVAudioSessionRouteDescription(route, isSpeaker: isSpeaker)
  }
  private var isSpeaker: Bool { (snapshot?.portOverride ?? kept.portOverride) == .speaker }
  /// Whether there is a microphone.
  public var inputAvailable: Bool { route.captureFormat != nil }
  /// Frames per second of the device; what was asked for while there is none.
  public var sampleRate: Double {
    Double((route.captureFormat ?? route.renderFormat)?.sampleRate ?? wanted.sampleRate)
  }
  /// Frames per second that were asked for.
  public var preferredSampleRate: Double { Double(wanted.sampleRate) }
  /// How much audio is handed over at once, in seconds: as was asked for.
  public var ioBufferDuration: TimeInterval { preferredIOBufferDuration }
  /// How much audio was asked for at once, in seconds.
  public var preferredIOBufferDuration: TimeInterval {
    Double(wanted.ioBufferMilliseconds) / 1000
  }
  /// Channels of the microphone.
  public var inputNumberOfChannels: Int { route.captureFormat?.channels ?? 0 }
  /// Channels of the output.
  public var outputNumberOfChannels: Int { route.renderFormat?.channels ?? 0 }
  /// The most channels that a microphone here can have.
  public var maximumInputNumberOfChannels: Int { inputNumberOfChannels }
  /// The most channels that an output here can have.
  public var maximumOutputNumberOfChannels: Int { outputNumberOfChannels }
  /// How long audio of the microphone is under way, in seconds: a buffer.
  public var inputLatency: TimeInterval { inputAvailable ? ioBufferDuration : 0 }
  /// How long audio is under way to the output, in seconds: a buffer.
  public var outputLatency: TimeInterval { route.renderFormat == nil ? 0 : ioBufferDuration }
  /// How loud the device plays, 0 to 1; the system decides it, and it stays 1 here.
  public var outputVolume: Float { 1 }
  /// The gain of the microphone, 0 to 1; the system decides it, and it stays 1 here.
  public var inputGain: Float { 1 }
  /// Whether `setInputGain` has an effect: it has none.
  public var isInputGainSettable: Bool { false }
  /// Whether other audio should be silent: nobody else is known here.
  public var secondaryAudioShouldBeSilencedHint: Bool { false }
  /// The parts of the microphone to choose from: none are known here.
  public var inputDataSources: [AVAudioSessionDataSourceDescription]? { nil }
  /// The part of the microphone in use.
  public var inputDataSource: AVAudioSessionDataSourceDescription? { nil }
  /// The parts of the output to choose from: none are known here.
  public var outputDataSources: [AVAudioSessionDataSourceDescription]? { nil }
  /// The part of the output in use.
  public var outputDataSource: AVAudioSessionDataSourceDescription? { nil }

  /// Refuses: the gain of a microphone cannot be set here.
  public func setInputGain(_ gain: Float) throws {
    throw RTCAudioSessionError("the gain of the microphone is set by the system here")
  }

  /// Asks for the microphone and makes it ready, where the audio session does not do it by itself.
  ///
  /// - Parameter completionHandler: told why it may not be used; nil: it may.
  public func initializeInput(completionHandler: @escaping ((any Error)?) -> Void) {
    do {
      try call(.initializeInput)
      completionHandler(nil)
    } catch {
      completionHandler(error)
    }
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
    try call(.setPreferredChannels(input: count, output: wanted.outputChannels))
  }

  /// Asks for channels of the output.
  public func setPreferredOutputNumberOfChannels(_ count: Int) throws {
    try call(.setPreferredChannels(input: wanted.inputChannels, output: count))
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

  /// Goes into a mode: category, mode, options and port in one.
  ///
  /// - Throws: `RTCAudioSessionError`: the device refused one of them; those after it are not set.
  package func apply(_ mode: AudioModeChoice, options: AVAudioSession.CategoryOptions) throws {
    try call(.applyMode(mode.native, options: AudioSessionOptions(rawValue: options.rawValue)))
  }

  // MARK: From outside

  /// The system activated the session by itself, as for a call of its own telephone.
  public func audioSessionDidActivate(_ session: AVAudioSession) {
    for session in sessions { session.handle(.externallyActivated) }
  }

  /// The system deactivated the session.
  public func audioSessionDidDeactivate(_ session: AVAudioSession) {
    for session in sessions { session.handle(.externallyDeactivated) }
  }

  // MARK: Delegates

  /// Adds a delegate; it is not kept alive.
  public func add(_ delegate: any RTCAudioSessionDelegate) {
    let delegate = WeakDelegate { [weak delegate] in delegate }
    delegates.withLock { $0.append(delegate) }
  }

  /// Removes a delegate.
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

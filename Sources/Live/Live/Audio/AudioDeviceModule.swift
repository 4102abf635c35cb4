public import AudioSession
public import Media
import Synchronization
public import Tape

/// An audio device, which performs a session's operations, delivers captured audio and plays the
/// audio that it pulls.
///
/// `perform` is called while the session waits, so it must neither block nor call the session. A
/// running device uses its port from its own thread.
public protocol AudioDeviceModule: Sendable {
  /// The device's name in takes.
  var name: String { get }
  /// The captured format; nil if the device cannot capture.
  var captureFormat: AudioFormat? { get }
  /// The played format; nil if the device cannot play.
  var renderFormat: AudioFormat? { get }
  /// Receives the session's port; called once, before anything else.
  func connect(_ port: AudioDevicePort)
  /// Carries out an operation that the audio session requests, and returns the result.
  func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer
}

extension AudioDeviceModule {
  /// The route of a session with only this device.
  var route: AudioRoute {
    AudioRoute(
      input: captureFormat == nil ? "" : name, output: renderFormat == nil ? "" : name,
      captureFormat: captureFormat, renderFormat: renderFormat)
  }
}

/// A device's access to its session, which does not keep the session alive.
public final class AudioDevicePort: Sendable {
  private weak let session: AudioSession?
  private let processor: VoiceProcessor?

  init(_ session: AudioSession?, _ processor: VoiceProcessor? = nil) {
    (self.session, self.processor) = (session, processor)
  }

  /// Returns a port to the same session; the port runs captured audio through `processor` first.
  func processing(_ processor: VoiceProcessor) -> AudioDevicePort {
    AudioDevicePort(session, processor)
  }

  /// Delivers captured audio to the session.
  /// - Returns: the number of accepted frames.
  /// - Throws: `AudioDeviceError`, which states why no frame was accepted; the audio is counted as
  ///   dropped.
  @discardableResult
  public func capture(_ chunk: PCMChunk) throws(AudioDeviceError) -> Int {
    guard let session else { throw .audioUnitInactive }
    guard let processor else { return try session.deliver(chunk, from: .unit) }
    guard let processed = processor.processed(chunk) else { return chunk.frameCount }
    return try session.deliver(processed, from: .unit)
  }

  /// Returns the next frames to play, in the device's format; silence if there are none.
  public func pull(frames: Int) -> [Int16] {
    let samples = session?.pullPlayout(frames: frames) ?? []
    processor?.played(samples)
    return samples
  }

  /// Reports an event, which the session handles soon afterwards; may be called on any thread.
  public func report(_ event: AudioDeviceEvent) { session?.report(event) }

  /// Whether the session still exists.
  public var isOpen: Bool { session != nil }
}

/// A device without audio: it performs every operation but neither captures nor plays.
public final class NullAudioDevice: AudioDeviceModule {
  /// Creates a device for a session without audio.
  public init() {}

  /// The device's name in takes.
  public var name: String { "null" }
  /// Nil, because the device cannot capture.
  public var captureFormat: AudioFormat? { nil }
  /// Nil, because the device cannot play.
  public var renderFormat: AudioFormat? { nil }
  /// Does nothing: the device has no use for the port.
  public func connect(_ port: AudioDevicePort) {}
  /// Carries out an operation that the audio session requests, and returns the result.
  public func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    operation == .requestPermission ? .permission(.granted) : .ok
  }
}

/// A device controlled by an application or a test, which supplies audio and events and decides
/// which operations fail.
public final class ManualAudioDevice: AudioDeviceModule {
  /// How the device responds to operations.
  public struct Behaviour: Sendable {
    /// Error codes of failing operations, by operation name.
    public var failures: [String: Int32] = [:]
    /// The answer to a request for the microphone.
    public var permission = AudioPermission.granted
    /// Whether the output disappears when the session returns to the default mode, as in one
    /// release of a mobile system.
    public var losesOutputAfterDefaultMode = false

    /// Creates a behaviour without failures.
    public init() {}
  }

  private struct State {
    var behaviour: Behaviour
    var mode = AudioSessionMode.default
    var port: AudioDevicePort?
    var operations: [AudioDeviceOperation] = []
  }

  /// The device's name in takes.
  public let name: String
  /// The captured format; nil if the device cannot capture.
  public let captureFormat: AudioFormat?
  /// The played format; nil if the device cannot play.
  public let renderFormat: AudioFormat?
  private let state: Mutex<State>

  /// Creates a device; a nil format means that it cannot capture, or cannot play.
  public init(
    name: String = "manual", captureFormat: AudioFormat? = AudioFormat(),
    renderFormat: AudioFormat? = AudioFormat(), behaviour: Behaviour = Behaviour()
  ) {
    self.name = name
    self.captureFormat = captureFormat
    self.renderFormat = renderFormat
    state = Mutex(State(behaviour: behaviour))
  }

  /// How the device responds to operations from now on.
  public var behaviour: Behaviour {
    get { state.withLock { $0.behaviour } }
    set { state.withLock { $0.behaviour = newValue } }
  }

  /// The operations performed so far.
  public var operations: [AudioDeviceOperation] { state.withLock { $0.operations } }

  /// The session's port; nil before it is connected.
  public var port: AudioDevicePort? { state.withLock { $0.port } }

  /// Keeps the port, which the application uses to deliver captured audio and to pull playout.
  public func connect(_ port: AudioDevicePort) { state.withLock { $0.port = port } }

  /// Carries out an operation that the audio session requests, and returns the result.
  public func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    state.withLock { state in
      state.operations.append(operation)
      if let code = state.behaviour.failures[operation.name] { return .failed(code: code) }
      switch operation {
      case .requestPermission: return .permission(state.behaviour.permission)
      case .setMode(let mode):
        let isBack = mode == .default && state.mode != .default
        state.mode = mode
        if isBack, state.behaviour.losesOutputAfterDefaultMode {
          let silent = AudioRoute(
            input: name, output: "", captureFormat: captureFormat, renderFormat: nil)
          state.port?.report(.routeChanged(.unknown, silent))
        }
        return .ok
      default: return .ok
      }
    }
  }
}

// MARK: - AudioAttachment

/// Attaches a connection to an audio session until this object is released.
public final class AudioAttachment: Sendable {
  private struct State {
    var received: MediaSubscription?
    var captured: MediaSubscription?
    /// Waits until the connection is established, then reports that to the session.
    var watch: Task<Void, Never>?
    var whenEstablished: (@Sendable () -> Void)?
  }

  private let state: Mutex<State>
  private let end: @Sendable () -> Void

  init(
    received: MediaSubscription?, captured: MediaSubscription?, end: @escaping @Sendable () -> Void
  ) {
    state = Mutex(State(received: received, captured: captured))
    self.end = end
  }

  deinit {
    state.withLock { $0.watch }?.cancel()
    end()
  }

  /// Stops sending captured audio; the microphone stays open until the attachment is released.
  public func endSending() {
    let captured = state.withLock { state in
      defer { state.captured = nil }
      return state.captured
    }
    withExtendedLifetime(captured) {}
  }

  var isSending: Bool { state.withLock { $0.captured != nil } }

  func send(by captured: MediaSubscription) {
    let before = state.withLock { state in
      defer { state.captured = captured }
      return state.captured
    }
    withExtendedLifetime(before) {}
  }

  func watch(by task: Task<Void, Never>) { state.withLock { $0.watch = task } }

  func whenEstablished(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.whenEstablished = body }
  }

  /// Reports that the connection that opened the microphone is established.
  package func establish() { state.withLock { $0.whenEstablished }?() }
}

extension Session {
  /// Creates an audio session that uses a device, and records it in the session's take, if any.
  /// - Throws: `SystemError` if the system refuses a thread.
  public func makeAudioSession(
    device: any AudioDeviceModule, policy: AudioSessionPolicy = AudioSessionPolicy(),
    label: String = "audio"
  ) throws(SystemError) -> AudioSession {
    let session = try AudioSession(
      device: device, policy: policy, label: label, clock: clock, tape: tape)
    register(session)
    return session
  }
}

/// Lets `AudioSource(device:)` send what the session captures.
extension AudioSession: AudioCaptureDevice {
  /// Calls a closure with each captured block of 10 ms until the result is released.
  public func addCaptureSink(_ sink: @escaping @Sendable (AudioBlock) -> Void)
    -> AudioCaptureSubscription
  {
    let subscription = onCaptured(sink)
    return AudioCaptureSubscription { withExtendedLifetime(subscription) {} }
  }
}

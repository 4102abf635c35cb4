public import AudioSession
import Media
import Synchronization

/// A device of audio: it does what a session asks, gives what it captures and plays what it pulls.
///
/// `perform` is called while the session waits: it must return at once and not call the session. A
/// device that runs uses its port from a thread of its own.
public protocol AudioDeviceModule: Sendable {
  /// What it is called in takes.
  var name: String { get }
  /// What it captures; nil when it cannot.
  var captureFormat: AudioFormat? { get }
  /// What it plays; nil when it cannot.
  var renderFormat: AudioFormat? { get }
  /// Tells the device by which port it reaches its session; comes first, and once.
  func connect(_ port: AudioDevicePort)
  /// Does what the session asks.
  func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer
}

extension AudioDeviceModule {
  /// The route of a session that the device is the only one of.
  var route: AudioRoute {
    AudioRoute(
      input: captureFormat == nil ? "" : name, output: renderFormat == nil ? "" : name,
      captureFormat: captureFormat, renderFormat: renderFormat)
  }
}

/// How a device reaches its session, which it does not keep alive.
public final class AudioDevicePort: Sendable {
  private weak let session: AudioSession?
  private let processor: VoiceProcessor?

  init(_ session: AudioSession?, _ processor: VoiceProcessor? = nil) {
    (self.session, self.processor) = (session, processor)
  }

  /// The same with processing of what is captured.
  func processing(_ processor: VoiceProcessor) -> AudioDevicePort {
    AudioDevicePort(session, processor)
  }

  /// Gives the session captured audio.
  ///
  /// - Returns: how many frames were taken.
  /// - Throws: why none was; the audio is counted as dropped.
  @discardableResult
  public func capture(_ chunk: PCMChunk) throws(AudioDeviceError) -> Int {
    guard let session else { throw .audioUnitInactive }
    guard let processor else { return try session.deliver(chunk, from: .unit) }
    guard let processed = processor.processed(chunk) else { return chunk.frameCount }
    return try session.deliver(processed, from: .unit)
  }

  /// The next frames to play, in the device's format; silence where there is nothing.
  public func pull(frames: Int) -> [Int16] {
    let samples = session?.pullPlayout(frames: frames) ?? []
    processor?.played(samples)
    return samples
  }

  /// Says that something happened; safe to call from anywhere, it is taken soon after.
  public func report(_ event: AudioDeviceEvent) { session?.report(event) }

  /// Whether there is still a session.
  public var isOpen: Bool { session != nil }
}

/// A device without audio: it does all that is asked, captures nothing and plays nothing.
public final class NullAudioDevice: AudioDeviceModule {
  /// Creates a device.
  public init() {}

  /// What the device is called in takes.
  public var name: String { "null" }
  /// What it captures; nil when it cannot.
  public var captureFormat: AudioFormat? { nil }
  /// What it plays; nil when it cannot.
  public var renderFormat: AudioFormat? { nil }
  /// Keeps the way to the session.
  public func connect(_ port: AudioDevicePort) {}
  /// Does what the session asks.
  public func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    operation == .requestPermission ? .permission(.granted) : .ok
  }
}

/// A device that an application or a test plays: it gives audio and events, and decides what is
/// refused.
public final class ManualAudioDevice: AudioDeviceModule {
  /// What the device answers.
  public struct Behaviour: Sendable {
    /// Codes for the operations that are refused, by their names.
    public var failures: [String: Int32] = [:]
    /// What is said about the microphone.
    public var permission = AudioPermission.granted
    /// Whether coming back to the default mode from another one leaves no output, as one release of
    /// a platform had it.
    public var losesOutputAfterDefaultMode = false

    /// A device without faults.
    public init() {}
  }

  private struct State {
    var behaviour: Behaviour
    var mode = AudioSessionMode.default
    var port: AudioDevicePort?
    var operations: [AudioDeviceOperation] = []
  }

  /// What the device is called in takes.
  public let name: String
  /// What it captures; nil when it cannot.
  public let captureFormat: AudioFormat?
  /// What it plays; nil when it cannot.
  public let renderFormat: AudioFormat?
  private let state: Mutex<State>

  /// Creates a device of formats of your choice.
  public init(
    name: String = "manual", captureFormat: AudioFormat? = AudioFormat(),
    renderFormat: AudioFormat? = AudioFormat(), behaviour: Behaviour = Behaviour()
  ) {
    self.name = name
    self.captureFormat = captureFormat
    self.renderFormat = renderFormat
    state = Mutex(State(behaviour: behaviour))
  }

  /// How it answers from now on.
  public var behaviour: Behaviour {
    get { state.withLock { $0.behaviour } }
    set { state.withLock { $0.behaviour = newValue } }
  }

  /// What was asked of it so far.
  public var operations: [AudioDeviceOperation] { state.withLock { $0.operations } }

  /// Its way to the session; nil before it has one.
  public var port: AudioDevicePort? { state.withLock { $0.port } }

  /// Keeps the way to the session.
  public func connect(_ port: AudioDevicePort) { state.withLock { $0.port = port } }

  /// Does what the session asks.
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

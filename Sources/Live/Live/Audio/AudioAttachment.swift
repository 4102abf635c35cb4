public import AudioSession
public import Media
import Synchronization
public import Tape

/// Keeps a connection attached to an audio session for as long as it lives.
public final class AudioAttachment: Sendable {
  private struct State {
    var received: MediaSubscription?
    var captured: MediaSubscription?
    /// Waits until the connection is connected.
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

  /// Stops sending captured audio; the microphone stays open for as long as the attachment lives.
  public func endSending() {
    let captured = state.withLock { state in
      defer { state.captured = nil }
      return state.captured
    }
    withExtendedLifetime(captured) {}
  }

  /// Whether captured audio is sent.
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

  /// Reports that the connection for which the microphone was opened is established.
  package func establish() { state.withLock { $0.whenEstablished }?() }
}

extension Session {
  /// Creates an audio session over a device, recorded in the session's take if there is one.
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

/// Audio of tracks: `AudioSource(device:)` sends what the session captures.
extension AudioSession: AudioCaptureDevice {
  /// Calls a closure with each captured block of 10 ms for as long as the result is kept.
  public func addCaptureSink(_ sink: @escaping @Sendable (AudioBlock) -> Void)
    -> AudioCaptureSubscription
  {
    let subscription = onCaptured(sink)
    return AudioCaptureSubscription { withExtendedLifetime(subscription) {} }
  }
}

package import Live
import Synchronization

/// What the products over rooms share with one another: a session for all rooms of a process, and
/// the machine's microphone, loudspeaker and cameras in it.
package final class MachineSession: Sendable {
  private struct State {
    var session: Session?
    var audio: AudioSession?
  }

  private let state = Mutex(State())

  package init() {}

  /// Chooses the session of the rooms that come; nil: one that is not recorded.
  package func use(_ session: Session?) {
    state.withLock { $0 = State(session: session) }
  }

  /// Begins a session that is recorded.
  ///
  /// - Throws: `SessionError` when the take cannot be written.
  package func record(to path: String) throws {
    var options = Session.Options()
    options.takePath = path
    use(try Session(options))
  }

  /// The session, and its audio: both are made with the first room.
  ///
  /// - Throws: `SessionError` when the system refuses a thread.
  package func begin() throws(SessionError) -> (session: Session, audio: AudioSession?) {
    let present = state.withLock { $0 }
    if let session = present.session, present.audio != nil { return (session, present.audio) }
    var options = Session.Options()
    options.statsInterval = nil
    let session: Session
    if let known = present.session { session = known } else { session = try Session(options) }
    let module = RTCAudioDeviceModule()
    module.begin(in: session)
    let audio = module.audioSession
    return state.withLock { state in
      // Who came first at the same time has made them.
      if let session = state.session, state.audio != nil { return (session, state.audio) }
      state = State(session: session, audio: audio)
      return (session, audio)
    }
  }

  /// The audio session; nil before the first room.
  package var audio: AudioSession? { state.withLock { $0.audio } }

  /// Ends all connections and completes the take of a session that records.
  ///
  /// - Throws: `TapeError` when something could not be written; what was written stays valid.
  package func finish() async throws {
    let session = state.withLock { state in
      defer { state = State() }
      return state.session
    }
    try await session?.finish()
  }
}

extension AVCaptureDevice {
  /// A camera of the machine by where it looks, or what stands for it.
  package static func capturer(_ position: CameraPosition) -> (any VideoCapturer)? {
    let wanted: Position = position == .back ? .back : .front
    return all.first { $0.position == wanted }?.capturer
  }

  /// Who is asked before a camera starts: whoever `requestAccess` asks.
  package static var permissions: CameraPermissions {
    CameraPermissions(declaresCameraUse: CaptureAccess.shared.isDeclared(.video)) {
      CaptureAccess.shared.isAllowed(.video)
    }
  }
}

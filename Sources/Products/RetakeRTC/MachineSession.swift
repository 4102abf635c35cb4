package import Dispatch
package import Live
import Synchronization

/// One session for all of a process's rooms, with the machine's microphone, loudspeaker and
/// cameras.
///
/// The client SDKs for rooms share this type.
package final class MachineSession: Sendable {
  private struct State {
    var session: Session?
    var audio: AudioSession?
  }

  private let state = Mutex(State())
  /// Held while a session is created, so that rooms created at the same time share the session.
  private let creation = Mutex(())

  package init() {}

  /// Sets the session for future rooms; nil selects a session that is not recorded.
  package func use(_ session: Session?) {
    state.withLock { $0 = State(session: session) }
  }

  /// Starts a recorded session.
  /// - Throws: `SessionError` if the take cannot be written.
  package func record(to path: String) throws {
    var options = Session.Options()
    options.takePath = path
    use(try Session(options))
  }

  /// Returns the session and its audio, creating both for the first room.
  /// - Throws: `SessionError` if no thread can be created.
  package func begin() throws(SessionError) -> (session: Session, audio: AudioSession?) {
    try creation.withLock { _ throws(SessionError) in
      let present = state.withLock { $0 }
      if let session = present.session, present.audio != nil { return (session, present.audio) }
      var options = Session.Options()
      options.statsInterval = nil
      let session: Session
      if let known = present.session { session = known } else { session = try Session(options) }
      let module = RTCAudioDeviceModule()
      module.begin(in: session)
      let audio = module.audioSession
      state.withLock { $0 = State(session: session, audio: audio) }
      return (session, audio)
    }
  }

  /// The audio session; nil before the first room.
  package var audio: AudioSession? { state.withLock { $0.audio } }

  /// Closes all connections and completes a recorded session's take.
  /// - Throws: `TapeError` if writing failed; everything written before stays valid.
  package func finish() async throws {
    let session = state.withLock { state in
      defer { state = State() }
      return state.session
    }
    try await session?.finish()
  }
}

extension AVCaptureDevice {
  /// Returns the first camera at a position; nil if there is none.
  ///
  /// The cameras are the ones that `useDevices` set, or else the machine's.
  package static func capturer(_ position: CameraPosition) -> (any VideoCapturer)? {
    let wanted: Position = position == .back ? .back : .front
    return all.first { $0.position == wanted }?.capturer
  }

  /// The permissions checked before a camera starts, which `requestAccess` asks for.
  package static var permissions: CameraPermissions {
    CameraPermissions(declaresCameraUse: CaptureAccess.shared.isDeclared(.video)) {
      CaptureAccess.shared.isAllowed(.video)
    }
  }
}

/// The serial queue on which a client SDK calls the application; the application may set another.
package final class CallbackQueue: Sendable {
  private let chosen: Mutex<DispatchQueue>

  package init(label: String) { chosen = Mutex(DispatchQueue(label: label)) }

  /// The queue in use.
  package var queue: DispatchQueue {
    get { chosen.withLock { $0 } }
    set { chosen.withLock { $0 = newValue } }
  }

  /// Calls a closure on the queue, after all earlier ones.
  package func call(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }
}

// As in libwebrtc, an application's delegates, renderers, factories and completion handlers are
// ordinary classes and closures and need not be Sendable. Only the types here carry them to another
// thread.

/// An application's closure or object, passed to the thread that calls it.
///
/// The compiler cannot verify that this is safe. The interface guarantees that the value is only
/// stored, passed on, and called one call at a time, on the factory's queue or on the documented
/// thread.
package struct Handed<Value>: @unchecked Sendable {
  package let value: Value

  package init(_ value: Value) { self.value = value }
}

/// An application's delegate, held weakly, with the same guarantee as `Handed`.
///
/// The delegate is never cast. Its class may conform to the protocol only on the main actor, and
/// then a cast on another thread fails.
package struct WeakDelegate<Delegate>: @unchecked Sendable {
  private let find: () -> Delegate?

  /// - Parameter find: returns the delegate, which the closure holds weakly.
  package init(_ find: @escaping () -> Delegate?) { self.find = find }

  /// The delegate; nil once it is deallocated.
  package var value: Delegate? { find() }

  func refers(toSameAs other: WeakDelegate) -> Bool {
    guard let own = find(), let other = other.find() else { return false }
    return (own as AnyObject) === (other as AnyObject)
  }
}

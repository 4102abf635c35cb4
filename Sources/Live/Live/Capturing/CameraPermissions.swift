public import AudioSession
import Synchronization

/// Whether a camera may be used, as its user says; nobody is asked twice.
///
/// On this system the right to open a device decides. An application that has to ask its user, and
/// a test of one, gives the answer here; `VideoCaptureSession` asks before it starts.
public final class CameraPermissions: Sendable {
  private struct State {
    var status: AudioPermission
    var asked: Task<AudioPermission, Never>?
  }

  /// Whether the application has said what it wants the camera for; without that the camera is
  /// refused before anybody is asked.
  public let declaresCameraUse: Bool
  private let state: Mutex<State>
  private let answer: @Sendable () async -> Bool

  /// Creates permissions.
  ///
  /// - Parameters:
  ///   - status: what is known already.
  ///   - declaresCameraUse: whether the application has said what it wants the camera for.
  ///   - answer: what the user says when nothing is.
  public init(
    _ status: AudioPermission = .undetermined, declaresCameraUse: Bool = true,
    answer: @escaping @Sendable () async -> Bool
  ) {
    self.declaresCameraUse = declaresCameraUse
    state = Mutex(State(status: status))
    self.answer = answer
  }

  /// What is known.
  public var status: AudioPermission {
    declaresCameraUse ? state.withLock { $0.status } : .denied
  }

  /// What the user says, who is asked when nothing is known.
  public func request() async -> AudioPermission {
    guard declaresCameraUse else { return .denied }
    let asked = state.withLock { state -> Task<AudioPermission, Never>? in
      guard state.status == .undetermined else { return nil }
      if let asked = state.asked { return asked }
      let asked = Task { [answer] in await answer() ? AudioPermission.granted : .denied }
      state.asked = asked
      return asked
    }
    guard let asked else { return status }
    let said = await asked.value
    state.withLock { $0.status = said }
    return said
  }
}

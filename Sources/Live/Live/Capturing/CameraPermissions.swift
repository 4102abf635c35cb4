public import AudioSession
import Synchronization

/// The user's permission for the camera; nobody is asked twice.
///
/// On Linux the right to open the device decides. An application that has to ask its user, and a
/// test of one, provides the answer here; `VideoCaptureSession` asks before it starts.
public final class CameraPermissions: Sendable {
  private struct State {
    var status: AudioPermission
    var asked: Task<AudioPermission, Never>?
  }

  /// Whether the application declares its use of the camera; otherwise it is refused without
  /// asking.
  public let declaresCameraUse: Bool
  private let state: Mutex<State>
  private let answer: @Sendable () async -> Bool

  /// Creates permissions.
  /// - Parameters:
  ///   - status: the decision if known.
  ///   - declaresCameraUse: whether the application declares its use of the camera.
  ///   - answer: asks the user, if not decided yet.
  public init(
    _ status: AudioPermission = .undetermined, declaresCameraUse: Bool = true,
    answer: @escaping @Sendable () async -> Bool
  ) {
    self.declaresCameraUse = declaresCameraUse
    state = Mutex(State(status: status))
    self.answer = answer
  }

  /// The decision so far.
  public var status: AudioPermission {
    declaresCameraUse ? state.withLock { $0.status } : .denied
  }

  /// Returns the user's decision, asking if there is none.
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

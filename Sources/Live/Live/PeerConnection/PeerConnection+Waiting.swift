import ICE
public import Peer

// Waiting for states, with a time limit.
extension PeerConnection {
  /// Returns once all local candidates are known; throws `TimeoutError` after the time limit.
  public func waitForGatheringComplete(timeout: Duration = .seconds(5)) async throws(PeerError) {
    try await wait(for: "all candidates", timeout: timeout) { $0.iceGathering == .complete }
  }

  /// Returns once media can flow; throws if the connection fails, closes or takes too long.
  public func waitUntilConnected(timeout: Duration = .seconds(10)) async throws(PeerError) {
    try await wait(for: "a connection", timeout: timeout) { $0.connection == .connected }
  }

  /// Returns once the call is established: the exchange is complete, ICE is connected and all local
  /// candidates are known.
  /// - Throws: `TimeoutError` after the configuration's `establishmentTimeoutMilliseconds`, by the
  ///   stack's own clock as recorded in the take.
  public func waitUntilEstablished() async throws(PeerError) {
    for await states in stateChanges {
      switch states.establishment {
      case .established: return
      case .timedOut:
        throw PeerError(name: "TimeoutError", message: "the call was not established in time")
      case .new, .establishing, .closed: break
      }
      if states.connection == .failed {
        throw PeerError(name: "NetworkError", message: "the connection failed")
      }
    }
    try TimeLimit.throwIfCancelled("the call")
    throw PeerError(name: "InvalidStateError", message: "the connection was closed")
  }

  /// Returns once a condition on the states holds.
  /// - Throws: `TimeoutError` after the time limit, `InvalidStateError` if the connection was
  ///   closed, `NetworkError` if it failed first, `AbortError` if the task was cancelled.
  public func wait(
    for what: String, timeout: Duration,
    until holds: @escaping @Sendable (PeerConnectionStates) -> Bool
  ) async throws(PeerError) {
    let changes = stateChanges
    try await TimeLimit.wait(for: what, within: timeout) {
      for await states in changes {
        if holds(states) { return nil }
        if states.connection == .failed {
          return PeerError(name: "NetworkError", message: "the connection failed")
        }
      }
      return PeerError(name: "InvalidStateError", message: "the connection was closed")
    }
  }
}

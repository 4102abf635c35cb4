import Secure

/// The state of a DTLS association at each of its ends, as its packets tell.
struct DTLSStates {
  private var states: [DTLSTransportState] = [.new, .new]

  /// Moves an end; gives the state before, or nil when that is no move: an association that was
  /// closed stays so, and what repeats a handshake does not undo one that is over.
  mutating func move(_ end: Int, to state: DTLSTransportState) -> DTLSTransportState? {
    let old = states[end]
    guard old != state, old != .closed, !(old == .connected && state == .connecting) else {
      return nil
    }
    states[end] = state
    return old
  }

  /// What an alert of an end makes of it.
  ///
  /// - Parameter description: nil while it is encrypted: after the handshake that can hardly be
  ///   anything but a goodbye.
  func state(after description: UInt8?, of end: Int) -> DTLSTransportState {
    description == 0 || description == nil && states[end] == .connected ? .closed : .failed
  }
}

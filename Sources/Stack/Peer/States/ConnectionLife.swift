import JSEP
import Wire

/// What follows from the states of a connection: whether it is established, whether it needs
/// negotiation, and why it ended.
struct ConnectionLife {
  private var establishment: Establishment
  private var need = NegotiationNeed()
  private(set) var isClosed = false
  /// Why the connection ended, as last reported.
  private var lastEnd: ConnectionEnd?

  init(_ configuration: PeerConfiguration) { establishment = Establishment(configuration) }

  /// When a call that is not established times out.
  var deadline: Instant? { establishment.deadline }
  var negotiationIsNeeded: Bool { need.isNeeded }

  /// Records a change of the negotiation.
  mutating func negotiationChanged() { need.outdate() }

  mutating func close() { isClosed = true }

  /// Follows the states at the end of every step; returns a change of establishment.
  mutating func follow(_ states: ConnectionStates, at now: Instant) -> [EstablishmentState] {
    establishment.follow(states, isClosed: isClosed, at: now)
  }

  /// Returns whether to report now that negotiation is needed.
  mutating func settle(
    _ states: ConnectionStates, isNeeded: @autoclosure () -> Bool
  ) -> Bool {
    need.settle(isStable: !isClosed && states.signaling == .stable, isNeeded: isNeeded())
  }

  /// Records why the connection is over; false if that was reported, or the application is closing
  /// it.
  mutating func end(_ reason: ConnectionEnd) -> Bool {
    guard lastEnd != reason, lastEnd != .application else { return false }
    lastEnd = reason
    return true
  }

  /// Records that the reason for the end no longer holds.
  mutating func revoke(_ reason: ConnectionEnd) { if lastEnd == reason { lastEnd = nil } }
}

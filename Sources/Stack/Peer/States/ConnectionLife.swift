import JSEP
import Wire

/// What follows from the states of a connection: whether a call came about, whether negotiation is
/// needed, and what ended it.
struct ConnectionLife {
  private var establishment: Establishment
  private var need = NegotiationNeed()
  private(set) var isClosed = false
  /// What ended the connection, as it was told.
  private var lastEnd: ConnectionEnd?

  init(_ configuration: PeerConfiguration) { establishment = Establishment(configuration) }

  /// When a call is late that has not come about.
  var deadline: Instant? { establishment.deadline }
  var negotiationIsNeeded: Bool { need.isNeeded }

  /// Something of the negotiation changed.
  mutating func negotiationChanged() { need.outdate() }

  mutating func close() { isClosed = true }

  /// Follows the states, after them in every step; whether a call came about, where that changed.
  mutating func follow(_ states: ConnectionStates, at now: Instant) -> [EstablishmentState] {
    establishment.follow(states, isClosed: isClosed, at: now)
  }

  /// Says whether it is to be told now that negotiation is needed.
  mutating func settle(
    _ states: ConnectionStates, isNeeded: @autoclosure () -> Bool
  ) -> Bool {
    need.settle(isStable: !isClosed && states.signaling == .stable, isNeeded: isNeeded())
  }

  /// Takes why the connection is over; false when that was told, or follows from the application's
  /// own closing.
  mutating func end(_ reason: ConnectionEnd) -> Bool {
    guard lastEnd != reason, lastEnd != .application else { return false }
    lastEnd = reason
    return true
  }

  /// What ended the connection is over itself.
  mutating func takeBack(_ reason: ConnectionEnd) { if lastEnd == reason { lastEnd = nil } }
}

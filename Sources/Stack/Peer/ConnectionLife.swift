import ICE
import JSEP
import SCTP
import Secure
import Wire

/// Derives from a connection's states whether it is established, whether it needs negotiation, and
/// why it ended.
struct ConnectionLife {
  private var establishment: Establishment
  private var need = NegotiationNeed()
  private(set) var isClosed = false
  /// The reason that was last reported for the connection's end.
  private var lastEnd: ConnectionEnd?

  init(_ configuration: PeerConfiguration) { establishment = Establishment(configuration) }

  /// The instant at which a call that is not established times out.
  var deadline: Instant? { establishment.deadline }
  var negotiationIsNeeded: Bool { need.isNeeded }

  mutating func negotiationChanged() { need.outdate() }

  mutating func close() { isClosed = true }

  /// Applies the connection's states after each step; returns the establishment states entered.
  mutating func follow(_ states: ConnectionStates, at now: Instant) -> [EstablishmentState] {
    establishment.follow(states, isClosed: isClosed, at: now)
  }

  /// Returns whether to report now that negotiation is needed.
  mutating func settle(
    _ states: ConnectionStates, isNeeded: @autoclosure () -> Bool
  ) -> Bool {
    need.settle(isStable: !isClosed && states.signaling == .stable, isNeeded: isNeeded())
  }

  /// Records why the connection ended; returns false if this was the last reason reported, or if
  /// the application has already closed the connection.
  mutating func end(_ reason: ConnectionEnd) -> Bool {
    guard lastEnd != reason, lastEnd != .application else { return false }
    lastEnd = reason
    return true
  }

  /// Forgets a reported reason that no longer applies, so that it can be reported again.
  mutating func revoke(_ reason: ConnectionEnd) { if lastEnd == reason { lastEnd = nil } }
}

/// Determines when negotiationneeded is emitted: once for each time that negotiation is needed
/// while the signaling state is stable (W3C, updating the negotiation-needed flag).
struct NegotiationNeed {
  /// Whether the negotiation changed since the last check; the check compares descriptions, which
  /// is too expensive for every packet.
  private var isOutdated = true
  /// Whether negotiation was needed at the last check.
  private(set) var isNeeded = false
  /// Whether negotiationneeded was already emitted for the current need.
  private var wasEmitted = false

  mutating func outdate() { isOutdated = true }

  /// Returns whether to emit negotiationneeded now.
  mutating func settle(isStable: Bool, isNeeded: @autoclosure () -> Bool) -> Bool {
    if isOutdated {
      isOutdated = false
      self.isNeeded = isNeeded()
    }
    let isDue = isStable && self.isNeeded
    defer { wasEmitted = isDue }
    return isDue && !wasEmitted
  }
}

// MARK: - ConnectionStates

/// A connection's combined transport state (W3C RTCPeerConnectionState).
public enum ConnectionState: String, Hashable, Sendable {
  /// No transport has started.
  case new
  /// ICE or DTLS is in progress.
  case connecting
  /// Media can flow.
  case connected
  /// The path does not respond, but may recover.
  case disconnected
  /// ICE or DTLS failed on a transport.
  case failed
  /// The application closed the connection.
  case closed
}

/// A connection's W3C states, and the state of its SCTP transport.
///
/// The DTLS states are in the bundles.
struct ConnectionStates {
  private(set) var signaling = SignalingState.stable
  private(set) var iceConnection = ICEConnectionState.new
  private(set) var iceGathering = ICEGatheringState.new
  private(set) var connection = ConnectionState.new
  private(set) var establishment = EstablishmentState.new
  /// The SCTP transport's state; nil until there is an association.
  private(set) var sctp: SCTPState?

  mutating func move(to state: SignalingState) -> StateTransition? {
    move(\.signaling, to: state, of: "signaling")
  }

  mutating func move(to state: ICEConnectionState) -> StateTransition? {
    move(\.iceConnection, to: state, of: "ice-connection")
  }

  mutating func move(to state: ICEGatheringState) -> StateTransition? {
    move(\.iceGathering, to: state, of: "ice-gathering")
  }

  mutating func move(to state: ConnectionState) -> StateTransition? {
    move(\.connection, to: state, of: "connection")
  }

  mutating func move(to state: EstablishmentState) -> StateTransition? {
    move(\.establishment, to: state, of: "establishment")
  }

  mutating func move(to state: SCTPState) -> StateTransition? {
    guard sctp != state else { return nil }
    defer { sctp = state }
    return StateTransition(machine: "sctp", from: sctp?.rawValue ?? "new", to: state.rawValue)
  }

  /// Moves a state machine to a state; returns the transition, or nil if the machine is already in
  /// that state.
  private mutating func move<State: RawRepresentable<String> & Equatable>(
    _ place: WritableKeyPath<ConnectionStates, State>, to state: State, of machine: String
  ) -> StateTransition? {
    let before = self[keyPath: place]
    guard before != state else { return nil }
    self[keyPath: place] = state
    return StateTransition(machine: machine, from: before.rawValue, to: state.rawValue)
  }
}

extension PeerStack {
  func emit(_ transition: StateTransition?) {
    if let transition { emit(.state(transition)) }
  }

  /// Updates the states that are derived from the layers, after each step.
  func settleStates() {
    let connection = life.isClosed ? .closed : bundles.connectionState
    if connection != states.connection { emit(states.move(to: connection)) }
    for state in life.follow(states, at: now) { emit(states.move(to: state)) }
    if life.settle(states, isNeeded: negotiation.negotiationIsNeeded) { emit(.negotiationNeeded) }
  }
}

// MARK: - Establishment

/// The progress towards an established connection.
///
/// A connection is established once the offer/answer exchange is complete, ICE is connected and,
/// unless configured otherwise, all local candidates are known.
public enum EstablishmentState: String, Hashable, Sendable {
  /// No description has been set.
  case new
  /// The conditions are not met yet.
  case establishing
  /// The conditions were met once; the state remains until the connection is closed.
  case established
  /// The conditions were not met in time; they may be met later.
  case timedOut = "timed-out"
  /// The application closed the connection.
  case closed
}

/// Decides from a connection's states whether a call was established.
///
/// It is established when the offer/answer exchange is complete, ICE is connected or completed, and
/// all local candidates are known, if `establishmentNeedsAllCandidates` requires that. A call that
/// is not established in time has failed for its user, whatever its individual states are.
struct Establishment {
  private var state = EstablishmentState.new
  /// The instant of the time-out; nil if there is no time limit, before the first description, and
  /// once the result is known.
  private(set) var deadline: Instant?
  /// The time limit; nil if there is none.
  private let limit: Interval?
  private let needsAllCandidates: Bool

  init(_ configuration: PeerConfiguration) {
    let milliseconds = Int64(configuration.establishmentTimeoutMilliseconds)
    limit = milliseconds > 0 ? .milliseconds(milliseconds) : nil
    needsAllCandidates = configuration.establishmentNeedsAllCandidates
  }

  /// Applies the connection's states after each step; returns the establishment states entered.
  mutating func follow(
    _ states: ConnectionStates, isClosed: Bool, at now: Instant
  ) -> [EstablishmentState] {
    let before = state
    if isClosed {
      deadline = nil
      state = .closed
      return before == .closed ? [] : [.closed]
    }
    if state == .new, states.signaling != .stable {
      deadline = limit.map { now + $0 }
      state = .establishing
    }
    let begun = state
    if state == .establishing || state == .timedOut { settle(states, at: now) }
    if state == before { return [] }
    return begun == before || begun == state ? [state] : [begun, state]
  }

  private mutating func settle(_ states: ConnectionStates, at now: Instant) {
    if isEstablished(states) {
      deadline = nil
      state = .established
    } else if let deadline, deadline <= now {
      self.deadline = nil
      state = .timedOut
    }
  }

  private func isEstablished(_ states: ConnectionStates) -> Bool {
    states.signaling == .stable
      && (states.iceConnection == .connected || states.iceConnection == .completed)
      && (states.iceGathering == .complete || !needsAllCandidates)
  }
}

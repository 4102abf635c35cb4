import ICE
import JSEP
import SCTP
import Secure
import Wire

/// Derives from the states of a connection whether it is established, whether it needs negotiation,
/// and why it ended.
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

/// When to emit negotiationneeded: once whenever negotiation is needed while the signaling state is
/// stable (W3C, updating the negotiation-needed flag).
struct NegotiationNeed {
  /// Whether the negotiation changed since the last check, which compares descriptions and is too
  /// expensive for every packet.
  private var isOutdated = true
  /// The last result.
  private(set) var isNeeded = false
  /// Whether negotiationneeded was emitted and is unanswered.
  private var wasEmitted = false

  mutating func outdate() { isOutdated = true }

  /// Returns whether to emit it now.
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

/// W3C RTCPeerConnectionState: the combined state of a connection's transports.
public enum ConnectionState: String, Hashable, Sendable {
  /// Nothing has started.
  case new
  /// ICE or DTLS is under way.
  case connecting
  /// Media can flow.
  case connected
  /// The path does not answer; it may recover.
  case disconnected
  /// ICE or DTLS of a transport failed.
  case failed
  /// The connection was closed.
  case closed
}

/// The state machines of a peer connection in W3C, and that of its SCTP transport; DTLS has one per
/// bundle.
struct ConnectionStates {
  private(set) var signaling = SignalingState.stable
  private(set) var iceConnection = ICEConnectionState.new
  private(set) var iceGathering = ICEGatheringState.new
  private(set) var connection = ConnectionState.new
  private(set) var establishment = EstablishmentState.new
  /// Nil before there was an association.
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

  /// Moves a machine to a state; nil if it is already there.
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
  /// Reports a transition.
  func emit(_ transition: StateTransition?) {
    if let transition { emit(.state(transition)) }
  }

  /// Updates the states derived from the layers at the end of each step.
  func settleStates() {
    let connection = life.isClosed ? .closed : bundles.connectionState
    if connection != states.connection { emit(states.move(to: connection)) }
    for state in life.follow(states, at: now) { emit(states.move(to: state)) }
    if life.settle(states, isNeeded: negotiation.negotiationIsNeeded) { emit(.negotiationNeeded) }
  }
}

// MARK: - Establishment

/// Whether a connection is established: exchange complete, ICE connected and all local candidates
/// known.
public enum EstablishmentState: String, Hashable, Sendable {
  /// No description was set.
  case new
  /// The conditions do not hold yet.
  case establishing
  /// The conditions held once; later states do not change that.
  case established
  /// The conditions did not hold in time; they may later.
  case timedOut = "timed-out"
  /// The connection was closed.
  case closed
}

/// Whether a connection was established: one answer for applications that set up calls.
///
/// It is established when the offer/answer exchange is complete, ICE is connected or completed and
/// all local candidates are known. A call that does not get there in time has failed for its user,
/// whatever the individual states.
struct Establishment {
  private var state = EstablishmentState.new
  /// When the time limit is reached; nil before the first description and once the result is known.
  private(set) var deadline: Instant?
  /// The time limit; nil for none.
  private let limit: Interval?
  private let needsAllCandidates: Bool

  init(_ configuration: PeerConfiguration) {
    let milliseconds = Int64(configuration.establishmentTimeoutMilliseconds)
    limit = milliseconds > 0 ? .milliseconds(milliseconds) : nil
    needsAllCandidates = configuration.establishmentNeedsAllCandidates
  }

  /// Follows the other states at the end of every step; returns the states that it passes through.
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

import ICE
import JSEP
import SCTP
import Secure
import Wire

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
  /// A transport failed.
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

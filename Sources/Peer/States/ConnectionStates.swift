import ICE
import JSEP
import Secure
import Wire

/// The state machines that W3C defines for a peer connection, and that of its SCTP transport; DTLS
/// has one for each bundle.
struct ConnectionStates {
  enum Machine: String {
    case signaling
    case iceConnection = "ice-connection"
    case iceGathering = "ice-gathering"
    case connection
    case establishment
    case sctp
  }

  private(set) var signaling = "stable"
  private(set) var iceConnection = "new"
  private(set) var iceGathering = "new"
  private(set) var connection = "new"
  private(set) var establishment = "new"
  private(set) var sctp = "new"

  private subscript(machine: Machine) -> String {
    get {
      switch machine {
      case .signaling: signaling
      case .iceConnection: iceConnection
      case .iceGathering: iceGathering
      case .connection: connection
      case .establishment: establishment
      case .sctp: sctp
      }
    }
    set {
      switch machine {
      case .signaling: signaling = newValue
      case .iceConnection: iceConnection = newValue
      case .iceGathering: iceGathering = newValue
      case .connection: connection = newValue
      case .establishment: establishment = newValue
      case .sctp: sctp = newValue
      }
    }
  }

  /// Moves a machine; a move to the present state is none.
  mutating func move(_ machine: Machine, to state: String) -> StateTransition? {
    let before = self[machine]
    guard before != state else { return nil }
    self[machine] = state
    return StateTransition(machine: machine.rawValue, from: before, to: state)
  }
}

extension PeerStack {
  /// Moves a state machine and tells of it.
  func change(_ machine: ConnectionStates.Machine, to state: String) {
    if let transition = states.move(machine, to: state) { tell(.state(transition)) }
  }

  /// What is derived from the layers is brought up to date at the end of each step.
  func settleStates() {
    change(.connection, to: isClosed ? "closed" : bundles.connectionState)
    for state in establishment.follow(states, isClosed: isClosed, at: now) {
      change(.establishment, to: state.rawValue)
    }
    let isStable = !isClosed && states.signaling == "stable"
    if need.settle(isStable: isStable, isNeeded: negotiation.negotiationIsNeeded) {
      tell(.negotiationNeeded)
    }
  }
}

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

  var signaling = "stable"
  var iceConnection = "new"
  var iceGathering = "new"
  var connection = "new"
  var establishment = "new"
  var sctp = "new"
  /// Whether something of the negotiation changed since it was last asked whether it is needed;
  /// the answer takes a look at the descriptions, which is too much for every packet.
  var negotiationMayBeNeeded = true
  /// The last answer.
  var negotiationIsNeeded = false
  /// Whether negotiationneeded was told and is still unanswered.
  var negotiationWasNeeded = false

  subscript(machine: Machine) -> String {
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
}

extension PeerStack {
  /// Moves a state machine and tells of it; a move to the present state is none.
  func change(_ machine: ConnectionStates.Machine, to state: String) {
    let before = states[machine]
    guard before != state else { return }
    states[machine] = state
    tell(.state(StateTransition(machine: machine.rawValue, from: before, to: state)))
  }

  /// What is derived from the layers is brought up to date at the end of each step.
  func settleStates() {
    change(.connection, to: isClosed ? "closed" : bundles.connectionState)
    settleEstablishment()
    if states.negotiationMayBeNeeded {
      states.negotiationMayBeNeeded = false
      states.negotiationIsNeeded = negotiation.negotiationIsNeeded
    }
    let isNeeded = !isClosed && states.signaling == "stable" && states.negotiationIsNeeded
    if isNeeded, !states.negotiationWasNeeded { tell(.negotiationNeeded) }
    states.negotiationWasNeeded = isNeeded
  }
}

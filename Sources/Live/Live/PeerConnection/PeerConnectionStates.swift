public import ICE
public import JSEP
public import Peer
public import SCTP
public import Secure

/// All states of a connection at one moment.
public struct PeerConnectionStates: Hashable, Sendable {
  /// The offer/answer exchange.
  public internal(set) var signaling = SignalingState.stable
  /// The checks of candidate pairs.
  public internal(set) var iceConnection = ICEConnectionState.new
  /// The gathering of local candidates.
  public internal(set) var iceGathering = ICEGatheringState.new
  /// The handshake of DTLS.
  public internal(set) var dtls = DTLSTransportState.new
  /// Whether the call came about.
  public internal(set) var establishment = EstablishmentState.new
  /// The association of the data channels; `connecting` also when there is none.
  public internal(set) var sctp = SCTPState.connecting
  /// All transports together.
  public internal(set) var connection = ConnectionState.new

  /// The states of a connection that was just made.
  public init() {}

  /// Follows a transition that the stack told of; one that this version does not know is left out.
  mutating func apply(_ transition: StateTransition) {
    let to = transition.to
    switch transition.machine {
    case "signaling": signaling = SignalingState(rawValue: to) ?? signaling
    case "ice-connection": iceConnection = ICEConnectionState(rawValue: to) ?? iceConnection
    case "ice-gathering": iceGathering = ICEGatheringState(rawValue: to) ?? iceGathering
    case "dtls": dtls = DTLSTransportState(rawValue: to) ?? dtls
    case "establishment":
      establishment = EstablishmentState(rawValue: to) ?? establishment
    case "sctp": sctp = SCTPState(rawValue: to) ?? sctp
    case "connection": connection = ConnectionState(rawValue: to) ?? connection
    default: break
    }
  }
}

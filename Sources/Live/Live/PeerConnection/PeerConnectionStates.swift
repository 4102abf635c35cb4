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
  /// The DTLS handshake.
  public internal(set) var dtls = DTLSTransportState.new
  /// Whether the call is established.
  public internal(set) var establishment = EstablishmentState.new
  /// The association of the data channels; `connecting` also if there is none.
  public internal(set) var sctp = SCTPState.connecting
  /// All transports combined.
  public internal(set) var connection = ConnectionState.new

  /// The states of a new connection.
  public init() {}

  /// Applies a transition; ignores one unknown to this version.
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

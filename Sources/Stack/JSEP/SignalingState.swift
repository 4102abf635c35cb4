/// W3C RTCSignalingState.
public enum SignalingState: String, Hashable, Sendable {
  /// No exchange is under way.
  case stable
  /// A local offer waits for its answer.
  case haveLocalOffer = "have-local-offer"
  /// A remote offer waits for its answer.
  case haveRemoteOffer = "have-remote-offer"
  /// A local provisional answer was set.
  case haveLocalPranswer = "have-local-pranswer"
  /// A remote provisional answer was set.
  case haveRemotePranswer = "have-remote-pranswer"
  /// The connection was closed.
  case closed
}

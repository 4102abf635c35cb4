/// Where the handshake and the shutdown are (RFC 9260 section 4).
enum AssociationPhase: Hashable, CaseIterable {
  case idle, cookieWait, cookieEchoed, established, shutdownPending, shutdownSent
  case shutdownReceived, shutdownAcknowledgementSent, ended

  /// Whether data may be sent.
  var isEstablished: Bool {
    switch self {
    case .established, .shutdownPending, .shutdownReceived: true
    case .idle, .cookieWait, .cookieEchoed, .shutdownSent, .shutdownAcknowledgementSent, .ended:
      false
    }
  }

  /// Whether data from the peer is taken in (RFC 9260 section 9.2).
  var receivesData: Bool {
    switch self {
    case .established, .shutdownPending, .shutdownSent: true
    case .idle, .cookieWait, .cookieEchoed, .shutdownReceived, .shutdownAcknowledgementSent,
      .ended:
      false
    }
  }

  /// Whether received data and what was sent are acknowledged.
  var acknowledges: Bool { isEstablished || self == .shutdownSent }

  /// Whether both sides still shake hands.
  var isHandshake: Bool { self == .cookieWait || self == .cookieEchoed }

  /// The state of the transport.
  var state: SCTPState {
    switch self {
    case .idle, .cookieWait, .cookieEchoed: .connecting
    case .established, .shutdownPending, .shutdownSent, .shutdownReceived,
      .shutdownAcknowledgementSent:
      .connected
    case .ended: .closed
    }
  }
}

package import SDP

/// W3C RTCRtpTransceiverDirection.
public enum TransceiverDirection: String, Hashable, Sendable, Codable {
  /// Sends and receives.
  case sendrecv
  /// Only sends.
  case sendonly
  /// Only receives.
  case recvonly
  /// Does neither.
  case inactive
  /// Stopped permanently.
  case stopped

  /// Whether media is sent.
  public var sends: Bool { self == .sendrecv || self == .sendonly }
  /// Whether media is received.
  public var receives: Bool { self == .sendrecv || self == .recvonly }

  package init(_ direction: MediaDirection) {
    self =
      switch direction {
      case .sendrecv: .sendrecv
      case .sendonly: .sendonly
      case .recvonly: .recvonly
      case .inactive: .inactive
      }
  }

  /// The direction in an m-section; `inactive` for a stopped transceiver.
  package var media: MediaDirection { MediaDirection(sends: sends, receives: receives) }
}

/// W3C RTCSdpType.
public enum SDPType: String, Hashable, Sendable, Codable {
  /// Proposes a session.
  case offer
  /// Answers provisionally.
  case pranswer
  /// Answers finally.
  case answer
  /// Withdraws an offer.
  case rollback
}

/// A session description and what it means in the offer/answer exchange (W3C
/// RTCSessionDescription).
public struct SessionDescription: Hashable, Sendable, Codable {
  /// Offer, answer, ...
  public var type: SDPType
  /// The text (RFC 8866).
  public var sdp: String

  /// Creates a description; the text is checked when it is applied.
  public init(type: SDPType, sdp: String) {
    self.type = type
    self.sdp = sdp
  }
}

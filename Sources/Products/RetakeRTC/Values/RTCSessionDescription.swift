import SDP

/// The type of a description (W3C RTCSdpType), numbered as in the Objective-C header.
public enum RTCSdpType: Int, Sendable {
  /// Proposes a session.
  case offer
  /// Answers provisionally.
  case prAnswer
  /// Answers finally.
  case answer
  /// Withdraws a proposal.
  case rollback

  init(_ type: SDPType) {
    self =
      switch type {
      case .offer: .offer
      case .pranswer: .prAnswer
      case .answer: .answer
      case .rollback: .rollback
      }
  }

  /// Converts to the stack's type.
  var native: SDPType {
    switch self {
    case .offer: .offer
    case .prAnswer: .pranswer
    case .answer: .answer
    case .rollback: .rollback
    }
  }
}

/// A session description and its type.
public final class RTCSessionDescription: Sendable, CustomStringConvertible {
  /// Offer, answer, ...
  public let type: RTCSdpType
  /// The text (RFC 8866).
  public let sdp: String

  /// Creates a description; the text is parsed when it is applied.
  public init(type: RTCSdpType, sdp: String) {
    self.type = type
    self.sdp = sdp
  }

  convenience init(_ description: SessionDescription) {
    self.init(type: RTCSdpType(description.type), sdp: description.sdp)
  }

  var native: SessionDescription { SessionDescription(type: type.native, sdp: sdp) }

  /// The name of a type in signaling: `offer`, `pranswer`, `answer`, `rollback`.
  public static func string(for type: RTCSdpType) -> String { type.native.rawValue }

  /// The type with a name; an unknown one is an offer, as in libwebrtc.
  public static func type(for string: String) -> RTCSdpType {
    RTCSdpType(SDPType(rawValue: string) ?? .offer)
  }

  /// The type and the text.
  public var description: String {
    "RTCSessionDescription: \(RTCSessionDescription.string(for: type))\n\(sdp)"
  }
}

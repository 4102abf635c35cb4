/// A candidate as signaling carries it, apart from its description (W3C RTCIceCandidateInit).
///
/// As JSON it has the names and values of the W3C dictionary; what is nil is left out.
public struct CandidateInit: Hashable, Sendable, Codable {
  /// `candidate:...` (RFC 8839 section 5.1), or empty at the end of a generation.
  public var candidate: String
  /// The m-section it belongs to.
  public var sdpMid: String?
  /// The index of that m-section.
  public var sdpMLineIndex: Int?
  /// The ICE generation it belongs to.
  public var usernameFragment: String?

  /// Creates a candidate.
  public init(
    candidate: String, sdpMid: String? = nil, sdpMLineIndex: Int? = nil,
    usernameFragment: String? = nil
  ) {
    self.candidate = candidate
    self.sdpMid = sdpMid
    self.sdpMLineIndex = sdpMLineIndex
    self.usernameFragment = usernameFragment
  }
}

import SDP

/// A candidate with the m-section it belongs to.
public final class RTCIceCandidate: Sendable, CustomStringConvertible {
  /// The identifier of the m-section; nil when only its index is known.
  public let sdpMid: String?
  /// The index of the m-section.
  public let sdpMLineIndex: Int32
  /// `candidate:...` (RFC 8839 section 5.1).
  public let sdp: String

  /// Creates a candidate received through signaling; the text is parsed when it is added.
  public init(sdp: String, sdpMLineIndex: Int32, sdpMid: String?) {
    self.sdp = sdp
    self.sdpMLineIndex = sdpMLineIndex
    self.sdpMid = sdpMid
  }

  convenience init(_ candidate: CandidateInit) {
    self.init(
      sdp: candidate.candidate, sdpMLineIndex: Int32(clamping: candidate.sdpMLineIndex ?? 0),
      sdpMid: candidate.sdpMid)
  }

  var native: CandidateInit {
    CandidateInit(candidate: sdp, sdpMid: sdpMid, sdpMLineIndex: Int(sdpMLineIndex))
  }

  /// The identifier or index of the m-section, and the text.
  public var description: String {
    "RTCIceCandidate: \(sdpMid ?? "nil"), \(sdpMLineIndex)\n\(sdp)"
  }
}

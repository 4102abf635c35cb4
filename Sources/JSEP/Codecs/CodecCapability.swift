import SDP
package import Wire

/// A codec that this side can send and receive, with the numbers that its own offers prefer.
package struct CodecCapability: Hashable, Sendable {
  package var kind: MediaKind
  /// The encoding name as rtpmap lines spell it.
  package var name: String
  /// In Hz.
  package var clockRate: UInt32
  package var channels: UInt8?
  /// The own fmtp value; empty for none.
  package var parameters: String
  /// The feedback that this side sends and understands, in the order in which offers list it.
  package var feedback: [String]
  package var payloadType: UInt8
  /// Of the retransmission format (RFC 4588), for codecs that have one.
  package var rtxPayloadType: UInt8?
  /// Whether frames are taken and given on as they are: there is no library to decode or encode
  /// them, and so any variant of the format can be received.
  package var isPassedThrough = false

  /// All codecs, the preferred one of a kind first; what can be decoded comes before the others.
  package static let all = [
    CodecCapability(
      kind: .audio, name: "opus", clockRate: 48_000, channels: 2,
      parameters: "minptime=10;useinbandfec=1", feedback: ["transport-cc", "rrtr"],
      payloadType: 111, rtxPayloadType: nil),
    video("VP8", "", 96),
    video("VP9", "profile-id=0", 98),
    h264("42e01f", mode: 1, 102), h264("42e01f", mode: 0, 104), h264("4d001f", mode: 1, 106),
    h264("64001f", mode: 1, 108),
  ]

  /// A video codec; retransmissions have the payload type after its own.
  private static func video(_ name: String, _ parameters: String, _ payloadType: UInt8)
    -> CodecCapability
  {
    CodecCapability(
      kind: .video, name: name, clockRate: 90_000, channels: nil, parameters: parameters,
      feedback: ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli", "rrtr"],
      payloadType: payloadType, rtxPayloadType: payloadType + 1)
  }

  private static func h264(_ profileLevelID: String, mode: UInt8, _ payloadType: UInt8)
    -> CodecCapability
  {
    var codec = video("H264", h264Parameters(profileLevelID, mode: mode), payloadType)
    codec.isPassedThrough = true
    return codec
  }

  /// The fmtp value of H.264 in the order that browsers use.
  private static func h264Parameters(_ profileLevelID: String, mode: UInt8) -> String {
    "level-asymmetry-allowed=1;packetization-mode=\(mode);profile-level-id=\(profileLevelID)"
  }

  /// What tells the codec from others; nil only for parameters that name no format.
  package var format: CodecFormat? { CodecFormat(name: name, parameters: parameters) }

  /// The capability that a format of a section of this kind calls for, if there is one.
  static func matching(_ map: RTPMap, parameters: String, kind: MediaKind) -> CodecCapability? {
    guard let format = CodecFormat(name: map.name, parameters: parameters) else { return nil }
    let named = all.filter {
      // Audio without a channel count means one channel (RFC 8866 section 6.6).
      $0.kind == kind && $0.clockRate == map.clockRate
        && ($0.channels ?? 1) == (map.channels ?? 1) && $0.name.lowercased() == format.name
    }
    return named.first { $0.format == format } ?? named.first { $0.isPassedThrough }
  }

  /// The capability behind a codec that was agreed on; its variant may be another one.
  package static func named(_ name: String) -> CodecCapability? {
    all.first { $0.name.lowercased() == name }
  }

  /// The fmtp value of this side for a codec whose peer gave `parameters`.
  ///
  /// Any level of H.264 can be received, so that the peer's own is what both can do (RFC 6184
  /// section 8.2.2).
  func ownParameters(answering parameters: String) -> String {
    guard case .h264(let mode, _) = CodecFormat(name: name, parameters: parameters)?.variant
    else { return self.parameters }
    let id = CodecFormat.value(of: "profile-level-id", in: parameters)
    return Self.h264Parameters(id?.lowercased() ?? H264ProfileLevelID.usual, mode: mode)
  }
}

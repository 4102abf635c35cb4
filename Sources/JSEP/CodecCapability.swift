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

  /// All codecs, the preferred one of a kind first.
  package static let all = [
    CodecCapability(
      kind: .audio, name: "opus", clockRate: 48_000, channels: 2,
      parameters: "minptime=10;useinbandfec=1", feedback: ["transport-cc", "rrtr"],
      payloadType: 111, rtxPayloadType: nil),
    CodecCapability(
      kind: .video, name: "VP8", clockRate: 90_000, channels: nil, parameters: "",
      feedback: ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli", "rrtr"],
      payloadType: 96, rtxPayloadType: 97),
  ]

  /// The capability that an rtpmap line of a section of this kind names, if there is one.
  static func matching(_ map: RTPMap, kind: MediaKind) -> CodecCapability? {
    all.first {
      // Audio without a channel count means one channel (RFC 8866 section 6.6).
      $0.kind == kind && $0.clockRate == map.clockRate
        && ($0.channels ?? 1) == (map.channels ?? 1)
        && $0.name.lowercased() == map.name.lowercased()
    }
  }
}

package import RTP
import SDP
package import Wire

/// A codec format that can be sent and received, with the numbers that local offers prefer.
package struct CodecCapability: Hashable, Sendable {
  package var kind: MediaKind
  /// The encoding name as in rtpmap lines.
  package let name: String
  /// In Hz.
  package var clockRate: UInt32
  package var channels: UInt8?
  /// The local fmtp value; empty for none.
  package let parameters: String
  /// What distinguishes the codec's formats; nil only if the parameters are invalid.
  package let format: CodecFormat?
  /// The supported rtcp-fb values, in the order of local offers.
  package var feedback: [String]
  package var payloadType: UInt8
  /// The payload type of RTX (RFC 4588), for codecs that have it.
  package var rtxPayloadType: UInt8?
  /// Whether frames pass through undecoded: without a library, any variant of the format can be
  /// received.
  package var isPassedThrough: Bool
  /// Whether a library encodes it here.
  package private(set) var isEncoded: Bool

  init(_ codec: Codec, _ format: OfferedFormat, encoders: [CodecName] = []) {
    kind = codec.kind
    name = codec.spelling
    clockRate = format.clockRate ?? codec.clockRate
    channels = codec.channels
    parameters = format.parameters
    self.format = CodecFormat(
      name: codec.spelling, parameters: format.parameters, clockRate: format.clockRate)
    payloadType = format.payloadType
    isPassedThrough = codec.isPassedThrough
    isEncoded = !codec.isPassedThrough || encoders.contains(codec.name)
    switch codec.kind {
    case .audio where !codec.name.carriesMedia: feedback = []
    case .audio: feedback = ["transport-cc", "rrtr"]
    case .video:
      feedback = ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli", "rrtr"]
      rtxPayloadType = format.payloadType + 1
    }
  }
}

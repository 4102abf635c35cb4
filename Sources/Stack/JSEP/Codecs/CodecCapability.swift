package import RTP
import SDP
package import Wire

/// A format of a codec that this side can send and receive, with the numbers that its own offers
/// prefer.
package struct CodecCapability: Hashable, Sendable {
  package var kind: MediaKind
  /// The encoding name as rtpmap lines spell it.
  package let name: String
  /// In Hz.
  package var clockRate: UInt32
  package var channels: UInt8?
  /// The local fmtp value; empty for none.
  package let parameters: String
  /// What tells the codec from others; nil only for parameters that name no format.
  package let format: CodecFormat?
  /// The feedback that this side sends and understands, in the order in which offers list it.
  package var feedback: [String]
  package var payloadType: UInt8
  /// Of the retransmission format (RFC 4588), for codecs that have one.
  package var rtxPayloadType: UInt8?
  /// Whether frames are taken and given on as they are: there is no library to decode or encode
  /// them, and so any variant of the format can be received.
  package var isPassedThrough: Bool
  /// Whether a library of this side encodes it.
  package private(set) var isEncoded: Bool

  /// One of the formats of a codec.
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

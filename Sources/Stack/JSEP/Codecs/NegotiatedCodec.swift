package import RTP

/// A codec that both sides of an m-section agreed on.
package struct NegotiatedCodec: Hashable, Sendable {
  package var payloadType: UInt8
  /// The encoding name in lower case.
  package let name: String
  package var clockRate: UInt32
  package var channels: UInt8?
  /// The peer's fmtp value, which says what it accepts; empty for none.
  package var parameters: String {
    didSet { format = CodecFormat(name: name, parameters: parameters, clockRate: clockRate) }
  }
  /// What distinguishes the codec from others of the section.
  package private(set) var format: CodecFormat?
  package var rtxPayloadType: UInt8?
  /// The values that both sides listed of `nack`, `nack pli`, `ccm fir`, `goog-remb`,
  /// `transport-cc`.
  package var feedback: [String]
  /// Whether a library here encodes what the peer accepts in this format.
  package private(set) var isEncoded: Bool

  package init(
    payloadType: UInt8, name: String, clockRate: UInt32, channels: UInt8?, parameters: String,
    rtxPayloadType: UInt8?, feedback: [String], isEncoded: Bool? = nil
  ) {
    self.payloadType = payloadType
    self.name = name
    self.clockRate = clockRate
    self.channels = channels
    self.parameters = parameters
    format = CodecFormat(name: name, parameters: parameters, clockRate: clockRate)
    self.rtxPayloadType = rtxPayloadType
    self.feedback = feedback
    self.isEncoded = isEncoded ?? !(Codec.named(name)?.isPassedThrough ?? false)
    if case .h264(_, let profile) = format?.variant,
      !H264Profile.constrainedBaseline.isDecoded(by: profile)
    {
      self.isEncoded = false
    }
  }

  /// The encoding name as in MIME types and rtpmap lines.
  package var displayName: String { known?.spelling ?? name }

  /// The local fmtp value, which says what is accepted here; empty for none.
  package var localParameters: String {
    known?.localParameters(answering: parameters) ?? ""
  }

  /// Whether frames pass through undecoded because there is no library for them.
  package var isPassedThrough: Bool { known?.isPassedThrough ?? false }

  /// Whether its packets carry audio or video frames rather than telephone events.
  package var carriesMedia: Bool { CodecName(rawValue: name).carriesMedia }

  private var known: Codec? { Codec.named(name) }
}

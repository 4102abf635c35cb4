/// A codec that both sides of an m-section agreed on.
package struct NegotiatedCodec: Hashable, Sendable {
  package var payloadType: UInt8
  /// The encoding name in lower case.
  package var name: String
  package var clockRate: UInt32
  package var channels: UInt8?
  /// The peer's fmtp value, which says what it wants to receive; empty when there is none.
  ///
  /// The own value is always that of the codec's capability.
  package var parameters: String
  package var rtxPayloadType: UInt8?
  /// What both sides listed of `nack`, `nack pli`, `ccm fir`, `goog-remb`, `transport-cc`.
  package var feedback: [String]

  package init(
    payloadType: UInt8, name: String, clockRate: UInt32, channels: UInt8?, parameters: String,
    rtxPayloadType: UInt8?, feedback: [String]
  ) {
    self.payloadType = payloadType
    self.name = name
    self.clockRate = clockRate
    self.channels = channels
    self.parameters = parameters
    self.rtxPayloadType = rtxPayloadType
    self.feedback = feedback
  }
}

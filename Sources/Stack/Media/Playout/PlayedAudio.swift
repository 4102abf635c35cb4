package import RTP

/// A block of audio for output, and its origin.
package struct PlayedAudio: Sendable {
  /// The origin of a block.
  package enum Origin: String, Sendable {
    /// Decoded from its own packet.
    case packet
    /// Recovered from the next packet's in-band FEC.
    case recovered
    /// Concealed by the decoder.
    case concealed
  }
  package var origin: Origin
  /// The packet that was decoded or that carried the FEC.
  package var frame: ReceivedFrame?
  package var decoded: DecodedAudio
  /// The codec that decoded or concealed the block.
  package var codec: CodecName

  package init(
    origin: Origin, frame: ReceivedFrame?, decoded: DecodedAudio, codec: CodecName = .opus
  ) {
    self.origin = origin
    self.frame = frame
    self.decoded = decoded
    self.codec = codec
  }
}

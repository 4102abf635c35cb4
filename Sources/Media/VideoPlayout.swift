package import RTP
package import Wire

// The contract; its behaviour is to be written.

/// The receiving side of a video track: adaptive delay and decoding.
package struct VideoPlayout: Machine {
  package enum Input {
    case frame(ReceivedFrame)
    case deadline
  }
  package enum Output {
    /// A picture to show now, and the frame it came from.
    case shown(ReceivedFrame, DecodedVideo)
    /// The decoder refused a frame; a key frame is needed.
    case undecodable(ReceivedFrame)
  }

  package init(track: String, codecs: any CodecFactory) {}
  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {}
  package var deadline: Instant? { nil }
}

package import RTP
package import Wire

// The contract; its behaviour is to be written.

/// The sending side of an audio track: a source and an encoder on a 20 ms clock.
package struct AudioCapture: Machine {
  package enum Input {
    case start
    case stop
    /// Sound from the application or from the echo; any length, cut into 20 ms blocks.
    case block(AudioBlock)
    /// The share of packets that the peer reported lost, 0 to 255.
    case lossReported(UInt8)
    case deadline
  }
  package enum Output {
    case encoded(EncodedFrame)
    /// The encoder failed, in words; the track is silent from then on.
    case failure(String)
  }

  package init(track: String, source: MediaSource, settings: OpusSettings, codecs: any CodecFactory) {}
  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {}
  package var deadline: Instant? { nil }
}

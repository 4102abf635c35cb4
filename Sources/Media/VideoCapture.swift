package import RTP
package import Wire

// The contract; its behaviour is to be written.

/// The sending side of a video track: a source and an encoder on the source's frame clock.
package struct VideoCapture: Machine {
  package enum Input {
    case start
    case stop
    /// A picture from the application or from the echo.
    case picture(Picture)
    case requestKeyframe
    case bitrate(UInt64)
    case deadline
  }
  package enum Output {
    case encoded(EncodedFrame, quantiser: UInt8)
    case failure(String)
  }

  package init(track: String, source: MediaSource, codecs: any CodecFactory) {}
  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {}
  package var deadline: Instant? { nil }
}

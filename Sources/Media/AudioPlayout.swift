package import RTP
package import Wire

// The contract; its behaviour is to be written.

/// The receiving side of an audio track: reordering, adaptive delay, decoding, concealment.
package struct AudioPlayout: Machine {
  package enum Input {
    case frame(ReceivedFrame)
    case deadline
  }
  package enum Output {
    /// The next 20 ms of sound, and the packet it came from.
    case played(PlayedAudio)
  }

  package init(track: String, codecs: any CodecFactory) {}
  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {}
  package var deadline: Instant? { nil }
}

package struct PlayedAudio: Sendable {
  package enum Origin: String, Sendable {
    /// Decoded from its own packet.
    case packet
    /// Recovered from the next packet's in-band FEC.
    case recovered
    /// Made up by the decoder.
    case concealed
  }
  package var origin: Origin
  /// The packet that was decoded or that carried the FEC.
  package var frame: ReceivedFrame?
  package var decoded: DecodedAudio

  package init(origin: Origin, frame: ReceivedFrame?, decoded: DecodedAudio) {
    self.origin = origin
    self.frame = frame
    self.decoded = decoded
  }
}

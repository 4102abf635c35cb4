package import RTP
package import Wire

// The contract; its behaviour is to be written.

/// All RTP and RTCP of one transport in the clear: streams, feedback, retransmission, pacing.
///
/// Encoded frames go in and packets come out in one direction, packets go in and frames come out
/// in the other. Encryption stands below, codecs stand above.
package struct MediaFlow: Machine {
  package enum Input {
    /// Begins with, or changes to, these sections; counters of streams that stay are kept.
    case configure([FlowSection])
    /// The transport can (or can no longer) carry packets.
    case writable(Bool)
    /// A decrypted RTP packet and the kernel's receive time.
    case rtp([UInt8], arrival: Instant)
    /// A decrypted RTCP compound packet and the kernel's receive time.
    case rtcp([UInt8], arrival: Instant)
    /// A frame to send in a section.
    case frame(mid: String, EncodedFrame)
    /// The decoder of a section needs a key frame (PLI or FIR follows, rate-limited).
    case requestKeyframe(mid: String)
    case deadline
    /// Says BYE for every stream and stops.
    case close
  }

  package enum Output {
    /// Packets to protect and send now, with room reserved for the protection's overhead.
    case rtp([UInt8])
    case rtcp([UInt8])
    /// An audio packet's payload in arrival order, or a picture in decoding order.
    case received(ReceivedFrame)
    /// The peer wants a key frame of this section (PLI or FIR).
    case keyframeRequested(mid: String)
    /// What all video encoders together may spend, in bits per second.
    case targetBitrate(UInt64)
    /// The share of sent packets the peer reported as lost, 0 to 255 (for in-band FEC).
    case lossReported(mid: String, UInt8)
    /// An RTCP block in the clear, either direction, for the take.
    case rtcpBlock(RTCPRecord)
    /// The first packet of a media SSRC arrived and was mapped to a section.
    case streamBegan(mid: String, ssrc: UInt32)
    /// BYE, or the SSRC was replaced.
    case streamEnded(mid: String, ssrc: UInt32)
  }

  /// How many bytes of spare capacity an outgoing packet has for SRTP.
  package static let reservedOverhead = 32

  package init(entropy: EntropyStream, wallClock: WallClock, cname: String) {}

  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {}

  package var deadline: Instant? { nil }
}

/// One RTCP block as the take keeps it.
package struct RTCPRecord: Hashable, Sendable {
  /// Whether it was received; else it was sent.
  package var isInbound: Bool
  /// `sr`, `rr`, `sdes`, `bye`, `nack`, `pli`, `fir`, `remb`, `transport-cc`, `xr`, or `pt-fmt` in numbers.
  package var type: String
  /// The media SSRC it is about, or its sender's where it has none.
  package var ssrc: UInt32
  /// Its fields as a JSON object with keys in a fixed order, kept short.
  package var fields: String

  package init(isInbound: Bool, type: String, ssrc: UInt32, fields: String) {
    self.isInbound = isInbound
    self.type = type
    self.ssrc = ssrc
    self.fields = fields
  }
}

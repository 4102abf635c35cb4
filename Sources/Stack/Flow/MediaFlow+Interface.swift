package import RTP
package import Wire

extension MediaFlow {
  package enum Input {
    /// Begins with, or changes to, these sections; counters of streams that stay are kept.
    case configure([FlowSection])
    /// What all video begins with, may spend at most, and gets in any case, in bits per second; the
    /// least is that of the congestion control unless it is given.
    case bitrateLimits(start: UInt64, maximum: UInt64, minimum: UInt64? = nil)
    /// What the path is taken to carry from now on, in bits per second, until it proves otherwise.
    case estimate(UInt64)
    /// The transport can (or can no longer) carry packets.
    case writable(Bool)
    /// A decrypted RTP packet and the kernel's receive time.
    case rtp([UInt8], arrival: Instant)
    /// A decrypted RTCP compound packet and the kernel's receive time.
    case rtcp([UInt8], arrival: Instant)
    /// A frame to send in a section, of the layer that is named if there are several.
    case frame(mid: String, rid: String? = nil, EncodedFrame)
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
    /// An audio packet's payload in arrival order, or a video frame in decoding order.
    case received(ReceivedFrame)
    /// The peer wants a key frame of this section (PLI or FIR), and of which layer.
    case keyframeRequested(mid: String, rid: String? = nil)
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
}

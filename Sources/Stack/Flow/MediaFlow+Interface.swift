package import RTP
package import Wire

extension MediaFlow {
  package enum Input {
    /// Sets or changes the sections; streams that stay keep their counters.
    case configure([FlowSection])
    /// The start, maximum and minimum rate of all video together, in bits per second; nil leaves
    /// the minimum to the congestion control.
    case bitrateLimits(start: UInt64, maximum: UInt64, minimum: UInt64? = nil)
    /// The capacity to assume for the path, in bits per second, until reports say otherwise.
    case estimate(UInt64)
    /// Whether the transport can carry packets.
    case writable(Bool)
    /// A decrypted RTP packet, the kernel's receive time, and the ECN mark where it is known.
    case rtp([UInt8], arrival: Instant, ecn: ECNMark? = nil)
    /// A decrypted RTCP compound packet and the kernel's receive time.
    case rtcp([UInt8], arrival: Instant)
    /// A frame to send in a section, on the layer `rid` if there are several.
    case frame(mid: String, rid: String? = nil, EncodedFrame)
    /// The decoder of a section needs a key frame; PLI or FIR follows, rate-limited.
    case requestKeyframe(mid: String)
    case deadline
    /// Sends BYE for every stream and stops.
    case close
  }

  package enum Output {
    /// A packet to protect and send now, with spare capacity for SRTP.
    case rtp([UInt8])
    case rtcp([UInt8])
    /// An audio payload in arrival order, or a video frame in decoding order.
    case received(ReceivedFrame)
    /// The peer requests a key frame of this section and layer (PLI or FIR).
    case keyframeRequested(mid: String, rid: String? = nil)
    /// The target of all video encoders together, in bits per second.
    case targetBitrate(UInt64)
    /// The share of sent packets that the peer reported lost, 0 to 255 (for in-band FEC).
    case lossReported(mid: String, UInt8)
    /// An RTCP block in the clear, in either direction, for the take.
    case rtcpBlock(RTCPRecord)
    /// The first packet of a media SSRC arrived and was mapped to a section.
    case streamBegan(mid: String, ssrc: UInt32)
    /// The stream ended by BYE or was replaced.
    case streamEnded(mid: String, ssrc: UInt32)
  }
}

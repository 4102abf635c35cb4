package import RTP
package import Wire

extension MediaFlow {
  package enum Input {
    /// Set or change the sections; streams that stay keep their counters.
    case configure([FlowSection])
    /// The start, maximum and minimum rates of all video together, in bits per second; without a
    /// minimum, congestion control uses its default.
    case bitrateLimits(start: UInt64, maximum: UInt64, minimum: UInt64? = nil)
    /// The path capacity to assume until reports say otherwise, in bits per second.
    case estimate(UInt64)
    /// Whether the transport can carry packets.
    case writable(Bool)
    /// A decrypted RTP packet, the kernel's receive time, and the ECN mark if known.
    case rtp([UInt8], arrival: Instant, ecn: ECNMark? = nil)
    /// A decrypted RTCP compound packet and the kernel's receive time.
    case rtcp([UInt8], arrival: Instant)
    /// A frame to send in a section; `rid` names the layer if the section sends several.
    case frame(mid: String, rid: String? = nil, EncodedFrame)
    /// A section's decoder needs a key frame; a rate-limited PLI or FIR follows.
    case requestKeyframe(mid: String)
    case deadline
    /// Send BYE for the streams being sent, if the transport is writable, and stop.
    case close
  }

  package enum Output {
    /// A packet to protect and send now, with spare capacity for SRTP.
    case rtp([UInt8])
    case rtcp([UInt8])
    /// An audio payload in arrival order, or a video frame in decoding order.
    case received(ReceivedFrame)
    /// The peer requests a key frame for this section and layer (PLI or FIR).
    case keyframeRequested(mid: String, rid: String? = nil)
    /// The target for all video encoders together, in bits per second.
    case targetBitrate(UInt64)
    /// The fraction of sent packets that the peer reported lost, in 1/256, for in-band FEC.
    case lossReported(mid: String, UInt8)
    /// An RTCP block in either direction, decrypted, for the take.
    case rtcpBlock(RTCPRecord)
    /// The first packet of a media SSRC arrived, or the first one since its stream ended, and was
    /// assigned to a section.
    case streamBegan(mid: String, ssrc: UInt32)
    /// The stream ended by BYE, was replaced, or lost its section.
    case streamEnded(mid: String, ssrc: UInt32)
  }
}

// MARK: - StreamCounters

/// Counters of a sent stream (W3C outbound-rtp), including retransmissions.
package struct OutboundStreamCounters: Hashable, Sendable {
  package var mid: String
  package var kind: MediaKind
  package var ssrc: UInt32
  package var rtxSSRC: UInt32?
  /// The simulcast layer; nil for the only stream in its section.
  package var rid: String?
  package var codec: CodecName
  package var payloadType: UInt8
  /// Whether the section currently sends.
  package var isActive = true
  package var packetsSent: UInt64 = 0
  /// Payload bytes, without headers and padding.
  package var bytesSent: UInt64 = 0
  /// Bytes of RTP headers including extensions.
  package var headerBytesSent: UInt64 = 0
  package var retransmittedPacketsSent: UInt64 = 0
  package var retransmittedBytesSent: UInt64 = 0
  package var framesSent: UInt64 = 0
  package var keyFramesSent: UInt64 = 0
  /// Frames of at least 2.5 times the average size.
  package var hugeFramesSent: UInt64 = 0
  /// Frames not sent because the transport was not writable, or because of their codec or size.
  package var framesDiscarded: UInt64 = 0
  /// The total time that packets waited in the pacer.
  package var totalPacketSendDelay = Interval.zero
  package var nackCount: UInt64 = 0
  package var pliCount: UInt64 = 0
  package var firCount: UInt64 = 0
  /// Values from the peer's report blocks; nil before the first.
  package var remote: RemoteInboundCounters?

  package init(
    mid: String, kind: MediaKind, ssrc: UInt32, rtxSSRC: UInt32?, codec: CodecName,
    payloadType: UInt8
  ) {
    self.mid = mid
    self.kind = kind
    self.ssrc = ssrc
    self.rtxSSRC = rtxSSRC
    self.codec = codec
    self.payloadType = payloadType
  }

  /// Whether no partial counter exceeds its total; asserted after each step in debug builds.
  var isConsistent: Bool {
    retransmittedPacketsSent <= packetsSent && retransmittedBytesSent <= bytesSent
      && keyFramesSent <= framesSent && hugeFramesSent <= framesSent
  }
}

/// Values from the peer's report blocks on a sent stream (W3C remote-inbound-rtp).
package struct RemoteInboundCounters: Hashable, Sendable {
  /// When the last report block arrived.
  package var reportedAt = Instant.zero
  package var packetsReceived: Int64 = 0
  /// Packets lost; negative if there were more duplicates than losses (RFC 3550 section 6.4.1).
  package var packetsLost: Int64 = 0
  /// The fraction of packets lost between the last two reports, 0 to 1.
  package var fractionLost: Double = 0
  /// The jitter in seconds.
  package var jitter: Double = 0
  /// Last round trip in seconds; nil until the peer has answered a sender report.
  package var roundTripTime: Double?
  package var totalRoundTripTime: Double = 0
  package var roundTripTimeMeasurements: UInt64 = 0

  init() {}
}

/// Counters of a received stream (W3C inbound-rtp), including retransmissions.
package struct InboundStreamCounters: Hashable, Sendable {
  package var mid: String
  package var kind: MediaKind
  package var ssrc: UInt32
  package var rtxSSRC: UInt32?
  /// The simulcast layer that the stream's packets name; nil if they name none.
  package var rid: String?
  /// The last packet's codec; nil before the first packet with a known payload type.
  package var codec: CodecName?
  package var payloadType: UInt8?
  /// When the stream's first packet was assigned to the section.
  package var beganAt: Instant
  /// Whether the stream ended by BYE or was replaced.
  package var hasEnded = false
  package var packetsReceived: UInt64 = 0
  /// Payload bytes, without headers and padding.
  package var bytesReceived: UInt64 = 0
  /// Bytes of RTP headers including extensions, and padding.
  package var headerBytesReceived: UInt64 = 0
  /// Packets lost as in RFC 3550 appendix A.3: duplicates offset losses, retransmissions do not.
  package var packetsLost: Int64 = 0
  /// The jitter in seconds (RFC 3550 appendix A.8).
  package var jitter: Double = 0
  package var lastPacketReceived: Instant?
  package var packetsDuplicated: UInt64 = 0
  /// Packets that were too late or unusable.
  package var packetsDiscarded: UInt64 = 0
  package var retransmittedPacketsReceived: UInt64 = 0
  package var retransmittedBytesReceived: UInt64 = 0
  /// Packets on the RTX SSRC that contain only padding and probe the path.
  package var probesReceived: UInt64 = 0
  /// ECN marks received; nil before the first packet with a known mark.
  package var ecn: ECNCounts?
  /// Lost packets recovered by retransmission.
  package var packetsRecovered: UInt64 = 0
  /// FEC packets and their payload bytes; counted for observed calls only.
  package var fecPacketsReceived: UInt64 = 0
  package var fecBytesReceived: UInt64 = 0
  /// The FlexFEC source that repairs the stream; nil if none is known.
  package var fecSSRC: UInt32?
  package var nackCount: UInt64 = 0
  package var pliCount: UInt64 = 0
  package var firCount: UInt64 = 0
  /// Complete frames; for audio, packets with a payload.
  package var framesReceived: UInt64 = 0
  package var keyFramesReceived: UInt64 = 0
  /// Complete frames not delivered because an earlier frame is missing.
  package var framesDropped: UInt64 = 0
  package var framesAssembledFromMultiplePackets: UInt64 = 0
  /// The total time from the first to the last packet of the frames assembled from several packets.
  package var totalAssemblyTime = Interval.zero
  /// Values from the peer's sender reports; nil before the first.
  package var remote: RemoteOutboundCounters?

  init(mid: String, kind: MediaKind, ssrc: UInt32, beganAt: Instant) {
    self.mid = mid
    self.kind = kind
    self.ssrc = ssrc
    self.beganAt = beganAt
  }

  /// Whether no partial counter exceeds its total; asserted after each step in debug builds.
  var isConsistent: Bool {
    retransmittedPacketsReceived <= packetsReceived && packetsDuplicated <= packetsReceived
      && packetsRecovered <= retransmittedPacketsReceived
      && retransmittedBytesReceived <= bytesReceived && keyFramesReceived <= framesReceived
      && framesAssembledFromMultiplePackets <= framesReceived
  }
}

/// Values from the peer's sender reports on a received stream (W3C remote-outbound-rtp).
package struct RemoteOutboundCounters: Hashable, Sendable {
  /// When the last sender report arrived.
  package var reportedAt = Instant.zero
  package var packetsSent: UInt64 = 0
  package var bytesSent: UInt64 = 0
  /// The sender's wall clock in the report, as Unix time in nanoseconds.
  package var remoteUnixNanoseconds: Int64 = 0
  /// The report's instant as an RTP timestamp.
  package var remoteRTPTime: UInt32 = 0
  package var reportsSent: UInt64 = 0
  /// Last round trip in seconds, from extended reports; nil if the peer does not answer them.
  package var roundTripTime: Double?
  package var totalRoundTripTime: Double = 0
  package var roundTripTimeMeasurements: UInt64 = 0

  init() {}
}

/// Packets that a transport dropped, by reason.
package struct RefusedPackets: Hashable, Sendable {
  /// Malformed RTP, or RTCP with a malformed part.
  package var malformed: UInt64 = 0
  /// RTP for no known section.
  package var unroutable: UInt64 = 0
  /// RTP with an unnegotiated payload type.
  package var unusablePayload: UInt64 = 0

  init() {}
}

// MARK: - FlowSnapshot

/// A transport's streams and feedback as plain data, for debugging.
package struct FlowSnapshot: Sendable {
  /// A sent stream, and whether it needs a key frame from its encoder.
  package struct Sending: Sendable {
    package var counters: OutboundStreamCounters
    /// Whether frames were dropped that later frames may depend on.
    package var lostFrames: Bool
    package var keyframeRequestedAt: Instant?
  }

  /// A received stream, and the packets and frames for which it is waiting.
  package struct Receiving: Sendable {
    package var counters: InboundStreamCounters
    /// Extended sequence numbers of missing packets that may still arrive, at most 50.
    package var missing: [Int64]
    package var missingCount: Int
    /// When missing packets are next requested or given up on.
    package var missingDue: Instant?
    /// The extended sequence number up to which all packets have been delivered or given up; nil
    /// before the first packet.
    package var deliveredThrough: Int64?
    /// Complete frames waiting for earlier ones.
    package var blockedFrames: Int
    /// Bytes of packets held for incomplete frames.
    package var heldBytes: Int
    /// Whether nothing can be delivered until a key frame arrives.
    package var needsKeyframe: Bool
  }

  /// The estimated bit rate and its inputs, in bits per second.
  package struct Congestion: Sendable {
    package var target: UInt64
    package var isEstimated: Bool
    package var estimate: Double
    package var maximum: Double
    /// The peer's limit (REMB); nil if the peer sent none.
    package var remoteMaximum: Double?
    package var arrivalRate: Double?
    /// The fraction of packets recently lost, 0 to 1.
    package var lossFraction: Double
    /// The trend of queues on the path: steady, growing, shrinking.
    package var delayTrend: String
    package var cutAt: Instant?
    /// The rate when the path was last full; nil if it was never full.
    package var fullAt: Double?
  }

  package var isWritable: Bool
  package var sending: [Sending]
  package var receiving: [Receiving]
  package var congestion: Congestion
  package var pacerQueue: Int
  package var pacerQueueBytes: UInt64
  package var pacerResends: Int
  package var pacerDue: Instant?
  package var roundTrip: Interval?
  package var reportDue: Instant?
  package var arrivalReportDue: Instant?
  package var refused: RefusedPackets
  package var deadline: Instant?
}

extension MediaFlow {
  package var snapshot: FlowSnapshot {
    FlowSnapshot(
      isWritable: isWritable,
      sending: senders.all.map {
        FlowSnapshot.Sending(
          counters: $0.snapshot, lostFrames: $0.lostFrames,
          keyframeRequestedAt: $0.demands.passedOnAt)
      },
      receiving: receivers.all.map(\.described), congestion: rate.congestion.described,
      pacerQueue: pacer.partCount, pacerQueueBytes: pacer.queuedBytes,
      pacerResends: pacer.resendCount, pacerDue: pacer.due, roundTrip: roundTrips.newest,
      reportDue: reports.due, arrivalReportDue: arrivals.due, refused: refused, deadline: deadline)
  }
}

extension ReceiveStream {
  fileprivate var described: FlowSnapshot.Receiving {
    let assembler = videoFrames.assembler
    let missing = videoFrames.missing.sequences
    return FlowSnapshot.Receiving(
      counters: snapshot, missing: Array(missing.prefix(50)), missingCount: missing.count,
      missingDue: videoFrames.missing.due, deliveredThrough: assembler.floor,
      blockedFrames: assembler.readyCount, heldBytes: assembler.heldBytes,
      needsKeyframe: kind == .video && assembler.needsKey)
  }
}

extension AdaptiveBitrate {
  fileprivate var described: FlowSnapshot.Congestion {
    FlowSnapshot.Congestion(
      target: target, isEstimated: isEstimated, estimate: estimate, maximum: bounds.maximum,
      remoteMaximum: bounds.remoteMaximum, arrivalRate: arrivalRate, lossFraction: loss.value,
      delayTrend: trend.signal.name, cutAt: capacity.cutAt, fullAt: capacity.fullAt)
  }
}

extension DelayTrend.Signal {
  fileprivate var name: String {
    switch self {
    case .steady: "steady"
    case .growing: "growing"
    case .shrinking: "shrinking"
    }
  }
}

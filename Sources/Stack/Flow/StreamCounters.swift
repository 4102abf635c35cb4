package import RTP
package import Wire

/// What one sent stream counted (W3C outbound-rtp); retransmissions are part of the sums.
package struct OutboundStreamCounters: Hashable, Sendable {
  package var mid: String
  package var kind: MediaKind
  package var ssrc: UInt32
  package var rtxSSRC: UInt32?
  /// The layer of a simulcast; nil for the only stream of its section.
  package var rid: String?
  package var codec: CodecName
  package var payloadType: UInt8
  /// Whether the section agrees on sending now.
  package var isActive = true
  package var packetsSent: UInt64 = 0
  /// Payload bytes, without headers and padding.
  package var bytesSent: UInt64 = 0
  /// Bytes of RTP headers with their extensions.
  package var headerBytesSent: UInt64 = 0
  package var retransmittedPacketsSent: UInt64 = 0
  package var retransmittedBytesSent: UInt64 = 0
  package var framesSent: UInt64 = 0
  package var keyFramesSent: UInt64 = 0
  /// Frames of at least 2.5 times the average size.
  package var hugeFramesSent: UInt64 = 0
  /// Frames that were not sent because the transport could not carry them.
  package var framesDiscarded: UInt64 = 0
  /// The time that packets waited in the pacer, summed up.
  package var totalPacketSendDelay = Interval.zero
  package var nackCount: UInt64 = 0
  package var pliCount: UInt64 = 0
  package var firCount: UInt64 = 0
  /// What the peer reported on the stream; nil before its first report.
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

  /// Whether no part is more than its sum; asserted after each step in debug builds.
  var isConsistent: Bool {
    retransmittedPacketsSent <= packetsSent && retransmittedBytesSent <= bytesSent
      && keyFramesSent <= framesSent && hugeFramesSent <= framesSent
  }
}

/// What the peer's report blocks say about a sent stream (W3C remote-inbound-rtp).
package struct RemoteInboundCounters: Hashable, Sendable {
  /// When the last report block arrived.
  package var reportedAt = Instant.zero
  package var packetsReceived: Int64 = 0
  /// May be negative after duplicates (RFC 3550 section 6.4.1).
  package var packetsLost: Int64 = 0
  /// The share of packets lost between the last two reports, 0 to 1.
  package var fractionLost: Double = 0
  /// The jitter in seconds.
  package var jitter: Double = 0
  /// The last round trip in seconds; nil before the peer had a sender report to answer.
  package var roundTripTime: Double?
  package var totalRoundTripTime: Double = 0
  package var roundTripTimeMeasurements: UInt64 = 0

  init() {}
}

/// What one received stream counted (W3C inbound-rtp); retransmissions are part of the sums.
package struct InboundStreamCounters: Hashable, Sendable {
  package var mid: String
  package var kind: MediaKind
  package var ssrc: UInt32
  package var rtxSSRC: UInt32?
  /// The layer of a simulcast that its packets name.
  package var rid: String?
  /// What the last packet carried; nil before a packet of a known payload type.
  package var codec: CodecName?
  package var payloadType: UInt8?
  /// When the first packet was mapped to the section.
  package var beganAt: Instant
  /// Whether the stream has ended, by BYE or because another one took its place.
  package var hasEnded = false
  package var packetsReceived: UInt64 = 0
  /// Payload bytes, without headers and padding.
  package var bytesReceived: UInt64 = 0
  /// Bytes of RTP headers with their extensions, and padding.
  package var headerBytesReceived: UInt64 = 0
  /// As RFC 3550 appendix A.3 counts: a retransmission does not undo a loss, a duplicate does.
  package var packetsLost: Int64 = 0
  /// The jitter in seconds (RFC 3550 appendix A.8).
  package var jitter: Double = 0
  package var lastPacketReceived: Instant?
  /// Packets that had been received before.
  package var packetsDuplicated: UInt64 = 0
  /// Packets that came too late to be used, or that could not be used at all.
  package var packetsDiscarded: UInt64 = 0
  package var retransmittedPacketsReceived: UInt64 = 0
  package var retransmittedBytesReceived: UInt64 = 0
  /// Lost packets that a retransmission brought back.
  package var packetsRecovered: UInt64 = 0
  /// Packets that correct errors, and their payload bytes; counted for observed calls alone.
  package var fecPacketsReceived: UInt64 = 0
  package var fecBytesReceived: UInt64 = 0
  package var nackCount: UInt64 = 0
  package var pliCount: UInt64 = 0
  package var firCount: UInt64 = 0
  /// Complete frames; for audio, packets with a payload.
  package var framesReceived: UInt64 = 0
  package var keyFramesReceived: UInt64 = 0
  /// Complete frames that were not handed on because an earlier one is missing.
  package var framesDropped: UInt64 = 0
  package var framesAssembledFromMultiplePackets: UInt64 = 0
  /// The time from the first to the last packet of those frames, summed up.
  package var totalAssemblyTime = Interval.zero
  /// What the peer's sender reports say; nil before the first.
  package var remote: RemoteOutboundCounters?

  init(mid: String, kind: MediaKind, ssrc: UInt32, beganAt: Instant) {
    self.mid = mid
    self.kind = kind
    self.ssrc = ssrc
    self.beganAt = beganAt
  }

  /// Whether no part is more than its sum; asserted after each step in debug builds.
  var isConsistent: Bool {
    retransmittedPacketsReceived <= packetsReceived && packetsDuplicated <= packetsReceived
      && packetsRecovered <= retransmittedPacketsReceived
      && retransmittedBytesReceived <= bytesReceived && keyFramesReceived <= framesReceived
      && framesAssembledFromMultiplePackets <= framesReceived
  }
}

/// What the peer's sender reports say about a received stream (W3C remote-outbound-rtp).
package struct RemoteOutboundCounters: Hashable, Sendable {
  /// When the last sender report arrived.
  package var reportedAt = Instant.zero
  package var packetsSent: UInt64 = 0
  package var bytesSent: UInt64 = 0
  /// The sender's wall clock in the report, as Unix time in nanoseconds.
  package var remoteUnixNanoseconds: Int64 = 0
  /// The same instant in the stream's RTP timestamps.
  package var remoteRTPTime: UInt32 = 0
  package var reportsSent: UInt64 = 0
  /// The last round trip in seconds, from extended reports; nil when the peer answers none.
  package var roundTripTime: Double?
  package var totalRoundTripTime: Double = 0
  package var roundTripTimeMeasurements: UInt64 = 0

  init() {}
}

/// Packets that a transport refused, by reason.
package struct RefusedPackets: Hashable, Sendable {
  /// RTP that is not well-formed, or RTCP of which a part is not.
  package var malformed: UInt64 = 0
  /// RTP that no section receives.
  package var unroutable: UInt64 = 0
  /// RTP with a payload type that its section did not agree on, or with a broken payload.
  package var unusablePayload: UInt64 = 0

  init() {}
}

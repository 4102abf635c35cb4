import Flow
import Stats
import Wire

// RTP stream counters under their W3C names.
extension StatsBuilder {
  /// Adds what was counted of a received stream.
  ///
  /// - Parameters:
  ///   - lastPacket: when its last packet came, in milliseconds of Unix time.
  ///   - isComplete: whether packets that only probe the path count as retransmitted, which
  ///     libwebrtc cannot tell from others, and audio without RTX has none.
  mutating func add(
    _ stream: InboundStreamCounters, lastPacket: Double?, isComplete: Bool = false
  ) {
    set("packetsReceived", stream.packetsReceived)
    set("packetsReceivedWithEct1", stream.ecn?.ect1)
    set("packetsReceivedWithCe", stream.ecn?.congestionExperienced)
    set("packetsLost", stream.packetsLost)
    set("jitter", stream.jitter)
    set("bytesReceived", stream.bytesReceived)
    set("headerBytesReceived", stream.headerBytesReceived)
    if !isComplete || stream.rtxSSRC != nil {
      let probes = isComplete ? stream.probesReceived : 0
      set("retransmittedPacketsReceived", stream.retransmittedPacketsReceived + probes)
      set("retransmittedBytesReceived", stream.retransmittedBytesReceived)
    }
    set("rtxSsrc", stream.rtxSSRC)
    set("lastPacketReceivedTimestamp", lastPacket)
    set("nackCount", stream.nackCount)
  }

  /// Adds what was counted of a sent stream.
  ///
  /// - Parameters:
  ///   - sendDelay: how long its packets waited to be sent; nil where that is not known.
  ///   - withECT1: how many were sent with ECT(1); nil where that is not known.
  mutating func add(
    _ stream: OutboundStreamCounters, sendDelay: Interval?, withECT1: UInt64? = nil
  ) {
    set("packetsSent", stream.packetsSent)
    set("packetsSentWithEct1", withECT1)
    set("bytesSent", stream.bytesSent)
    set("headerBytesSent", stream.headerBytesSent)
    set("retransmittedPacketsSent", stream.retransmittedPacketsSent)
    set("retransmittedBytesSent", stream.retransmittedBytesSent)
    set("rtxSsrc", stream.rtxSSRC)
    set("totalPacketSendDelay", sendDelay)
    set("nackCount", stream.nackCount)
  }

  /// Adds the peer's reports on a sent stream.
  mutating func add(_ remote: RemoteInboundCounters) {
    set("packetsReceived", remote.packetsReceived)
    set("packetsLost", remote.packetsLost)
    set("jitter", remote.jitter)
    set("fractionLost", remote.fractionLost)
    set("roundTripTime", remote.roundTripTime)
    set("totalRoundTripTime", remote.totalRoundTripTime)
    set("roundTripTimeMeasurements", remote.roundTripTimeMeasurements)
  }

  /// Adds the peer's reports on its own stream.
  mutating func add(_ remote: RemoteOutboundCounters) {
    set("packetsSent", remote.packetsSent)
    set("bytesSent", remote.bytesSent)
    set("remoteTimestamp", Double(remote.remoteUnixNanoseconds / 1000) / 1000)
    set("reportsSent", remote.reportsSent)
    set("roundTripTime", remote.roundTripTime)
    set("totalRoundTripTime", remote.totalRoundTripTime)
    set("roundTripTimeMeasurements", remote.roundTripTimeMeasurements)
  }
}

import Flow
import Stats
import Wire

// RTP stream counters under their W3C names.
extension StatsBuilder {
  /// Adds the counters of a received stream.
  /// - Parameter lastPacket: when its last packet arrived, in milliseconds of Unix time.
  mutating func add(_ stream: InboundStreamCounters, lastPacket: Double?) {
    set("packetsReceived", stream.packetsReceived)
    set("packetsLost", stream.packetsLost)
    set("jitter", stream.jitter)
    set("bytesReceived", stream.bytesReceived)
    set("headerBytesReceived", stream.headerBytesReceived)
    set("retransmittedPacketsReceived", stream.retransmittedPacketsReceived)
    set("retransmittedBytesReceived", stream.retransmittedBytesReceived)
    set("rtxSsrc", stream.rtxSSRC)
    set("lastPacketReceivedTimestamp", lastPacket)
    set("nackCount", stream.nackCount)
  }

  /// Adds the counters of a sent stream.
  /// - Parameter sendDelay: the total time its packets waited to be sent, if known.
  mutating func add(_ stream: OutboundStreamCounters, sendDelay: Interval?) {
    set("packetsSent", stream.packetsSent)
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

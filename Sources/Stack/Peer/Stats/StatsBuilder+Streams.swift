import Flow
import Stats
import Wire

// What is counted of RTP streams, under the names of W3C.
extension StatsBuilder {
  /// Adds what was counted of a received stream.
  ///
  /// - Parameter lastPacket: when its last packet came, in milliseconds of Unix time.
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

  /// Adds what was counted of a sent stream.
  /// - Parameter sendDelay: how long its packets waited to be sent; nil if that is not known.
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

  /// Adds what the other end reports on a sent stream.
  mutating func add(_ remote: RemoteInboundCounters) {
    set("packetsReceived", remote.packetsReceived)
    set("packetsLost", remote.packetsLost)
    set("jitter", remote.jitter)
    set("fractionLost", remote.fractionLost)
    set("roundTripTime", remote.roundTripTime)
    set("totalRoundTripTime", remote.totalRoundTripTime)
    set("roundTripTimeMeasurements", remote.roundTripTimeMeasurements)
  }

  /// Adds what the other end reports on a stream of its own.
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

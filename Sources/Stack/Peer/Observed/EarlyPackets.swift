import Flow
import RTP
import Wire

/// Packets of an observed stream whose contents are not known yet: they are counted, which needs no
/// clock rate, and the first ones wait to be parsed once the codec is known.
struct EarlyPackets<Counters: Sendable>: Sendable {
  struct Packet {
    var packet: SeenPacket
    var arrival: Instant
  }

  /// The most packets that wait, and the most bytes: that many full-size packets.
  private static var countMaximum: Int { 450 }
  private static var bytesMaximum: Int { 1 << 20 }

  private var packets: [Packet] = []
  private(set) var bytes = 0
  /// The counters of packets that no longer wait.
  private(set) var forgotten: Counters?

  /// Stores a packet after counting it.
  /// - Parameter counted: the counters including this packet.
  mutating func hold(_ packet: SeenPacket, at arrival: Instant, counted: Counters?) {
    packets.append(Packet(packet: packet, arrival: arrival))
    bytes += packet.bytes.count
    if packets.count > Self.countMaximum || bytes > Self.bytesMaximum { forget(counted) }
  }

  /// Drops the waiting packets; their counters are kept.
  mutating func forget(_ counted: Counters?) {
    (packets, bytes) = ([], 0)
    forgotten = counted ?? forgotten
  }

  /// Returns and removes the waiting packets in order of arrival.
  mutating func removeAll() -> [Packet] {
    defer { (packets, bytes) = ([], 0) }
    return packets
  }
}

extension InboundStreamCounters {
  /// The sum with the counters of earlier packets of the stream.
  func adding(_ earlier: InboundStreamCounters?) -> InboundStreamCounters {
    guard let earlier else { return self }
    var sum = self
    sum.packetsReceived += earlier.packetsReceived
    sum.bytesReceived += earlier.bytesReceived
    sum.headerBytesReceived += earlier.headerBytesReceived
    sum.packetsLost += earlier.packetsLost
    sum.packetsDuplicated += earlier.packetsDuplicated
    sum.packetsDiscarded += earlier.packetsDiscarded
    sum.lastPacketReceived = lastPacketReceived ?? earlier.lastPacketReceived
    return sum
  }
}

extension OutboundStreamCounters {
  /// The sum with the counters of earlier packets of the stream.
  func adding(_ earlier: OutboundStreamCounters?) -> OutboundStreamCounters {
    guard let earlier else { return self }
    var sum = self
    sum.packetsSent += earlier.packetsSent
    sum.bytesSent += earlier.bytesSent
    sum.headerBytesSent += earlier.headerBytesSent
    sum.retransmittedPacketsSent += earlier.retransmittedPacketsSent
    sum.retransmittedBytesSent += earlier.retransmittedBytesSent
    return sum
  }

  /// Counts a packet by its header alone.
  mutating func count(_ header: RTPHeader) {
    packetsSent += 1
    bytesSent += UInt64(header.payload.count)
    headerBytesSent += UInt64(header.headerLength + header.paddingLength)
    payloadType = header.payloadType
  }
}

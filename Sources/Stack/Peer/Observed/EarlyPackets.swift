import Flow
import RTP
import Wire

/// What an observed peer sends or receives in a stream before it is known what that carries: it is
/// counted, which needs no clock, and the first packets wait so that they are read when it is
/// known.
struct EarlyPackets<Counters: Sendable>: Sendable {
  struct Packet {
    var packet: SeenPacket
    var arrival: Instant
  }

  /// How many packets wait, and how many bytes: those of as many packets of any network.
  private static var countMaximum: Int { 450 }
  private static var bytesMaximum: Int { 1 << 20 }

  private var packets: [Packet] = []
  private(set) var bytes = 0
  /// What was counted of packets that do not wait any longer.
  private(set) var forgotten: Counters?

  /// Lets a packet wait, after it was counted.
  ///
  /// - Parameter counted: what was counted up to this packet.
  mutating func hold(_ packet: SeenPacket, at arrival: Instant, counted: Counters?) {
    packets.append(Packet(packet: packet, arrival: arrival))
    bytes += packet.bytes.count
    if packets.count > Self.countMaximum || bytes > Self.bytesMaximum { forget(counted) }
  }

  /// Lets go of what waits; it stays counted.
  mutating func forget(_ counted: Counters?) {
    (packets, bytes) = ([], 0)
    forgotten = counted ?? forgotten
  }

  /// Returns the packets that wait, in the order in which they came.
  mutating func removeAll() -> [Packet] {
    defer { (packets, bytes) = ([], 0) }
    return packets
  }
}

extension InboundStreamCounters {
  /// The sum with what was counted of earlier packets of the same stream.
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
  /// The sum with what was counted of earlier packets of the same stream.
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

  /// Counts a packet of which nothing but the header is known.
  mutating func count(_ header: RTPHeader) {
    packetsSent += 1
    bytesSent += UInt64(header.payload.count)
    headerBytesSent += UInt64(header.headerLength + header.paddingLength)
    payloadType = header.payloadType
  }
}

import RTP
import Wire

/// The first packets of sources that nothing announced: a second one shows that they are RTP
/// (RFC 3550 appendix A.1).
///
/// Applications send messages of their own over the path of a call, and a part of them looks like
/// RTP: each would be a stream of one packet.
struct UnprovenStreams {
  /// A packet that waits for a second one of its source.
  struct Packet {
    var packet: WaitingPacket
    var transport: Int
    var header: RTPHeader
    var isClear: Bool
    var size: Int
  }

  /// How many sources wait, of one transport and of all, and how many bytes.
  private static let transportMaximum = 64
  private static let countMaximum = 4096
  private static let bytesMaximum = 16 << 20
  /// How far from its first packet the second one of a source may be.
  private static let stepMaximum = 100

  private var packets: [Packet] = []
  private var bytes = 0

  /// Lets a packet wait; returns the one before it of the same source when the two belong together,
  /// in which case neither waits.
  ///
  /// - Parameter dropped: how many packets were given up for it.
  mutating func add(_ packet: consuming Packet, dropped: inout UInt64) -> Packet? {
    let known = packets.firstIndex { other in
      other.header.ssrc == packet.header.ssrc && other.transport == packet.transport
        && other.packet.from == packet.packet.from
    }
    if let known {
      let first = remove(at: known)
      let step = Int(Int16(bitPattern: packet.header.sequence &- first.header.sequence))
      if step != 0, abs(step) <= Self.stepMaximum { return first }
      dropped += 1
    }
    let transport = packet.transport
    bytes += packet.packet.bytes.count
    packets.append(packet)
    if let oldest = packets.firstIndex(where: { $0.transport == transport }),
      packets.count(where: { $0.transport == transport }) > Self.transportMaximum
    {
      _ = remove(at: oldest)
      dropped += 1
    }
    while packets.count > Self.countMaximum || bytes > Self.bytesMaximum, !packets.isEmpty {
      _ = remove(at: 0)
      dropped += 1
    }
    return nil
  }

  private mutating func remove(at place: Int) -> Packet {
    let packet = packets.remove(at: place)
    bytes -= packet.packet.bytes.count
    return packet
  }

  /// Returns all that waits, in the order in which it came.
  mutating func removeAll() -> [Packet] {
    defer { (packets, bytes) = ([], 0) }
    return packets
  }
}

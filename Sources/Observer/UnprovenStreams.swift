import DequeModule
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

  /// What waits in one transport, the oldest first, each with its number.
  private var byTransport: [Int: [(number: UInt64, packet: Packet)]] = [:]
  /// In the order in which they came; those that wait no longer may still stand here.
  private var order = Deque<(transport: Int, number: UInt64)>()
  private var begun: UInt64 = 0
  private var count = 0
  private var bytes = 0

  /// Lets a packet wait; returns the one before it of the same source when the two belong together,
  /// in which case neither waits.
  ///
  /// - Parameter dropped: how many packets were given up for it.
  mutating func add(_ packet: consuming Packet, dropped: inout UInt64) -> Packet? {
    let transport = packet.transport
    let (ssrc, from) = (packet.header.ssrc, packet.packet.from)
    let known = byTransport[transport]?.firstIndex {
      $0.packet.header.ssrc == ssrc && $0.packet.packet.from == from
    }
    if let known, let first = remove(known, of: transport) {
      let step = Int(Int16(bitPattern: packet.header.sequence &- first.header.sequence))
      if step != 0, abs(step) <= Self.stepMaximum { return first }
      dropped += 1
    }
    if byTransport[transport, default: []].count >= Self.transportMaximum {
      _ = remove(0, of: transport)
      dropped += 1
    }
    begun += 1
    count += 1
    bytes += packet.packet.bytes.count
    byTransport[transport, default: []].append((begun, packet))
    order.append((transport, begun))
    while count > Self.countMaximum || bytes > Self.bytesMaximum, let oldest = order.popFirst() {
      if let place = place(oldest) {
        _ = remove(place, of: oldest.transport)
        dropped += 1
      }
    }
    if order.count > 4 * Self.countMaximum {
      var present = order
      present.removeAll { place($0) == nil }
      order = present
    }
    return nil
  }

  private func place(_ entry: (transport: Int, number: UInt64)) -> Int? {
    byTransport[entry.transport]?.firstIndex { $0.number == entry.number }
  }

  private mutating func remove(_ place: Int, of transport: Int) -> Packet? {
    guard let packet = byTransport[transport]?.remove(at: place).packet else { return nil }
    if byTransport[transport]?.isEmpty == true { byTransport[transport] = nil }
    count -= 1
    bytes -= packet.packet.bytes.count
    return packet
  }

  /// Returns all that waits, in the order in which it came.
  mutating func removeAll() -> [Packet] {
    let packets = order.compactMap { entry in
      place(entry).flatMap { byTransport[entry.transport]?[$0].packet }
    }
    (byTransport, order, count, bytes) = ([:], [], 0, 0)
    return packets
  }
}

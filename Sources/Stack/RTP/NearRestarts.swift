/// Detects a sender that restarts its sequence numbers less than 100 below the current one.
///
/// From the sequence numbers alone, the restart looks like late packets (RFC 3550 appendix A.1).
///
/// The evidence is a sequence number that recurs with a different timestamp. A late packet has a
/// number not received before; a duplicate, a replayed packet and a retransmission have the
/// timestamp they had before. A single packet is not enough: the next packet has to continue from
/// it. The view `loss` applies the same rule.
package struct NearRestarts: Sendable {
  /// A step back by this many numbers or more shows a restart by itself.
  package static let most = 100
  /// The number of earlier packets with which a number is compared.
  package static let window = 128

  /// The latest packets as number and timestamp; the newest is at `count - 1` modulo the capacity.
  private var packets: [UInt64] = []
  private var count = 0
  /// The number of stored packets, a power of two above `window + 1`.
  private static let capacity = 256

  package init() {}

  /// Records the next packet of a stream, in order of arrival.
  ///
  /// - Returns: whether this packet may be the first after a restart; `isBorneOut` confirms or
  ///   refutes that once the next packet is known.
  package mutating func mayBegin(_ sequence: UInt16, _ timestamp: UInt32) -> Bool {
    defer { insert(sequence, timestamp) }
    guard let last = packet(1) else { return false }
    let step = Int(Int16(bitPattern: sequence &- last.sequence))
    guard step <= 0, step > -Self.most, isReused(sequence, timestamp, before: 1) else {
      return false
    }
    // Shortly after a restart, a reordered packet also has a number used before, but its timestamp
    // is older than the last packet's.
    return Int32(bitPattern: timestamp &- last.timestamp) > 0
      || !isReused(last.sequence, last.timestamp, before: 2)
  }

  /// Returns whether the packet after a suspected restart continues from it.
  ///
  /// - Parameters:
  ///   - step: the sequence step from the previous packet to the suspected packet, at most 0.
  ///   - next: the sequence step from the suspected packet to the one after it.
  package static func isBorneOut(step: Int, next: Int) -> Bool {
    next == 1 || next > -most && next <= -step
  }

  /// Returns whether the latest packet with this number has another timestamp; searches only the
  /// `window` packets up to the one `place` packets back.
  private func isReused(_ sequence: UInt16, _ timestamp: UInt32, before place: Int) -> Bool {
    for back in place..<place + Self.window {
      guard let packet = packet(back) else { return false }
      if packet.sequence == sequence { return packet.timestamp != timestamp }
    }
    return false
  }

  /// Returns the packet `back` places before the next one; nil if it is no longer stored.
  private func packet(_ back: Int) -> (sequence: UInt16, timestamp: UInt32)? {
    guard back <= count, back <= Self.capacity else { return nil }
    let packet = packets[(count - back) & (Self.capacity - 1)]
    return (UInt16(truncatingIfNeeded: packet >> 32), UInt32(truncatingIfNeeded: packet))
  }

  private mutating func insert(_ sequence: UInt16, _ timestamp: UInt32) {
    let packet = UInt64(sequence) << 32 | UInt64(timestamp)
    if count < Self.capacity {
      packets.append(packet)
    } else {
      packets[count & (Self.capacity - 1)] = packet
    }
    count &+= 1
  }
}

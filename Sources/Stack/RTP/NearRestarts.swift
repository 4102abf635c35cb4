/// Finds where a sender begins its sequence numbers anew by fewer than a hundred of them, which by
/// the numbers alone looks like packets that came late (RFC 3550 appendix A.1).
///
/// The sign is a number that comes again with another timestamp. A late packet has a number that
/// was not there yet; a repeated or replayed one has the timestamp that it had before, and so has
/// one that is sent again. One packet alone begins nothing: the one after it has to go on from
/// there. The view `loss` has the same rule.
package struct NearRestarts: Sendable {
  /// A step back by so many numbers and more shows by itself.
  package static let most = 100
  /// Over how many packets a number is remembered.
  package static let window = 128

  /// The last packets, the newest at `count - 1` modulo the capacity: number and timestamp.
  private var packets: [UInt64] = []
  private var count = 0
  /// A power of two above the window and one more.
  private static let capacity = 256

  package init() {}

  /// Sees the next packet of a stream, in the order of arrival.
  ///
  /// - Returns: whether numbers may begin anew with it, of which `isBorneOut` judges by the one
  ///   after it.
  package mutating func mayBegin(_ sequence: UInt16, _ timestamp: UInt32) -> Bool {
    defer { insert(sequence, timestamp) }
    guard let last = packet(1) else { return false }
    let step = Int(Int16(bitPattern: sequence &- last.sequence))
    guard step <= 0, step > -Self.most, isReused(sequence, timestamp, before: 1) else {
      return false
    }
    // Shortly after a restart packets that change places have numbers from before it, too.
    return Int32(bitPattern: timestamp &- last.timestamp) > 0
      || !isReused(last.sequence, last.timestamp, before: 2)
  }

  /// Whether the packet after one with which numbers may begin anew goes on from there.
  ///
  /// - Parameters:
  ///   - step: from the packet before to that one; not above zero.
  ///   - next: from that one to the packet after it.
  package static func isBorneOut(step: Int, next: Int) -> Bool {
    next == 1 || next > -most && next <= -step
  }

  /// Whether the latest packet with a number, among the `window` from `place` back on, has another
  /// timestamp.
  private func isReused(_ sequence: UInt16, _ timestamp: UInt32, before place: Int) -> Bool {
    for back in place..<place + Self.window {
      guard let packet = packet(back) else { return false }
      if packet.sequence == sequence { return packet.timestamp != timestamp }
    }
    return false
  }

  /// The packet that came so many before the next one.
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

import RTP

/// The last packets that an observed peer sent, by their transport-wide sequence numbers, which
/// feedback on arrivals refers to.
struct Departures {
  struct Packet {
    /// The stream that it is of, or that it repeats a packet of.
    var place: Int
    var sequence: UInt16
    var isRepeated: Bool
  }

  /// How many packets are remembered: feedback comes within a second.
  private static let capacity = 2048

  /// Each at its number modulo the capacity; empty as long as no packet has one.
  private var packets: [(number: UInt16, packet: Packet)?] = []

  mutating func record(_ number: UInt16, _ packet: Packet) {
    if packets.isEmpty { packets = Array(repeating: nil, count: Departures.capacity) }
    packets[Int(number) % Departures.capacity] = (number, packet)
  }

  /// The packets that feedback shows to be lost, of each stream those after the last one that
  /// arrived or was sent again.
  func lostLast(_ feedback: TransportFeedback) -> [Packet] {
    guard !packets.isEmpty else { return [] }
    var lost: [Packet] = []
    var arrivals = feedback.arrivals[...]
    for offset in 0..<min(feedback.count, UInt16(Departures.capacity)) {
      let hasArrived = arrivals.first?.offset == offset
      if hasArrived { arrivals.removeFirst() }
      let number = feedback.base &+ offset
      guard let known = packets[Int(number) % Departures.capacity], known.number == number else {
        continue
      }
      if hasArrived || known.packet.isRepeated {
        lost.removeAll { $0.place == known.packet.place }
      } else {
        lost.append(known.packet)
      }
    }
    return lost
  }
}

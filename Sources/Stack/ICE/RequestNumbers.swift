/// The numbers under which the system is asked for sockets, connections and names.
///
/// Agents of one peer have numbers of their own, unless one made millions of them.
struct RequestNumbers {
  private static let ordinalShift: UInt32 = 24

  /// The number that was given last.
  private(set) var last: UInt32

  /// Begins with the numbers of one agent of a peer.
  init(ordinal: Int) { last = UInt32(truncatingIfNeeded: ordinal) << Self.ordinalShift }

  /// The lowest byte of the ordinal of the agent that gave a number.
  static func ordinal(of number: UInt32) -> Int { Int(number >> ordinalShift) }

  /// The next number.
  mutating func next() -> UInt32 {
    last &+= 1
    return last
  }
}

import DequeModule

/// Counts the frames of the last second on any clock.
package struct FrameRate: Hashable, Sendable {
  /// How many frames are remembered: more per second are counted as so many.
  private static let capacity = 256

  private let ticksPerSecond: Int64
  /// The times of the last frames, oldest first.
  private var times = Deque<Int64>()

  /// Creates a counter over a clock of so many ticks per second.
  package init(ticksPerSecond: Int64) { self.ticksPerSecond = ticksPerSecond }

  /// Handles a frame at a time that is not before the last one.
  package mutating func note(_ time: Int64) {
    if times.count == FrameRate.capacity { times.removeFirst() }
    times.append(time)
  }

  /// How many frames came within the second that ends at a time.
  package func count(at time: Int64) -> Int {
    var count = 0
    for noted in times.reversed() {
      guard time - noted < ticksPerSecond else { break }
      count += 1
    }
    return count
  }
}

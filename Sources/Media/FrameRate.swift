/// Counts the frames of the last second on any clock.
package struct FrameRate: Hashable, Sendable {
  /// How many frames are remembered: more per second are counted as so many.
  private static let capacity = 256

  private let ticksPerSecond: Int64
  /// The times of the last frames, oldest first.
  private var times: [Int64] = []

  /// Creates a counter over a clock of so many ticks per second.
  package init(ticksPerSecond: Int64) { self.ticksPerSecond = ticksPerSecond }

  /// Takes a frame at a time that is not before the last one.
  package mutating func note(_ time: Int64) {
    times.append(time)
    if times.count > 2 * FrameRate.capacity { times.removeFirst(FrameRate.capacity) }
  }

  /// How many frames came within the second that ends at a time.
  package func count(at time: Int64) -> Int {
    var count = 0
    for noted in times.reversed() {
      guard time - noted < ticksPerSecond, count < FrameRate.capacity else { break }
      count += 1
    }
    return count
  }
}

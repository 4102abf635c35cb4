import DequeModule

/// Counts the frames of the last second on any clock.
package struct FrameRate: Hashable, Sendable {
  /// The most frames remembered; a higher rate is reported as this.
  private static let capacity = 256

  private let ticksPerSecond: Int64
  /// The times of the last frames, oldest first.
  private var times = Deque<Int64>()

  /// Creates a counter for a clock rate in Hz.
  package init(ticksPerSecond: Int64) { self.ticksPerSecond = ticksPerSecond }

  /// Records a frame whose time is not before the last one.
  package mutating func record(_ time: Int64) {
    if times.count == FrameRate.capacity { times.removeFirst() }
    times.append(time)
  }

  /// The number of frames in the second that ends at a time.
  package func count(at time: Int64) -> Int {
    var count = 0
    for noted in times.reversed() {
      guard time - noted < ticksPerSecond else { break }
      count += 1
    }
    return count
  }
}

/// The freezes of a track, by the rule of the view `freeze`: a gap between shown frames of at least
/// three times the mean of the 30 gaps before it and at least 150 ms more than it, after 5 gaps.
struct FreezeLog {
  private var last: Int64?
  /// The latest gaps that are no pauses, and their sum.
  private var latest: [Int64] = []
  private var sum: Int64 = 0

  /// From when to when, in nanoseconds.
  private(set) var gaps: [(from: Int64, to: Int64)] = []

  private static let pause: Int64 = 5_000_000_000
  private static let count = 30

  /// Handles the time of the next frame that was shown.
  mutating func shown(at: Int64) {
    defer { last = at }
    guard let last else { return }
    let gap = at &- last
    guard gap <= Self.pause else { return }
    if latest.count >= 5 {
      let mean = Double(sum) / Double(latest.count)
      if Double(gap) >= max(3 * mean, mean + 150_000_000) { gaps.append((last, at)) }
    }
    latest.append(gap)
    sum = sum &+ gap
    if latest.count > Self.count { sum = sum &- latest.removeFirst() }
  }
}

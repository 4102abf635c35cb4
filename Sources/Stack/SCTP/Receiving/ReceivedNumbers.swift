import Wire

/// The transmission sequence numbers received: all up to one, and ranges above it.
struct ReceivedNumbers {
  /// What a number is to the numbers before.
  enum Arrival: Hashable {
    case new
    case duplicate
    /// Too far ahead, or it would make one more gap than are kept.
    case refused
  }

  /// The last number up to which everything was received, extended to 64 bits.
  private(set) var cumulative: Int64
  /// The ranges received above it, ascending, with gaps between them.
  private(set) var ranges: [ClosedRange<Int64>] = []

  /// How far ahead a number may be: gap reports count in 16 bits.
  private static let reach: Int64 = 65535

  /// Expects a number as the first one.
  init(first: UInt32) { cumulative = Int64(first) + (1 << 32) - 1 }

  /// The cumulative number as it goes over the wire.
  var acknowledged: UInt32 { UInt32(truncatingIfNeeded: cumulative) }

  /// The extended number that lies nearest to the cumulative one.
  func extend(_ number: UInt32) -> Int64 {
    cumulative + Int64(Int32(bitPattern: number &- acknowledged))
  }

  /// Adds a number.
  mutating func insert(_ number: Int64) -> Arrival {
    guard number > cumulative else { return .duplicate }
    guard number - cumulative <= Self.reach else { return .refused }
    if number == cumulative + 1 {
      cumulative = number
      absorb()
      return .new
    }
    // The first range that ends at or behind the number before this one.
    var low = 0
    var high = ranges.count
    if let last = ranges.last, last.upperBound < number - 1 { low = high }
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].upperBound < number - 1 { low = middle + 1 } else { high = middle }
    }
    guard low < ranges.count, ranges[low].lowerBound <= number + 1 else {
      guard ranges.count < SCTPLimits.gaps else { return .refused }
      ranges.insert(number...number, at: low)
      return .new
    }
    let range = ranges[low]
    if range.contains(number) { return .duplicate }
    if number < range.lowerBound {
      ranges[low] = number...range.upperBound
    } else if low + 1 < ranges.count, ranges[low + 1].lowerBound == number + 1 {
      ranges[low] = range.lowerBound...ranges[low + 1].upperBound
      ranges.remove(at: low + 1)
    } else {
      ranges[low] = range.lowerBound...number
    }
    return .new
  }

  /// Marks everything up to a number as received (RFC 3758 section 3.6).
  mutating func forward(to number: Int64) {
    guard number > cumulative else { return }
    cumulative = number
    absorb()
  }

  private mutating func absorb() {
    var passed = 0
    while passed < ranges.count, ranges[passed].lowerBound <= cumulative + 1 {
      cumulative = max(cumulative, ranges[passed].upperBound)
      passed += 1
    }
    if passed > 0 { ranges.removeFirst(passed) }
  }
}

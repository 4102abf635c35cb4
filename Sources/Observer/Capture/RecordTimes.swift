/// Turns the times that records state into times that can be reckoned with: any two of them lie
/// less than 2^63 nanoseconds apart.
///
/// This is the one place where a capture's times come in. pcapng allows any date (up to years with
/// twelve digits), a damaged file has one, and a take counts nanoseconds since 1970 in 64 bits. A
/// record outside of `range` goes on from the record before it, by as much as the file says where
/// both are outside: so a capture of the year 2500 keeps its order and its distances, and its take
/// begins in 1970. Such records are counted.
struct RecordTimes: Sendable {
  /// From 1823 to 2116, in nanoseconds since 1970.
  static let range = -(Int64(1) << 62)...(Int64(1) << 62) - 1
  /// What two records outside of the range are apart at most to be believed: a day, in nanoseconds.
  private static let stepMaximum: Int128 = 86_400_000_000_000

  /// The time of the last record; that of one without a time of its own.
  private(set) var last: Int64 = 0
  /// What the last record outside of the range states.
  private var lastOutside: Int128?
  /// How many records were outside of the range.
  private(set) var outside: UInt64 = 0

  /// The time of a record that states so many nanoseconds since 1970.
  mutating func place(_ stated: Int128) -> Int64 {
    if let time = Int64(exactly: stated), RecordTimes.range.contains(time) {
      last = time
      return time
    }
    outside += 1
    let step = stated - (lastOutside ?? stated)
    lastOutside = stated
    if (0...RecordTimes.stepMaximum).contains(step) {
      last = min(last + Int64(step), RecordTimes.range.upperBound)
    }
    return last
  }
}

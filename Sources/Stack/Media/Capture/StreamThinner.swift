import Wire

/// Drops frames that arrived encoded when the path carries less than they need.
///
/// They cannot be made smaller, and sending them anyway would fill queues and delay the audio. What
/// is sent above the path's rate is a debt that the path pays off. From half of the maximum debt
/// on, frames that no other one refers to are dropped; beyond it, all frames up to a key frame once
/// half of the debt is paid.
struct StreamThinner {
  /// How much may be sent ahead of the path, as time at its rate.
  ///
  /// A key frame is many times larger than others, so a shorter time would stop files whose mean
  /// rate fits.
  static let debtMaximum = Interval.seconds(2)

  /// Bits sent that the path has not carried yet.
  private var debt = 0.0
  private var paidAt: Instant?
  /// Whether referenced frames were dropped.
  private(set) var waitsForKey = false

  /// Whether to send a frame.
  /// - Parameters:
  ///   - isReference: whether other frames may refer to it.
  ///   - limit: the capacity of the path in bits per second; nil if it is not known to be too low,
  ///     so that everything is sent.
  mutating func admits(
    byteCount: Int, isKey: Bool, isReference: Bool, limit: UInt64?, at now: Instant
  ) -> Bool {
    guard let limit else {
      // Frames dropped while the path was full are still missing.
      debt = 0
      paidAt = nil
      if isKey { waitsForKey = false }
      return !waitsForKey
    }
    let rate = Double(limit)
    let largest = rate * StreamThinner.debtMaximum.seconds
    let elapsed = (now - (paidAt ?? now)).seconds
    paidAt = now
    debt = max(0, debt - max(0, elapsed) * rate)
    if isKey {
      waitsForKey = debt > (waitsForKey ? largest / 2 : largest)
    } else if !waitsForKey, isReference {
      waitsForKey = debt > largest
    } else if !waitsForKey, debt > largest / 2 {
      return false
    }
    if waitsForKey { return false }
    debt += Double(byteCount) * 8
    return true
  }
}

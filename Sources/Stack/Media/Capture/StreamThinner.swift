import Wire

/// Leaves out video frames that came encoded where the path carries less than they take.
///
/// They cannot be made smaller, and what is sent in spite of that waits in queues, is lost there,
/// and takes the audio with it. So what was sent above the rate of the path is kept as a debt,
/// which the path pays off: from half of the largest debt on, video frames that no other one refers
/// to are left out, and beyond it all of them up to a key frame that comes when half of it is paid.
struct StreamThinner {
  /// How much may be sent ahead of the path, in time at its rate: a key frame is many times as
  /// large as those that follow, so that a shorter time would stop files whose mean rate fits.
  static let debtMaximum = Interval.seconds(2)

  /// How many bits were sent that the path has not carried yet.
  private var debt = 0.0
  private var paidAt: Instant?
  /// Whether video frames are missing that others refer to.
  private(set) var waitsForKey = false

  /// Whether a video frame is to be sent.
  /// - Parameters:
  ///   - isReference: whether other video frames may refer to it.
  ///   - limit: what the path carries, in bits per second; nil if that is not known to be too
  ///     little, and everything is sent.
  mutating func admits(
    byteCount: Int, isKey: Bool, isReference: Bool, limit: UInt64?, at now: Instant
  ) -> Bool {
    guard let limit else {
      // What was missing while the path was full is still missing.
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

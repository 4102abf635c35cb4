/// Maps the timestamps of a source's own clock to the media time of its track.
///
/// Frames keep the distance of their timestamps, so that one delayed on its way is still shown at
/// the right time. The source's clock may differ from ours: it is anchored at the first frame, and
/// again after a jump or drift.
struct FrameClock {
  private var anchor: (timestamp: Int64, mediaTime: Int64)?
  private var last: Int64 = 0

  /// How far the media time may be from a frame's arrival, in the 90 kHz clock.
  private static let largestDistance: Int64 = 45_000

  /// Returns the media time of a frame, which never decreases.
  /// - Parameters:
  ///   - timestamp: in nanoseconds.
  ///   - arrival: the media time at which the frame arrived.
  mutating func mediaTime(of timestamp: Int64, arrival: Int64) -> Int64 {
    last = max(last, placed(timestamp, arrival))
    return last
  }

  private mutating func placed(_ timestamp: Int64, _ arrival: Int64) -> Int64 {
    if let anchor {
      let (elapsed, overflows) = timestamp.subtractingReportingOverflow(anchor.timestamp)
      if !overflows, elapsed >= 0 {
        let ticks = elapsed / 100_000 * 9 + elapsed % 100_000 * 9 / 100_000
        let (mediaTime, isTooFar) = anchor.mediaTime.addingReportingOverflow(ticks)
        if !isTooFar, (mediaTime - arrival).magnitude <= FrameClock.largestDistance.magnitude {
          return mediaTime
        }
      }
    }
    anchor = (timestamp, arrival)
    return arrival
  }
}

/// Puts the timestamps of a source's own clock onto the media time of its track.
///
/// The distance between frames is that of their timestamps, so what waited on its way is shown at
/// its own pace. The clock of the source need not be ours: it is anchored where its first frame
/// came, and anew where it jumped or drifted away.
struct FrameClock {
  private var anchor: (timestamp: Int64, mediaTime: Int64)?
  private var last: Int64 = 0

  /// How far the media time may be from the time at which a frame came, in the 90 kHz clock.
  private static let largestDistance: Int64 = 45_000

  /// The media time of a frame, which never goes back.
  ///
  /// - Parameters:
  ///   - timestamp: in nanoseconds.
  ///   - arrival: the media time at which the frame came.
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

/// Leaves frames out so that no more come than a rate allows, evenly spread.
package struct FrameThinner {
  /// The least media time between frames in the long run, in the 90 kHz clock; nil for no limit.
  private var interval: Int64?
  /// When the next frame may come.
  private var next: Int64?

  package init() {}

  /// Sets the most frames per second; nil or 0 lets all of them through.
  package mutating func limit(to framesPerSecond: Double?) {
    next = nil
    interval = framesPerSecond.flatMap { rate in
      rate > 0 ? Int64(90_000 / max(rate, 0.01)) : nil
    }
  }

  /// Whether the frame at a media time, which never goes back, is within the rate.
  package mutating func admits(_ mediaTime: Int64) -> Bool {
    guard let interval else { return true }
    // A grid's frames are rounded to the clock, and a camera's come a little early or late.
    let tolerance = min(interval / 8, 450)
    guard let next else {
      self.next = mediaTime + interval
      return true
    }
    guard mediaTime + tolerance >= next else { return false }
    // After a pause the count begins anew; otherwise late frames are caught up on.
    self.next = max(next + interval, mediaTime + interval - max(interval, 9_000))
    return true
  }
}

/// Drops frames evenly to stay below a rate.
package struct FrameThinner {
  /// The minimum mean distance of frames, in the 90 kHz clock; nil for no limit.
  private var interval: Int64?
  /// When the next frame is admitted.
  private var next: Int64?

  package init() {}

  /// Sets the maximum frame rate; nil or 0 means no limit.
  package mutating func limit(to framesPerSecond: Double?) {
    next = nil
    interval = framesPerSecond.flatMap { rate in
      rate > 0 ? Int64(90_000 / max(rate, 0.01)) : nil
    }
  }

  /// Whether to send the frame at a media time, which never decreases.
  package mutating func admits(_ mediaTime: Int64) -> Bool {
    guard let interval else { return true }
    // Grid times are rounded to the clock, and cameras are slightly early or late.
    let tolerance = min(interval / 8, 450)
    guard let next else {
      self.next = mediaTime + interval
      return true
    }
    guard mediaTime + tolerance >= next else { return false }
    // After a pause counting restarts; otherwise late frames are caught up on.
    self.next = max(next + interval, mediaTime + interval - max(interval, 9_000))
    return true
  }
}

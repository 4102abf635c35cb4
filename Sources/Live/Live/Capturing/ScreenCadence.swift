import Media

/// Decides which frames of a screen are sent: limits the rate, drops repetitions, and, if wanted,
/// repeats the last frame while nothing changes.
struct ScreenCadence {
  /// The maximum frame rate.
  let framesPerSecond: Double
  /// After how many nanoseconds a still screen's last frame is repeated; nil for never.
  let repetition: Int64?

  private var thinner = FrameThinner()
  private var last: VideoFrame?
  private var firstTimestamp: Int64?
  private var lastSent: Int64?

  init(framesPerSecond: Double, repetition: Int64?) {
    self.framesPerSecond = ScreenCadence.clamped(framesPerSecond)
    self.repetition = repetition
    thinner.limit(to: self.framesPerSecond)
  }

  /// Clamps a screen's frame rate: 1 to 120.
  static func clamped(_ framesPerSecond: Double) -> Double {
    framesPerSecond.isNaN ? 1 : min(max(framesPerSecond, 1), 120)
  }

  /// Returns the frame to send at a time in nanoseconds.
  /// - Parameter frame: the screen's content; nil if it is currently unavailable.
  mutating func frame(_ frame: VideoFrame?, at now: Int64) -> VideoFrame? {
    if let frame, !isShown(frame) {
      let first = firstTimestamp ?? now
      firstTimestamp = first
      // The thinner counts in the RTP clock.
      guard thinner.admits(max(0, now &- first) / 100_000 * 9) else { return nil }
      last = frame
      lastSent = now
      return frame
    }
    guard let repetition, let lastSent, var frame = last, now &- lastSent >= repetition else {
      return nil
    }
    self.lastSent = now
    frame.timestampNanoseconds &+= now &- lastSent
    last = frame
    return frame
  }

  /// Whether a frame shows the same as the last one.
  private func isShown(_ frame: VideoFrame) -> Bool {
    guard let last else { return false }
    return last.visibleRect == frame.visibleRect && last.rotation == frame.rotation
      && last.buffer == frame.buffer
  }
}

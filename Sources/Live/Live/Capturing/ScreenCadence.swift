import Media

/// Decides which video frames of a screen are sent: not more than so many per second, none twice,
/// and, where that is wanted, the last one again while nothing changes.
struct ScreenCadence {
  /// The most frames per second.
  let framesPerSecond: Double
  /// After how many nanoseconds of a still screen its last frame is sent again; nil for never.
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

  /// A frame rate that screens are captured with: 1 to 120.
  static func clamped(_ framesPerSecond: Double) -> Double {
    framesPerSecond.isNaN ? 1 : min(max(framesPerSecond, 1), 120)
  }

  /// What is to be sent at a time in nanoseconds.
  ///
  /// - Parameter frame: what the screen shows; nil when that cannot be told at the moment.
  mutating func frame(_ frame: VideoFrame?, at now: Int64) -> VideoFrame? {
    if let frame, !isShown(frame) {
      let first = firstTimestamp ?? now
      firstTimestamp = first
      // The thinner counts in the clock of RTP.
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

  /// Whether a frame shows what the last one did.
  private func isShown(_ frame: VideoFrame) -> Bool {
    guard let last else { return false }
    return last.visibleRect == frame.visibleRect && last.rotation == frame.rotation
      && last.buffer == frame.buffer
  }
}

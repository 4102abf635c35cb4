import Live
import Media
import Synchronization

/// Hands the frames of a capturer of the stack to the delegate of one of this module.
///
/// It works on a thread of its own, so the capturer that the delegate sees is another object than
/// the one that was started.
final class CaptureRun: VideoConsumer {
  private weak let delegate: (any RTCVideoCapturerDelegate)?
  private let started: Mutex<(@Sendable (Bool) -> Void)?>
  /// Nanoseconds from one frame to the next at least, and when the next one may come.
  private let interval: Int64
  private let next = Mutex<Int64?>(nil)

  /// How much earlier than its time a frame may come.
  private static let slack: Int64 = 2_000_000

  /// - Parameters:
  ///   - framesPerSecond: how many frames are handed on at most.
  ///   - started: told once whether capturing has begun.
  init(
    _ delegate: (any RTCVideoCapturerDelegate)?, framesPerSecond: Int = .max,
    started: @escaping @Sendable (Bool) -> Void
  ) {
    self.delegate = delegate
    self.started = Mutex(started)
    interval = 1_000_000_000 / Int64(max(1, framesPerSecond))
  }

  func captureDidStart(_ isStarted: Bool) {
    let tell = started.withLock { started in
      defer { started = nil }
      return started
    }
    tell?(isStarted)
  }

  func consumeCapturedFrame(_ frame: VideoFrame) {
    guard let delegate, isDue(frame.timestampNanoseconds) else { return }
    delegate.capturer(RTCVideoCapturer(delegate: delegate), didCapture: RTCVideoFrame(frame))
  }

  /// Whether a frame is one of the pace that was asked for.
  private func isDue(_ time: Int64) -> Bool {
    next.withLock { next in
      let due = next ?? time
      guard time >= due - Self.slack else { return false }
      // A source that paused does not catch up.
      next = max(due, time - interval) + interval
      return true
    }
  }
}

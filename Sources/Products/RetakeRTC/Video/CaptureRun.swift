import Live
import Media
import Peer
import Synchronization

/// Passes the frames of a stack capturer to the delegate of one of this module.
///
/// It runs on a thread of its own, so the delegate sees another capturer object than the one that
/// was started.
final class CaptureRun: VideoConsumer {
  private let delegate: WeakDelegate<any RTCVideoCapturerDelegate>
  private let note: CaptureNote?
  private let isOfMachine: Bool
  private let started: Mutex<(@Sendable (Bool) -> Void)?>
  /// The minimum nanoseconds between frames, and when the next one is due.
  private let interval: Int64
  private let next = Mutex<Int64?>(nil)

  /// How much too early a frame may be.
  private static let slack: Int64 = 2_000_000

  /// - Parameters:
  ///   - framesPerSecond: the maximum frame rate.
  ///   - note: what takes record of the capturer.
  ///   - isOfMachine: whether every other capturer takes precedence.
  ///   - started: receives once whether capturing started.
  init(
    _ delegate: (any RTCVideoCapturerDelegate)?, framesPerSecond: Int = .max, note: CaptureNote?,
    isOfMachine: Bool = false, started: @escaping @Sendable (Bool) -> Void
  ) {
    self.delegate = WeakDelegate { [weak delegate] in delegate }
    self.note = note
    self.isOfMachine = isOfMachine
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
    guard let delegate = delegate.value, isDue(frame.timestampNanoseconds) else { return }
    delegate.capturer(
      RTCVideoCapturer(of: delegate, note: note, isOfMachine: isOfMachine),
      didCapture: RTCVideoFrame(frame))
  }

  /// Whether a frame is due at the requested frame rate.
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

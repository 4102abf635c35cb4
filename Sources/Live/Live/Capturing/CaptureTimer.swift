import Dispatch
import Synchronization

/// A periodic timer: the vertical sync of a screen, or the pace of a file.
///
/// A test can use one that it advances manually.
public protocol CaptureTimer: Sendable {
  /// Starts calling with the current time in nanoseconds, immediately and then after each interval.
  ///
  /// A late call is not made up for, and calls do not overlap.
  func start(everyNanoseconds interval: Int64, _ tick: @escaping @Sendable (Int64) -> Void)
  /// Stops the calls; one that is running may still return.
  func stop()
}

/// A timer on the system's monotonic clock, with its own thread.
public final class SystemCaptureTimer: CaptureTimer {
  private let timer = Mutex<(any DispatchSourceTimer)?>(nil)
  private let queue = DispatchQueue(label: "retake.capture", qos: .userInitiated)

  /// Creates a stopped timer.
  public init() {}

  deinit { stop() }

  /// Starts the calls.
  public func start(
    everyNanoseconds interval: Int64, _ tick: @escaping @Sendable (Int64) -> Void
  ) {
    timer.withLock { timer in
      timer?.cancel()
      let source = DispatchSource.makeTimerSource(flags: .strict, queue: queue)
      source.schedule(
        deadline: .now(), repeating: .nanoseconds(Int(clamping: max(1, interval))),
        leeway: .milliseconds(1))
      source.setEventHandler { tick(Int64(clamping: DispatchTime.now().uptimeNanoseconds)) }
      source.resume()
      timer = source
    }
  }

  /// Stops the calls.
  public func stop() {
    timer.withLock { timer in
      timer?.cancel()
      timer = nil
    }
  }
}

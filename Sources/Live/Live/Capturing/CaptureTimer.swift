import Dispatch
import Synchronization

/// Calls again and again: what stands for the vertical sync of a screen, or for the pace of a file.
///
/// A test brings one that it moves by hand.
public protocol CaptureTimer: Sendable {
  /// Starts to call with the present time in nanoseconds, at once and then after each interval.
  ///
  /// A call that is late makes no others up for it, and none comes while another one runs.
  func start(everyNanoseconds interval: Int64, _ tick: @escaping @Sendable (Int64) -> Void)
  /// Ends the calls; one that runs may still return.
  func stop()
}

/// Calls by the monotonic clock of the system, on a thread of its own.
public final class SystemCaptureTimer: CaptureTimer {
  private let timer = Mutex<(any DispatchSourceTimer)?>(nil)
  private let queue = DispatchQueue(label: "retake.capture", qos: .userInitiated)

  /// Creates a timer that stands.
  public init() {}

  deinit { stop() }

  /// Starts to call.
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

  /// Ends the calls.
  public func stop() {
    timer.withLock { timer in
      timer?.cancel()
      timer = nil
    }
  }
}

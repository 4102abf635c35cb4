import Dispatch
public import Media
import Synchronization

/// Captures a moving test pattern, for calls without a camera.
public final class PatternVideoCapturer: VideoCapturer {
  /// The supported formats; by default the formats of common cameras.
  public let supportedFormats: [VideoFormat]
  /// False: the pattern is not a screen.
  public var isScreencast: Bool { false }

  private let timer: any CaptureTimer
  private let run = CaptureRun()
  private let videoFrame = Mutex<Int64>(0)

  /// Creates a capturer for a pattern in I420, paced by a timer.
  public init(
    supportedFormats: [VideoFormat] = VideoFormat.usual,
    timer: any CaptureTimer = SystemCaptureTimer()
  ) {
    self.supportedFormats = supportedFormats
    self.timer = timer
  }

  /// Starts at the pattern's first frame; fails for a format that is not supported or not I420.
  public func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
    let number = run.begin(consumer)
    guard supportedFormats.contains(format), format.pixelFormat == .i420,
      format.framesPerSecond > 0
    else { return run.didStart(false, number) }
    run.didStart(true, number)
    videoFrame.withLock { $0 = 0 }
    let pattern = TestPattern(width: format.width, height: format.height)
    let interval = Int64(1e9 / min(max(format.framesPerSecond, 1), 240))
    timer.start(everyNanoseconds: interval) { [run, weak self] now in
      guard let self, run.goesOn(number) else { return }
      let next = videoFrame.withLock { videoFrame in
        defer { videoFrame += 1 }
        return videoFrame
      }
      let frame = try? VideoFrame(pattern.videoFrame(next), timestampNanoseconds: now)
      if let frame { run.deliver(frame, number) }
    }
  }

  /// Stops capturing; the next capture starts at the pattern's first frame.
  public func stopCapture() {
    run.end()
    timer.stop()
  }
}

extension VideoFormat {
  /// The formats that common cameras have, at 30 frames per second, 640x480 first.
  public static let usual = [(640, 480), (1_280, 720), (640, 360), (320, 240)].map {
    VideoFormat(width: $0.0, height: $0.1, framesPerSecond: 30)
  }
}

/// A capturer for frames that the application pushes, for example from a game or a decoder.
public final class PushedVideoCapturer: VideoCapturer {
  /// The formats that the application declares.
  public let supportedFormats: [VideoFormat]
  /// Whether the application declares its frames to be a screen.
  public let isScreencast: Bool
  private let run = CaptureRun()

  /// Creates a capturer with the application's formats, in order of preference.
  public init(supportedFormats: [VideoFormat], isScreencast: Bool = false) {
    self.supportedFormats = supportedFormats
    self.isScreencast = isScreencast
  }

  /// Starts passing frames on; fails for a format that was not declared.
  public func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
    let number = run.begin(consumer)
    run.didStart(supportedFormats.contains(format), number)
  }

  /// Stops passing frames on.
  public func stopCapture() { run.end() }

  /// Passes a frame to the consumer; returns false if there is none.
  @discardableResult
  public func push(_ frame: VideoFrame) -> Bool {
    guard let number = run.number else { return false }
    return run.deliver(frame, number)
  }
}

// MARK: - CaptureTimer

/// A periodic timer that paces a capturer, such as a screen's vertical sync.
///
/// A test can substitute a timer that it advances manually.
public protocol CaptureTimer: Sendable {
  /// Starts calling `tick` with the current time in nanoseconds, immediately and then after each
  /// interval.
  ///
  /// If the timer is late, it skips the calls that it missed. Calls do not overlap.
  func start(everyNanoseconds interval: Int64, _ tick: @escaping @Sendable (Int64) -> Void)
  /// Stops the calls, without waiting for a call in progress.
  func stop()
}

/// A timer on the system's monotonic clock, with its own dispatch queue.
public final class SystemCaptureTimer: CaptureTimer {
  private let timer = Mutex<(any DispatchSourceTimer)?>(nil)
  private let queue = DispatchQueue(label: "retake.capture", qos: .userInitiated)

  /// Creates a stopped timer.
  public init() {}

  deinit { stop() }

  /// Starts the calls on the timer's own queue, replacing an earlier schedule.
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

  /// Stops the calls, without waiting for a call in progress.
  public func stop() {
    timer.withLock { timer in
      timer?.cancel()
      timer = nil
    }
  }
}

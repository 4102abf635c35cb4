public import Media
import Synchronization

/// A capturer of a screen: whoever draws gives the present content when it is asked for.
///
/// It asks at the pace of its timer, sends nothing twice, and can send the last frame again while
/// the screen is still, so that whoever joins late or lost a video frame sees something.
public final class ScreenVideoCapturer: VideoCapturer {
  /// How a screen is captured.
  public struct Options: Hashable, Sendable {
    /// How often the screen is asked, and how many frames a second has at most: 1 to 120.
    public var targetFramesPerSecond = 15.0
    /// After how long a still screen is sent again, in milliseconds; nil for never.
    public var retransmitLastFrameMilliseconds: Int?

    /// Fifteen frames per second, without repetition.
    public init() {}

    /// How long a still screen waits in capturers that send it again.
    public static let usualRetransmission = 250
  }

  /// The one format of the screen.
  public let supportedFormats: [VideoFormat]
  /// True.
  public var isScreencast: Bool { true }

  private let options: Options
  private let timer: any CaptureTimer
  private let content: @Sendable () -> VideoFrame?
  private let run = CaptureRun()
  private let state = Mutex(State())

  private struct State {
    var cadence: ScreenCadence?
    var isBusy = false
  }

  /// Creates a capturer of a screen.
  ///
  /// - Parameters:
  ///   - content: what the screen shows now; nil when there is nothing. Called on the thread of the
  ///     timer; a frame that has no time of its own gets that of the timer by a timestamp of 0.
  public init(
    width: Int, height: Int, pixelFormat: VideoPixelFormat = .bgra, options: Options = Options(),
    timer: any CaptureTimer = SystemCaptureTimer(),
    content: @escaping @Sendable () -> VideoFrame?
  ) {
    self.options = options
    self.timer = timer
    self.content = content
    supportedFormats = [
      VideoFormat(
        width: width, height: height,
        framesPerSecond: ScreenCadence.clamped(options.targetFramesPerSecond),
        pixelFormat: pixelFormat)
    ]
  }

  /// Starts to capture; fails for another format, and when there is nothing to be seen.
  public func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
    let number = run.begin(consumer)
    guard supportedFormats.contains(format), content() != nil else {
      return run.didStart(false, number)
    }
    let repetition = options.retransmitLastFrameMilliseconds.map { Int64(max(1, $0)) * 1_000_000 }
    state.withLock {
      $0.cadence = ScreenCadence(framesPerSecond: format.framesPerSecond, repetition: repetition)
    }
    run.didStart(true, number)
    timer.start(everyNanoseconds: Int64(1e9 / format.framesPerSecond)) { [weak self] now in
      self?.tick(number, now)
    }
  }

  /// Ends capturing.
  public func stopCapture() {
    run.end()
    timer.stop()
  }

  private func tick(_ number: Int, _ now: Int64) {
    // One frame in flight: while the one before is still being taken, none is made.
    let isFree = state.withLock { state in
      defer { state.isBusy = true }
      return !state.isBusy
    }
    guard isFree else { return }
    defer { state.withLock { $0.isBusy = false } }
    guard run.goesOn(number) else { return }
    var present = content()
    if present?.timestampNanoseconds == 0 { present?.timestampNanoseconds = now }
    let frame = state.withLock { $0.cadence?.frame(present, at: now) }
    if let frame { run.deliver(frame, number) }
  }
}

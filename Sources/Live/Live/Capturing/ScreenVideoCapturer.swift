public import Media
import Synchronization

/// Captures a screen whose content a closure returns.
///
/// It requests content whenever its timer fires, and drops frames that look the same as the last
/// one. While the screen is still, it can repeat the last frame, so that receivers who join late or
/// lost a frame see something.
public final class ScreenVideoCapturer: VideoCapturer {
  /// Options for capturing a screen.
  public struct Options: Hashable, Sendable {
    /// The target and maximum frame rate: 1 to 120.
    public var targetFramesPerSecond = 15.0
    /// The milliseconds after which a still screen is repeated; nil means never.
    public var retransmitLastFrameMilliseconds: Int?

    /// Creates the default: 15 frames per second, without repetition.
    public init() {}

    /// The usual delay in milliseconds before a still screen is repeated.
    public static let usualRetransmission = 250
  }

  /// The only format: the screen's own size, at the target frame rate.
  public let supportedFormats: [VideoFormat]
  /// True: this is a screen.
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

  /// Creates a screen capturer.
  /// - Parameters:
  ///   - content: returns the screen's content; nil if there is none. Called on the timer's thread;
  ///     a frame with a timestamp of 0 gets the timer's time.
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

  /// Starts capturing; fails if the format is not supported or there is no content.
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

  /// Stops requesting content.
  public func stopCapture() {
    run.end()
    timer.stop()
  }

  private func tick(_ number: Int, _ now: Int64) {
    // At most one frame is in flight: do not request a frame while the previous frame is being
    // consumed.
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

// MARK: - ScreenCadence

/// Decides which screen frames are sent: limits the rate, drops repetitions, and repeats the last
/// frame of a still screen if requested.
struct ScreenCadence {
  /// The maximum frame rate.
  let framesPerSecond: Double
  /// The nanoseconds after which a still screen's last frame is repeated; nil means never.
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

  /// Returns a screen's frame rate, clamped to 1 to 120.
  static func clamped(_ framesPerSecond: Double) -> Double {
    framesPerSecond.isNaN ? 1 : min(max(framesPerSecond, 1), 120)
  }

  /// Returns the frame to send at `now`, in nanoseconds.
  /// - Parameter frame: the screen's content; nil if it is currently unavailable.
  mutating func frame(_ frame: VideoFrame?, at now: Int64) -> VideoFrame? {
    if let frame, !isShown(frame) {
      let first = firstTimestamp ?? now
      firstTimestamp = first
      // The thinner expects times in RTP clock units (90 kHz).
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

  /// Returns whether a frame looks the same as the last one.
  private func isShown(_ frame: VideoFrame) -> Bool {
    guard let last else { return false }
    return last.visibleRect == frame.visibleRect && last.rotation == frame.rotation
      && last.buffer == frame.buffer
  }
}

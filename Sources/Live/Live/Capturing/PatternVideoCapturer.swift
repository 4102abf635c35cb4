import Media
import Synchronization

/// A capturer of the moving test pattern, for calls without a camera.
public final class PatternVideoCapturer: VideoCapturer {
  /// The formats of common cameras.
  public let supportedFormats: [VideoFormat]
  /// False: the pattern moves.
  public var isScreencast: Bool { false }

  private let timer: any CaptureTimer
  private let run = CaptureRun()
  private let videoFrame = Mutex<Int64>(0)

  /// Creates a capturer.
  public init(
    supportedFormats: [VideoFormat] = VideoFormat.usual,
    timer: any CaptureTimer = SystemCaptureTimer()
  ) {
    self.supportedFormats = supportedFormats
    self.timer = timer
  }

  /// Starts capturing.
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

  /// Stops capturing.
  public func stopCapture() {
    run.end()
    timer.stop()
  }
}

extension VideoFormat {
  /// The formats of common cameras: 640x480, 1280x720 and 320x240 at 30 frames per second.
  public static let usual = [(640, 480), (1_280, 720), (640, 360), (320, 240)].map {
    VideoFormat(width: $0.0, height: $0.1, framesPerSecond: 30)
  }
}

public import Media

/// A capturer whose frames the application pushes: a game, a decoder, something that draws.
public final class PushedVideoCapturer: VideoCapturer {
  /// The formats that the application declares.
  public let supportedFormats: [VideoFormat]
  /// Whether the application declares its frames a screen.
  public let isScreencast: Bool
  private let run = CaptureRun()

  /// Creates a capturer.
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

  /// Passes a frame to the consumer; false if nobody captures.
  @discardableResult
  public func push(_ frame: VideoFrame) -> Bool {
    guard let number = run.number else { return false }
    return run.deliver(frame, number)
  }
}

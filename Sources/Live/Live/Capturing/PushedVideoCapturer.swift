public import Media

/// A capturer whose frames the application pushes: a game, a decoder, something that draws itself.
public final class PushedVideoCapturer: VideoCapturer {
  /// What the application says that it pushes.
  public let supportedFormats: [VideoFormat]
  /// Whether the application says that it pushes a screen.
  public let isScreencast: Bool
  private let run = CaptureRun()

  /// Creates a capturer.
  public init(supportedFormats: [VideoFormat], isScreencast: Bool = false) {
    self.supportedFormats = supportedFormats
    self.isScreencast = isScreencast
  }

  /// Lets frames through from now on; without a format that it has told, it does not start.
  public func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
    let number = run.begin(consumer)
    run.didStart(supportedFormats.contains(format), number)
  }

  /// Lets no further frame through.
  public func stopCapture() { run.end() }

  /// Gives a frame to the consumer; false when nobody captures.
  @discardableResult
  public func push(_ frame: VideoFrame) -> Bool {
    guard let number = run.number else { return false }
    return run.deliver(frame, number)
  }
}

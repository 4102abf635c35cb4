public import Media

/// Changes frames on their way: blurs a background, mirrors, draws a name.
public protocol VideoFilter: Sendable {
  /// The frame as it continues; nil leaves it out.
  func process(_ frame: VideoFrame) -> VideoFrame?
}

/// A capturer whose frames go through filters, one after the other.
public final class FilteredVideoCapturer: VideoCapturer {
  /// The capturer behind the filters.
  public let capturer: any VideoCapturer
  private let filters: [any VideoFilter]

  /// Puts filters behind a capturer, the first one nearest to it.
  public init(_ capturer: any VideoCapturer, filters: [any VideoFilter]) {
    self.capturer = capturer
    self.filters = filters
  }

  /// What the capturer behind the filters supports.
  public var supportedFormats: [VideoFormat] { capturer.supportedFormats }
  /// Whether the capturer behind the filters gives those of a screen.
  public var isScreencast: Bool { capturer.isScreencast }

  /// Starts to capture; see `VideoCapturer`.
  public func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
    capturer.startCapture(format, consumer: VideoFilterChain(filters, consumer: consumer))
  }

  /// Ends capturing.
  public func stopCapture() { capturer.stopCapture() }
}

/// A consumer that hands frames on through filters.
public struct VideoFilterChain: VideoConsumer {
  private let filters: [any VideoFilter]
  private let consumer: any VideoConsumer

  /// Creates a chain in front of a consumer.
  public init(_ filters: [any VideoFilter], consumer: any VideoConsumer) {
    self.filters = filters
    self.consumer = consumer
  }

  /// Notifies the consumer behind the filters.
  public func captureDidStart(_ isStarted: Bool) { consumer.captureDidStart(isStarted) }

  /// Gives the consumer what the filters made of a frame.
  public func consumeCapturedFrame(_ frame: VideoFrame) {
    var frame = frame
    for filter in filters {
      guard let next = filter.process(frame) else { return }
      frame = next
    }
    consumer.consumeCapturedFrame(frame)
  }
}

public import Media

/// Changes frames on their way: blurs a background, mirrors, draws a name.
public protocol VideoFilter: Sendable {
  /// Returns the processed frame; nil drops it.
  func process(_ frame: VideoFrame) -> VideoFrame?
}

/// A capturer whose frames pass through filters in order.
public final class FilteredVideoCapturer: VideoCapturer {
  /// The unfiltered capturer.
  public let capturer: any VideoCapturer
  private let filters: [any VideoFilter]

  /// Applies filters to a capturer, in order.
  public init(_ capturer: any VideoCapturer, filters: [any VideoFilter]) {
    self.capturer = capturer
    self.filters = filters
  }

  /// The formats of the unfiltered capturer.
  public var supportedFormats: [VideoFormat] { capturer.supportedFormats }
  /// Whether the unfiltered capturer's frames are a screen's.
  public var isScreencast: Bool { capturer.isScreencast }

  /// Starts capturing; see `VideoCapturer`.
  public func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
    capturer.startCapture(format, consumer: VideoFilterChain(filters, consumer: consumer))
  }

  /// Stops capturing.
  public func stopCapture() { capturer.stopCapture() }
}

/// A consumer that passes frames through filters.
public struct VideoFilterChain: VideoConsumer {
  private let filters: [any VideoFilter]
  private let consumer: any VideoConsumer

  /// Creates a chain in front of a consumer.
  public init(_ filters: [any VideoFilter], consumer: any VideoConsumer) {
    self.filters = filters
    self.consumer = consumer
  }

  /// Notifies the consumer.
  public func captureDidStart(_ isStarted: Bool) { consumer.captureDidStart(isStarted) }

  /// Passes the filtered frame to the consumer.
  public func consumeCapturedFrame(_ frame: VideoFrame) {
    var frame = frame
    for filter in filters {
      guard let next = filter.process(frame) else { return }
      frame = next
    }
    consumer.consumeCapturedFrame(frame)
  }
}

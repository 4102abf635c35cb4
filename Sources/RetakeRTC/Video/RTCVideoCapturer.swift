/// Who takes the frames of a capturer: a source, or a filter before it.
public protocol RTCVideoCapturerDelegate: AnyObject, Sendable {
  /// Takes a frame, on the capturer's thread.
  func capturer(_ capturer: RTCVideoCapturer, didCapture frame: RTCVideoFrame)
}

/// Where frames come from: a heir, or whoever calls the delegate with it.
open class RTCVideoCapturer {
  /// Who takes the frames; it is not kept alive.
  public weak var delegate: (any RTCVideoCapturerDelegate)?

  /// Creates a capturer that captures nothing by itself.
  public init(delegate: any RTCVideoCapturerDelegate) { self.delegate = delegate }
}

import Peer

/// Receives the frames of a capturer: a source, or a filter before it.
public protocol RTCVideoCapturerDelegate: AnyObject {
  /// Handles a frame, on the capturer's thread.
  func capturer(_ capturer: RTCVideoCapturer, didCapture frame: RTCVideoFrame)
}

/// A source of frames: a subclass, or a caller that passes frames to the delegate.
open class RTCVideoCapturer {
  /// Receives the frames; held weakly.
  public weak var delegate: (any RTCVideoCapturerDelegate)?
  /// What takes record of the capturer; nil: nothing.
  var note: CaptureNote?
  /// Whether it is the machine's default camera, over which every other capturer takes precedence.
  var isOfMachine = false

  /// Creates a capturer that captures nothing by itself.
  public init(delegate: any RTCVideoCapturerDelegate) {
    self.delegate = delegate
    (delegate as? RTCVideoSource)?.isFilled()
  }

  /// Represents a capturer of the stack, for the delegate.
  init(of delegate: any RTCVideoCapturerDelegate, note: CaptureNote?, isOfMachine: Bool) {
    self.delegate = delegate
    self.note = note
    self.isOfMachine = isOfMachine
  }
}

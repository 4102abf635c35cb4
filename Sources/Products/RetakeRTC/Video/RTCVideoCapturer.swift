import Peer

/// Who takes the frames of a capturer: a source, or a filter before it.
public protocol RTCVideoCapturerDelegate: AnyObject {
  /// Handles a frame, on the capturer's thread.
  func capturer(_ capturer: RTCVideoCapturer, didCapture frame: RTCVideoFrame)
}

/// Where frames come from: an heir, or whoever calls the delegate with it.
open class RTCVideoCapturer {
  /// Who takes the frames; it is not kept alive.
  public weak var delegate: (any RTCVideoCapturerDelegate)?
  /// What takes keep of it; nil: nothing.
  var note: CaptureNote?
  /// Whether it stands for the camera of the machine, which gives way to every other capturer.
  var isOfMachine = false

  /// Creates a capturer that captures nothing by itself.
  public init(delegate: any RTCVideoCapturerDelegate) {
    self.delegate = delegate
    (delegate as? RTCVideoSource)?.isFilled()
  }

  /// Stands for a capturer of the stack, frame by frame.
  init(of delegate: any RTCVideoCapturerDelegate, note: CaptureNote?, isOfMachine: Bool) {
    self.delegate = delegate
    self.note = note
    self.isOfMachine = isOfMachine
  }
}

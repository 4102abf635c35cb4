import DequeModule
import RTP

/// Video frames waiting to be shown, in order of arrival.
struct VideoFrameQueue {
  /// The most waiting frames; beyond that, the oldest is shown immediately.
  private static let mostFrames = 120
  private static let mostBytes = 32 << 20

  private var frames = Deque<ReceivedFrame>()
  private(set) var bytes = 0

  var count: Int { frames.count }
  var first: ReceivedFrame? { frames.first }
  var isEmpty: Bool { frames.isEmpty }

  /// Whether more than the maximum wait.
  var isOverfull: Bool {
    frames.count > VideoFrameQueue.mostFrames || bytes > VideoFrameQueue.mostBytes
  }

  mutating func append(_ frame: ReceivedFrame) {
    frames.append(frame)
    bytes += frame.bytes.count
  }

  /// Removes the oldest frame, if any.
  mutating func popFirst() -> ReceivedFrame? {
    let frame = frames.popFirst()
    if let frame { bytes -= frame.bytes.count }
    return frame
  }
}

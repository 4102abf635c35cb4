import DequeModule
import RTP

/// The video frames that wait until they are shown, in the order in which they came.
struct VideoFrameQueue {
  /// The most that may wait; what comes beyond is shown at once.
  private static let mostFrames = 120
  private static let mostBytes = 32 << 20

  private var frames = Deque<ReceivedFrame>()
  private(set) var bytes = 0

  var count: Int { frames.count }
  var first: ReceivedFrame? { frames.first }
  var isEmpty: Bool { frames.isEmpty }

  /// Whether more wait than may.
  var isOverfull: Bool {
    frames.count > VideoFrameQueue.mostFrames || bytes > VideoFrameQueue.mostBytes
  }

  mutating func append(_ frame: ReceivedFrame) {
    frames.append(frame)
    bytes += frame.bytes.count
  }

  /// Takes out the oldest frame; nil when none waits.
  mutating func popFirst() -> ReceivedFrame? {
    let frame = frames.popFirst()
    if let frame { bytes -= frame.bytes.count }
    return frame
  }
}

import Live
import Media
import Synchronization

/// A timer that a test fires by hand.
final class ManualTimer: CaptureTimer {
  private let inside = Mutex<(tick: (@Sendable (Int64) -> Void)?, interval: Int64)>((nil, 0))

  var isRunning: Bool { inside.withLock { $0.tick != nil } }
  var interval: Int64 { inside.withLock { $0.interval } }

  func start(everyNanoseconds interval: Int64, _ tick: @escaping @Sendable (Int64) -> Void) {
    inside.withLock { $0 = (tick, interval) }
  }

  func stop() { inside.withLock { $0.tick = nil } }

  func fire(_ milliseconds: Int64) { inside.withLock { $0.tick }?(milliseconds * 1_000_000) }
}

/// Collects the frames that a capturer delivers.
final class KeepingConsumer: EncodedVideoConsumer {
  private struct Inside {
    var starts: [Bool] = []
    var ends = 0
    var frames: [VideoFrame] = []
    var encoded = 0
    var framesBeforeStart = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let inside = Mutex(Inside())

  var starts: [Bool] { inside.withLock { $0.starts } }
  var ends: Int { inside.withLock { $0.ends } }
  var frames: [VideoFrame] { inside.withLock { $0.frames } }
  var encoded: Int { inside.withLock { $0.encoded } }
  var framesBeforeStart: Int { inside.withLock { $0.framesBeforeStart } }

  func captureDidStart(_ isStarted: Bool) {
    inside.withLock { $0.starts.append(isStarted) }
    wake()
  }

  func captureDidEnd() { inside.withLock { $0.ends += 1 } }

  func consumeCapturedFrame(_ frame: VideoFrame) {
    inside.withLock { inside in
      if inside.starts != [true] { inside.framesBeforeStart += 1 }
      inside.frames.append(frame)
    }
    wake()
  }

  func consumeEncodedVideo(_ videoFrame: EncodedVideoChunk) { inside.withLock { $0.encoded += 1 } }

  private func wake() {
    let waiting = inside.withLock { inside in
      defer { inside.waiting = [] }
      return inside.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Waits until a condition holds, checking it after every frame.
  func wait(until isDone: @Sendable (KeepingConsumer) -> Bool) async {
    while !isDone(self) {
      let count = (starts.count, frames.count)
      await withCheckedContinuation { continuation in
        let isLate = inside.withLock { inside in
          guard (inside.starts.count, inside.frames.count) == count else { return true }
          inside.waiting.append(continuation)
          return false
        }
        if isLate { continuation.resume() }
      }
    }
  }
}

/// Returns a plain frame: BGRA of one shade.
func shade(_ shade: UInt8, _ width: Int = 16, _ height: Int = 8, at nanoseconds: Int64 = 0) throws
  -> VideoFrame
{
  let buffer = try VideoFrameBuffer(
    format: .bgra, codedWidth: width, codedHeight: height,
    bytes: [UInt8](repeating: shade, count: width * height * 4))
  return try VideoFrame(buffer: buffer, timestampNanoseconds: nanoseconds)
}

public import Media
import Synchronization

/// A capturer's output: size, frame rate and pixel format.
public struct VideoFormat: Hashable, Sendable, Codable {
  /// The width in pixels.
  public var width: Int
  /// The height in pixels.
  public var height: Int
  /// The maximum frame rate.
  public var framesPerSecond: Double
  /// The pixel format.
  public var pixelFormat: VideoPixelFormat

  /// Creates a format.
  public init(
    width: Int, height: Int, framesPerSecond: Double, pixelFormat: VideoPixelFormat = .i420
  ) {
    self.width = width
    self.height = height
    self.framesPerSecond = framesPerSecond
    self.pixelFormat = pixelFormat
  }
}

/// A source of video: a camera, a screen, a file, a game, or anything that draws.
///
/// Methods are called from any thread and return at once; capturing continues asynchronously.
public protocol VideoCapturer: Sendable {
  /// The supported formats in order of preference.
  var supportedFormats: [VideoFormat] { get }
  /// Whether the frames are a screen's, where clarity matters more than motion.
  var isScreencast: Bool { get }
  /// Starts capturing in a supported format: the consumer is notified once whether that worked, and
  /// then gets the frames.
  func startCapture(_ format: VideoFormat, consumer: any VideoConsumer)
  /// Stops capturing; frames that are still under way are dropped.
  func stopCapture()
}

/// The consumer of a capturer's frames; called serially on the capturer's thread.
public protocol VideoConsumer: Sendable {
  /// Reports whether capturing has started; called before the first frame.
  func captureDidStart(_ isStarted: Bool)
  /// Handles a frame; its pixels are shared and must not change.
  func consumeCapturedFrame(_ frame: VideoFrame)
}

/// A consumer that also accepts encoded frames, as in files of H.264.
public protocol EncodedVideoConsumer: VideoConsumer {
  /// Handles an encoded frame.
  func consumeEncodedVideo(_ videoFrame: EncodedVideoChunk)
}

extension VideoCapturer {
  /// The supported format nearest to a wish: first by size, then by frame rate; nil if there is
  /// none.
  public func supportedFormat(nearest wish: VideoFormat) -> VideoFormat? {
    supportedFormats.min { left, right in left.distance(to: wish) < right.distance(to: wish) }
  }
}

extension VideoFormat {
  fileprivate func distance(to wish: VideoFormat) -> (Double, Double, Int) {
    // Applications may wish for any size.
    let sides = [width, height, wish.width, wish.height].map {
      Double(min(max($0, 0), VideoFrameBuffer.largestSide))
    }
    let size = abs(sides[0] * sides[1] - sides[2] * sides[3]) + abs(sides[0] - sides[2])
    let pace = abs(framesPerSecond - wish.framesPerSecond)
    return (size, pace, pixelFormat == wish.pixelFormat ? 0 : 1)
  }
}

/// Common behaviour of this library's capturers.
///
/// It reports once whether a run started, and passes frames only to the consumer of the current
/// run.
final class CaptureRun: Sendable {
  private struct State {
    var number = 0
    var consumer: (any VideoConsumer)?
    var isStarted = false
  }

  private let state = Mutex(State())

  /// Starts a run, replacing the previous one, and returns its number.
  func begin(_ consumer: any VideoConsumer) -> Int {
    state.withLock { state in
      state.number += 1
      state.consumer = consumer
      state.isStarted = false
      return state.number
    }
  }

  /// Ends the current run.
  func end() {
    state.withLock { state in
      state.number += 1
      state.consumer = nil
    }
  }

  /// Whether a run is still the current one.
  func goesOn(_ number: Int) -> Bool {
    state.withLock { $0.number == number && $0.consumer != nil }
  }

  /// The number of the current run, if any.
  var number: Int? { state.withLock { $0.consumer == nil ? nil : $0.number } }

  /// Notifies the consumer once whether a run started; a failed run is over.
  func didStart(_ isStarted: Bool, _ number: Int) {
    let consumer = state.withLock { state -> (any VideoConsumer)? in
      guard state.number == number, !state.isStarted, let consumer = state.consumer else {
        return nil
      }
      state.isStarted = true
      if !isStarted { state.consumer = nil }
      return consumer
    }
    consumer?.captureDidStart(isStarted)
  }

  /// Passes a frame to the consumer; false if the run is over.
  @discardableResult
  func deliver(_ frame: VideoFrame, _ number: Int) -> Bool {
    guard let consumer = consumer(of: number) else { return false }
    consumer.consumeCapturedFrame(frame)
    return true
  }

  /// The consumer of a run that has started; nil if it is over.
  func consumer(of number: Int) -> (any VideoConsumer)? {
    state.withLock { $0.number == number && $0.isStarted ? $0.consumer : nil }
  }
}

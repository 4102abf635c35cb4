public import Media
import Synchronization

/// What a capturer can give: the size, the pace and the format of its frames.
public struct VideoFormat: Hashable, Sendable, Codable {
  /// The width in pixels.
  public var width: Int
  /// The height in pixels.
  public var height: Int
  /// The most frames per second.
  public var framesPerSecond: Double
  /// How the pixels stand in memory.
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

/// Where frames come from: a camera, a screen, a file, a game, or whatever draws.
///
/// Calls come from any thread and return at once; what they begin continues by itself.
public protocol VideoCapturer: Sendable {
  /// What can be captured, the preferred one first.
  var supportedFormats: [VideoFormat] { get }
  /// Whether the frames are those of a screen, of which clarity counts more than motion.
  var isScreencast: Bool { get }
  /// Starts to capture one of the supported formats: the consumer is told once whether that worked,
  /// and then gets the frames.
  func startCapture(_ format: VideoFormat, consumer: any VideoConsumer)
  /// Ends capturing; frames that are still under way are given to nobody.
  func stopCapture()
}

/// Who takes the frames of a capturer; called one call at a time, on the capturer's thread.
public protocol VideoConsumer: Sendable {
  /// Tells whether capturing has begun; comes before the first frame.
  func captureDidStart(_ isStarted: Bool)
  /// Handles a frame; its pixels are shared, and stay as they are.
  func consumeCapturedFrame(_ frame: VideoFrame)
}

/// A consumer that also takes video frames which come encoded, as files of H.264 have them.
public protocol EncodedVideoConsumer: VideoConsumer {
  /// Handles an encoded video frame.
  func consumeEncodedVideo(_ videoFrame: EncodedVideoChunk)
}

extension VideoCapturer {
  /// The supported format that is nearest to a wish: the size counts first, then the pace; nil when
  /// nothing can be captured.
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

/// What every capturer of this library does alike.
///
/// It tells once whether it started, gives frames to the consumer of the present run alone, and to
/// nobody after the end.
final class CaptureRun: Sendable {
  private struct State {
    var number = 0
    var consumer: (any VideoConsumer)?
    var isStarted = false
  }

  private let state = Mutex(State())

  /// Begins a run in the place of the one before, and gives its number.
  func begin(_ consumer: any VideoConsumer) -> Int {
    state.withLock { state in
      state.number += 1
      state.consumer = consumer
      state.isStarted = false
      return state.number
    }
  }

  /// Ends the present run.
  func end() {
    state.withLock { state in
      state.number += 1
      state.consumer = nil
    }
  }

  /// Whether a run is still the present one.
  func goesOn(_ number: Int) -> Bool {
    state.withLock { $0.number == number && $0.consumer != nil }
  }

  /// The number of the present run; nil when there is none.
  var number: Int? { state.withLock { $0.consumer == nil ? nil : $0.number } }

  /// Notifies the consumer once whether a run started; a run that did not is over.
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

  /// Gives the consumer a frame; false when the run is over.
  @discardableResult
  func deliver(_ frame: VideoFrame, _ number: Int) -> Bool {
    guard let consumer = consumer(of: number) else { return false }
    consumer.consumeCapturedFrame(frame)
    return true
  }

  /// The consumer of a run that has started; nil when it is over.
  func consumer(of number: Int) -> (any VideoConsumer)? {
    state.withLock { $0.number == number && $0.isStarted ? $0.consumer : nil }
  }
}

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
  /// The pixel format of the frames' samples.
  public var pixelFormat: VideoPixelFormat

  /// Creates a format, with I420 samples by default.
  public init(
    width: Int, height: Int, framesPerSecond: Double, pixelFormat: VideoPixelFormat = .i420
  ) {
    self.width = width
    self.height = height
    self.framesPerSecond = framesPerSecond
    self.pixelFormat = pixelFormat
  }
}

/// A video source: a camera, a screen, a file, a game, or anything that draws.
///
/// Methods are called from any thread and must not block; capturing continues asynchronously.
public protocol VideoCapturer: Sendable {
  /// The supported formats in order of preference.
  var supportedFormats: [VideoFormat] { get }
  /// Whether the frames are a screen's, where clarity matters more than motion.
  var isScreencast: Bool { get }
  /// Starts capturing in a supported format.
  ///
  /// The consumer is notified once of whether that worked, and then receives the frames. It is also
  /// notified if capturing ends by itself, without `stopCapture`.
  func startCapture(_ format: VideoFormat, consumer: any VideoConsumer)
  /// Stops capturing; frames still in flight are dropped.
  func stopCapture()
}

/// Consumes a capturer's frames; called serially on the capturer's thread.
public protocol VideoConsumer: Sendable {
  /// Reports whether capturing has started; called before the first frame.
  func captureDidStart(_ isStarted: Bool)
  /// Handles a frame; its pixels are shared and must not change.
  func consumeCapturedFrame(_ frame: VideoFrame)
  /// Reports that capturing has ended by itself, for example because a camera was removed.
  func captureDidEnd()
}

extension VideoConsumer {
  /// Does nothing.
  public func captureDidEnd() {}
}

/// A consumer that also accepts encoded frames, such as those in an H.264 file.
public protocol EncodedVideoConsumer: VideoConsumer {
  /// Handles an encoded frame.
  func consumeEncodedVideo(_ videoFrame: EncodedVideoChunk)
}

extension VideoCapturer {
  /// Returns the supported format nearest to `wish`, first by size, then by frame rate; nil if
  /// there is none.
  public func supportedFormat(nearest wish: VideoFormat) -> VideoFormat? {
    supportedFormats.min { left, right in left.distance(to: wish) < right.distance(to: wish) }
  }
}

extension VideoFormat {
  fileprivate func distance(to wish: VideoFormat) -> (Double, Double, Int) {
    // Clamp the sides, because applications may request any size.
    let sides = [width, height, wish.width, wish.height].map {
      Double(min(max($0, 0), VideoFrameBuffer.largestSide))
    }
    let size = abs(sides[0] * sides[1] - sides[2] * sides[3]) + abs(sides[0] - sides[2])
    let pace = abs(framesPerSecond - wish.framesPerSecond)
    return (size, pace, pixelFormat == wish.pixelFormat ? 0 : 1)
  }
}

/// A capturer's current run, through which this library's capturers reach the consumer.
///
/// It reports once whether the run started, and passes frames only to the current run's consumer.
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

  func end() {
    state.withLock { state in
      state.number += 1
      state.consumer = nil
    }
  }

  /// Returns whether a run is still the current run.
  func goesOn(_ number: Int) -> Bool {
    state.withLock { $0.number == number && $0.consumer != nil }
  }

  /// The current run's number, if any.
  var number: Int? { state.withLock { $0.consumer == nil ? nil : $0.number } }

  /// Ends a run that was not stopped, and notifies the consumer that the run ended or did not
  /// start.
  func didEnd(_ number: Int) {
    let (consumer, wasStarted) = state.withLock { state -> ((any VideoConsumer)?, Bool) in
      guard state.number == number else { return (nil, false) }
      defer { state.consumer = nil }
      return (state.consumer, state.isStarted)
    }
    if wasStarted { consumer?.captureDidEnd() } else { consumer?.captureDidStart(false) }
  }

  /// Notifies the consumer once of whether a run started; if it failed to start, the run ends.
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

  /// Passes a frame to the consumer; returns false if the run has not started or has ended.
  @discardableResult
  func deliver(_ frame: VideoFrame, _ number: Int) -> Bool {
    guard let consumer = consumer(of: number) else { return false }
    consumer.consumeCapturedFrame(frame)
    return true
  }

  /// Returns the consumer of a run; nil if the run has not started or has ended.
  func consumer(of number: Int) -> (any VideoConsumer)? {
    state.withLock { $0.number == number && $0.isStarted ? $0.consumer : nil }
  }
}

// MARK: - VideoConstraints

/// An application's limits on a capturer's format.
///
/// The properties have the names of W3C constraints; nil means no limit.
public struct VideoConstraints: Hashable, Sendable, Codable {
  /// The minimum width in pixels.
  public var minWidth: Int?
  /// The maximum width in pixels.
  public var maxWidth: Int?
  /// The minimum height in pixels.
  public var minHeight: Int?
  /// The maximum height in pixels.
  public var maxHeight: Int?
  /// The minimum frame rate.
  public var minFrameRate: Double?
  /// The maximum frame rate.
  public var maxFrameRate: Double?

  /// Creates constraints without limits.
  public init() {}

  /// Constraints to a height of 360 to 720 pixels, as usual for phone cameras.
  public static var usual: VideoConstraints {
    var constraints = VideoConstraints()
    (constraints.minHeight, constraints.maxHeight) = (360, 720)
    return constraints
  }

  /// Returns whether a format satisfies the constraints.
  public func admits(_ format: VideoFormat) -> Bool {
    func isWithin<Value: Comparable>(_ value: Value, _ least: Value?, _ most: Value?) -> Bool {
      (least.map { value >= $0 } ?? true) && (most.map { value <= $0 } ?? true)
    }
    return isWithin(format.width, minWidth, maxWidth)
      && isWithin(format.height, minHeight, maxHeight)
      && isWithin(format.framesPerSecond, minFrameRate, maxFrameRate)
  }
}

extension VideoCapturer {
  /// Returns the first supported format that satisfies `constraints`; nil if none does.
  public func supportedFormat(within constraints: VideoConstraints) -> VideoFormat? {
    supportedFormats.first { constraints.admits($0) }
  }
}

extension VideoCaptureSession {
  /// Starts capturing in the first supported format that satisfies `constraints`.
  /// - Returns: whether the capturer started; false if no format satisfies the constraints.
  @discardableResult
  public func start(within constraints: VideoConstraints) async -> Bool {
    guard let format = capturer.supportedFormat(within: constraints) else { return false }
    return await start(format)
  }
}

// MARK: - VideoFilter

/// Changes frames between a capturer and its consumer, for example to blur the background, mirror
/// the frame, or draw a name.
public protocol VideoFilter: Sendable {
  /// Returns the processed frame; nil drops it.
  func process(_ frame: VideoFrame) -> VideoFrame?
}

/// A capturer that passes another capturer's frames through filters, in order.
public final class FilteredVideoCapturer: VideoCapturer {
  /// The unfiltered capturer.
  public let capturer: any VideoCapturer
  private let filters: [any VideoFilter]

  /// Creates a capturer with filters, applied in order.
  public init(_ capturer: any VideoCapturer, filters: [any VideoFilter]) {
    self.capturer = capturer
    self.filters = filters
  }

  /// The unfiltered capturer's formats.
  public var supportedFormats: [VideoFormat] { capturer.supportedFormats }
  /// Whether the unfiltered capturer captures a screen.
  public var isScreencast: Bool { capturer.isScreencast }

  /// Starts the unfiltered capturer; see `VideoCapturer`.
  public func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
    capturer.startCapture(format, consumer: VideoFilterChain(filters, consumer: consumer))
  }

  /// Stops the unfiltered capturer.
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

  /// Passes the report on to the consumer.
  public func captureDidStart(_ isStarted: Bool) { consumer.captureDidStart(isStarted) }

  /// Passes the report on to the consumer.
  public func captureDidEnd() { consumer.captureDidEnd() }

  /// Passes the filtered frame to the consumer, unless a filter drops it.
  public func consumeCapturedFrame(_ frame: VideoFrame) {
    var frame = frame
    for filter in filters {
      guard let next = filter.process(frame) else { return }
      frame = next
    }
    consumer.consumeCapturedFrame(frame)
  }
}

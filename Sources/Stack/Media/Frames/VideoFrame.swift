/// By how much a frame is to be turned for showing, clockwise (W3C VideoFrame.rotation).
public enum VideoRotation: Int, CaseIterable, Hashable, Sendable, Codable {
  /// As it is.
  case none = 0
  /// A quarter.
  case quarter = 90
  /// Upside down.
  case half = 180
  /// Three quarters.
  case threeQuarters = 270

  /// Whether width and height change places.
  public var swapsSides: Bool { self == .quarter || self == .threeQuarters }
}

/// A part of a frame in pixels (W3C DOMRectReadOnly, in whole numbers).
public struct VideoRectangle: Hashable, Sendable, Codable {
  /// The first column.
  public var x: Int
  /// The first row.
  public var y: Int
  /// How many columns.
  public var width: Int
  /// How many rows.
  public var height: Int

  /// Creates a rectangle.
  public init(x: Int = 0, y: Int = 0, width: Int, height: Int) {
    self.x = x
    self.y = y
    self.width = width
    self.height = height
  }
}

/// A frame of a camera, a screen or a received track (W3C VideoFrame).
///
/// Copies share the pixels. What is sent becomes an upright I420 video frame first, at the edge: so
/// the take has what the encoder got, and a replay depends on no conversion.
public struct VideoFrame: Hashable, Sendable {
  /// The pixels.
  public private(set) var buffer: VideoFrameBuffer
  /// The part of the pixels that is shown, before it is turned.
  public let visibleRect: VideoRectangle
  /// By how much it is to be turned for showing.
  public let rotation: VideoRotation
  /// When it was taken, by the clock of its source, in nanoseconds.
  public var timestampNanoseconds: Int64

  /// The format of the pixels.
  public var format: VideoPixelFormat { buffer.format }
  /// The width in pixels of what is stored.
  public var codedWidth: Int { buffer.codedWidth }
  /// The height in pixels of what is stored.
  public var codedHeight: Int { buffer.codedHeight }
  /// The width in pixels of what is shown: the visible part after it was turned.
  public var displayWidth: Int { rotation.swapsSides ? visibleRect.height : visibleRect.width }
  /// The height in pixels of what is shown: the visible part after it was turned.
  public var displayHeight: Int { rotation.swapsSides ? visibleRect.width : visibleRect.height }

  /// Creates a frame of a buffer.
  ///
  /// - Parameter visibleRect: nil for all of it.
  /// - Throws: `VideoFrameError` when the visible part is empty or not within the buffer, or, where
  ///   two by two pixels share their colour, begins at an odd row or column.
  public init(
    buffer: VideoFrameBuffer, visibleRect: VideoRectangle? = nil, rotation: VideoRotation = .none,
    timestampNanoseconds: Int64
  ) throws(VideoFrameError) {
    let whole = VideoRectangle(width: buffer.codedWidth, height: buffer.codedHeight)
    let visible = visibleRect ?? whole
    guard (0..<whole.width).contains(visible.x), (0..<whole.height).contains(visible.y),
      (1...whole.width - visible.x).contains(visible.width),
      (1...whole.height - visible.y).contains(visible.height)
    else {
      throw VideoFrameError(
        reason: "the visible part is not within \(whole.width) by \(whole.height) pixels")
    }
    // W3C WebCodecs, "verify rect sample alignment".
    guard !buffer.format.isSubsampled || (visible.x % 2 == 0 && visible.y % 2 == 0) else {
      throw VideoFrameError(
        reason: "the visible part of \(buffer.format.rawValue) begins at an odd row or column")
    }
    self.buffer = buffer
    self.visibleRect = visible
    self.rotation = rotation
    self.timestampNanoseconds = timestampNanoseconds
  }

  /// Creates an upright frame of a video frame, whose samples it shares.
  ///
  /// - Throws: `VideoFrameError` for a video frame without samples.
  public init(_ videoFrame: I420Buffer, timestampNanoseconds: Int64) throws(VideoFrameError) {
    try self.init(
      buffer: try VideoFrameBuffer(videoFrame), timestampNanoseconds: timestampNanoseconds)
  }

  /// The same frame as an encoder takes it: upright I420; itself when it is that already.
  public var upright: VideoFrame {
    (try? VideoFrame(videoFrame(), timestampNanoseconds: timestampNanoseconds)) ?? self
  }

  /// Changes the pixels in place, after a copy when somebody else has them too.
  public mutating func withMutableBytes<Result>(_ change: (inout MutableSpan<UInt8>) -> Result)
    -> Result
  {
    buffer.withMutableBytes(change)
  }
}

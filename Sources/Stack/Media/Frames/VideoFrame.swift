/// The clockwise rotation of a frame for display (W3C VideoFrame.rotation).
public enum VideoRotation: Int, CaseIterable, Hashable, Sendable, Codable {
  /// No rotation.
  case none = 0
  /// A quarter turn.
  case quarter = 90
  /// Half a turn.
  case half = 180
  /// Three quarter turns.
  case threeQuarters = 270

  /// Whether width and height are swapped.
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
/// Copies share the pixels. Sent frames are first converted to upright I420, at the edge. So the
/// take has the encoder's input, and a replay depends on no conversion.
public struct VideoFrame: Hashable, Sendable {
  /// The pixels.
  public private(set) var buffer: VideoFrameBuffer
  /// The visible part of the pixels, before rotation.
  public let visibleRect: VideoRectangle
  /// The clockwise rotation for display.
  public let rotation: VideoRotation
  /// The capture time by the source's clock, in nanoseconds.
  public var timestampNanoseconds: Int64

  /// The format of the pixels.
  public var format: VideoPixelFormat { buffer.format }
  /// The stored width in pixels.
  public var codedWidth: Int { buffer.codedWidth }
  /// The stored height in pixels.
  public var codedHeight: Int { buffer.codedHeight }
  /// The displayed width in pixels: of the visible part after rotation.
  public var displayWidth: Int { rotation.swapsSides ? visibleRect.height : visibleRect.width }
  /// The displayed height in pixels: of the visible part after rotation.
  public var displayHeight: Int { rotation.swapsSides ? visibleRect.width : visibleRect.height }

  /// Creates a frame from a buffer.
  /// - Parameter visibleRect: nil for all of it.
  /// - Throws: `VideoFrameError` if the visible part is empty or not within the buffer, or starts
  ///   at an odd row or column of a format with subsampled chroma.
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

  /// Creates an upright frame that shares another one's samples.
  /// - Throws: `VideoFrameError` if the frame is blank.
  public init(_ videoFrame: I420Buffer, timestampNanoseconds: Int64) throws(VideoFrameError) {
    try self.init(
      buffer: try VideoFrameBuffer(videoFrame), timestampNanoseconds: timestampNanoseconds)
  }

  /// The frame as encoders need it, in upright I420; itself if it is that already.
  public var upright: VideoFrame {
    (try? VideoFrame(videoFrame(), timestampNanoseconds: timestampNanoseconds)) ?? self
  }

  /// Changes the pixels in place, after a copy if they are shared.
  public mutating func withMutableBytes<Result>(_ change: (inout MutableSpan<UInt8>) -> Result)
    -> Result
  {
    buffer.withMutableBytes(change)
  }
}

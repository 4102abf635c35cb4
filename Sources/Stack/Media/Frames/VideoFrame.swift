import CYUV

/// The clockwise rotation of a frame for display (W3C VideoFrame.rotation).
public enum VideoRotation: Int, CaseIterable, Hashable, Sendable, Codable {
  /// No rotation: the frame is shown as stored.
  case none = 0
  /// A quarter turn clockwise.
  case quarter = 90
  /// Half a turn: the frame is upside down.
  case half = 180
  /// Three quarter turns clockwise, or one counterclockwise.
  case threeQuarters = 270

  /// Whether width and height are swapped.
  public var swapsSides: Bool { self == .quarter || self == .threeQuarters }
}

/// A part of a frame, in pixels (W3C DOMRectReadOnly, as integers).
public struct VideoRectangle: Hashable, Sendable, Codable {
  /// The first column.
  public var x: Int
  /// The first row.
  public var y: Int
  /// The width in columns.
  public var width: Int
  /// The height in rows.
  public var height: Int

  /// Creates a rectangle; by default it starts at the first pixel.
  public init(x: Int = 0, y: Int = 0, width: Int, height: Int) {
    self.x = x
    self.y = y
    self.width = width
    self.height = height
  }
}

/// A frame from a camera, a screen or a received track (W3C VideoFrame).
///
/// Copies share the pixels. Sent frames are converted to upright I420 before they reach the stack,
/// so the take holds the encoder's input and a replay depends on no conversion.
public struct VideoFrame: Hashable, Sendable {
  /// The pixels with their format and size, shared by copies of the frame.
  public private(set) var buffer: VideoFrameBuffer
  /// The visible part of the pixels, before rotation.
  public let visibleRect: VideoRectangle
  /// The clockwise rotation for display.
  public let rotation: VideoRotation
  /// The capture time on the source's clock, in nanoseconds.
  public var timestampNanoseconds: Int64

  /// The memory layout of the pixels.
  public var format: VideoPixelFormat { buffer.format }
  /// The stored width in pixels, which may exceed the visible part.
  public var codedWidth: Int { buffer.codedWidth }
  /// The stored height in pixels, which may exceed the visible part.
  public var codedHeight: Int { buffer.codedHeight }
  /// The displayed width in pixels: the visible part after rotation.
  public var displayWidth: Int { rotation.swapsSides ? visibleRect.height : visibleRect.width }
  /// The displayed height in pixels: the visible part after rotation.
  public var displayHeight: Int { rotation.swapsSides ? visibleRect.width : visibleRect.height }

  /// Creates a frame from a buffer.
  /// - Parameter visibleRect: the part to display; nil for the complete buffer.
  /// - Throws: `VideoFrameError` if the visible part is empty or exceeds the buffer, or starts at
  ///   an odd row or column in a format with subsampled chroma.
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

  /// Creates an upright frame that shares the buffer's samples.
  /// - Throws: `VideoFrameError` if the buffer is blank.
  public init(_ videoFrame: I420Buffer, timestampNanoseconds: Int64) throws(VideoFrameError) {
    try self.init(
      buffer: try VideoFrameBuffer(videoFrame), timestampNanoseconds: timestampNanoseconds)
  }

  /// The frame in upright I420, as encoders need it; unchanged if it is upright I420 already.
  public var upright: VideoFrame {
    (try? VideoFrame(videoFrame(), timestampNanoseconds: timestampNanoseconds)) ?? self
  }

  /// Changes the pixels in place, copying them first if they are shared.
  public mutating func withMutableBytes<Result>(_ change: (inout MutableSpan<UInt8>) -> Result)
    -> Result
  {
    buffer.withMutableBytes(change)
  }
}

// MARK: - VideoFrameBuffer

/// The memory layout of pixels (W3C VideoPixelFormat, and ARGB).
public enum VideoPixelFormat: String, CaseIterable, Hashable, Sendable, Codable {
  /// A plane of Y, then U, then V; U and V have half the width and height, rounded up.
  case i420 = "I420"
  /// A plane of Y, then a plane of interleaved U and V at half width and height, rounded up.
  case nv12 = "NV12"
  /// Four bytes per pixel: blue, green, red, alpha.
  case bgra = "BGRA"
  /// Four bytes per pixel: alpha, red, green, blue.
  case argb = "ARGB"
}

/// The reason that a frame cannot be created.
public struct VideoFrameError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong with the frame, in one sentence.
  public var reason: String

  /// Creates an error from a sentence that says what is wrong with the frame.
  public init(reason: String) { self.reason = reason }

  /// The same text as `reason`.
  public var description: String { reason }
}

/// The pixels of a frame, in one of the layouts of `VideoPixelFormat`.
///
/// The bytes are one array, shared by copies of the buffer until one of them changes it.
public struct VideoFrameBuffer: Hashable, Sendable {
  /// The offset and stride of a plane in the buffer's bytes (W3C PlaneLayout).
  public struct Plane: Hashable, Sendable {
    /// The offset of the plane's first byte in the buffer's bytes.
    public var offset: Int
    /// Bytes from one row to the next.
    public var stride: Int

    /// Creates the position of a plane in a buffer's bytes.
    public init(offset: Int, stride: Int) {
      self.offset = offset
      self.stride = stride
    }
  }

  /// The layout of the pixels in `bytes`.
  public let format: VideoPixelFormat
  /// The stored width in pixels, which may exceed the visible part.
  public let codedWidth: Int
  /// The stored height in pixels, which may exceed the visible part.
  public let codedHeight: Int
  /// The position of each plane, in the order that the format defines.
  public let planes: [Plane]
  /// The bytes of all planes, with any padding between rows.
  public private(set) var bytes: [UInt8]

  /// The largest width and height in pixels.
  public static let largestSide = 16_384

  /// Creates a buffer from a frame's bytes.
  /// - Parameter planes: the position of each plane; nil if they are contiguous without row
  ///   padding.
  /// - Throws: `VideoFrameError` if a side is not from 1 to `largestSide`, the number of planes is
  ///   wrong for the format, or a plane exceeds the bytes.
  public init(
    format: VideoPixelFormat, codedWidth: Int, codedHeight: Int, planes: [Plane]? = nil,
    bytes: [UInt8]
  ) throws(VideoFrameError) {
    let sides = 1...VideoFrameBuffer.largestSide
    guard sides.contains(codedWidth), sides.contains(codedHeight) else {
      throw VideoFrameError(
        reason: "a frame of \(codedWidth) by \(codedHeight) pixels: sides are 1 to"
          + " \(VideoFrameBuffer.largestSide)")
    }
    let shapes = format.shapes(width: codedWidth, height: codedHeight)
    let planes = planes ?? VideoFrameBuffer.tight(shapes)
    guard planes.count == shapes.count else {
      throw VideoFrameError(
        reason: "\(format.rawValue) has \(shapes.count) planes, and \(planes.count) were given")
    }
    for (plane, shape) in zip(planes, shapes) {
      // Compare the stride with the byte count first, so that the product cannot overflow.
      guard plane.offset >= 0, plane.offset <= bytes.count, plane.stride >= shape.bytesPerRow,
        plane.stride <= bytes.count,
        plane.stride * (shape.rows - 1) + shape.bytesPerRow <= bytes.count - plane.offset
      else {
        throw VideoFrameError(
          reason: "\(bytes.count) bytes do not hold \(codedWidth) by \(codedHeight) pixels of"
            + " \(format.rawValue)")
      }
    }
    self.format = format
    self.codedWidth = codedWidth
    self.codedHeight = codedHeight
    self.planes = planes
    self.bytes = bytes
  }

  /// Creates a buffer that shares a frame's samples.
  public init(_ videoFrame: I420Buffer) throws(VideoFrameError) {
    try self.init(
      format: .i420, codedWidth: videoFrame.width, codedHeight: videoFrame.height,
      bytes: videoFrame.samples)
  }

  /// Changes the bytes in place, copying them first if they are shared.
  public mutating func withMutableBytes<Result>(_ change: (inout MutableSpan<UInt8>) -> Result)
    -> Result
  {
    var span = bytes.mutableSpan
    return change(&span)
  }

  /// Whether the planes are contiguous, as in an `I420Buffer`.
  var isTight: Bool {
    let shapes = format.shapes(width: codedWidth, height: codedHeight)
    return planes == VideoFrameBuffer.tight(shapes)
      && bytes.count == shapes.reduce(0) { $0 + $1.rows * $1.bytesPerRow }
  }

  private static func tight(_ shapes: [VideoPixelFormat.Shape]) -> [Plane] {
    var planes: [Plane] = []
    var offset = 0
    for shape in shapes {
      planes.append(Plane(offset: offset, stride: shape.bytesPerRow))
      offset += shape.rows * shape.bytesPerRow
    }
    return planes
  }
}

extension VideoPixelFormat {
  /// A plane's minimum size.
  struct Shape {
    var rows: Int
    var bytesPerRow: Int
  }

  func shapes(width: Int, height: Int) -> [Shape] {
    let chroma = Shape(rows: (height + 1) / 2, bytesPerRow: (width + 1) / 2)
    let luma = Shape(rows: height, bytesPerRow: width)
    switch self {
    case .i420: return [luma, chroma, chroma]
    case .nv12: return [luma, Shape(rows: chroma.rows, bytesPerRow: 2 * chroma.bytesPerRow)]
    case .bgra, .argb: return [Shape(rows: height, bytesPerRow: 4 * width)]
    }
  }

  /// Returns the number of bytes in a frame with contiguous planes.
  public func byteCount(width: Int, height: Int) -> Int {
    shapes(width: width, height: height).reduce(0) { $0 + $1.rows * $1.bytesPerRow }
  }

  /// Whether chroma is subsampled by two in both directions.
  var isSubsampled: Bool { self == .i420 || self == .nv12 }
}

// MARK: - I420Buffer: Comparison

extension I420Buffer {
  /// Returns the sum of squared luma differences; nil if the sizes differ or a frame is blank.
  ///
  /// The result is an integer, so that it is the same on every machine.
  package func squaredError(to other: I420Buffer) -> UInt64? {
    guard width == other.width, height == other.height, !samples.isEmpty, !other.samples.isEmpty
    else { return nil }
    return unsafe samples.withUnsafeBufferPointer { left in
      unsafe other.samples.withUnsafeBufferPointer { right in
        guard let left = left.baseAddress, let right = right.baseAddress else { return nil }
        return unsafe ComputeSumSquareErrorPlane(
          left, Int32(width), right, Int32(width), Int32(width), Int32(height))
      }
    }
  }
}

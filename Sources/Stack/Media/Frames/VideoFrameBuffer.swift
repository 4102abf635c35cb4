/// The memory layout of a frame's pixels (W3C VideoPixelFormat, and ARGB).
public enum VideoPixelFormat: String, CaseIterable, Hashable, Sendable, Codable {
  /// A plane of Y, then U, then V; U and V have half the width and height, rounded up.
  case i420 = "I420"
  /// A plane of Y, then one of interleaved U and V with half the width and height, rounded up.
  case nv12 = "NV12"
  /// Four bytes per pixel: blue, green, red, alpha.
  case bgra = "BGRA"
  /// Four bytes per pixel: alpha, red, green, blue.
  case argb = "ARGB"
}

/// Why a frame cannot be created.
public struct VideoFrameError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, as a sentence.
  public var reason: String

  /// Creates an error.
  public init(reason: String) { self.reason = reason }

  /// The reason.
  public var description: String { reason }
}

/// The pixels of a frame.
///
/// The bytes are one array that copies of the buffer share until one of them changes it.
public struct VideoFrameBuffer: Hashable, Sendable {
  /// The position of a plane (W3C PlaneLayout).
  public struct Plane: Hashable, Sendable {
    /// Its first byte.
    public var offset: Int
    /// The bytes from one row to the next.
    public var stride: Int

    /// Creates a layout.
    public init(offset: Int, stride: Int) {
      self.offset = offset
      self.stride = stride
    }
  }

  /// The layout of `bytes`.
  public let format: VideoPixelFormat
  /// The stored width in pixels.
  public let codedWidth: Int
  /// The stored height in pixels.
  public let codedHeight: Int
  /// The positions of the planes, in the order of the format.
  public let planes: [Plane]
  /// The bytes of all planes.
  public private(set) var bytes: [UInt8]

  /// The largest width and height.
  public static let largestSide = 16_384

  /// Creates a buffer from the bytes of a frame.
  /// - Parameter planes: nil if the planes are contiguous without row padding.
  /// - Throws: `VideoFrameError` if a plane is not within the bytes.
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
      // Reject strides that exceed the bytes before multiplying.
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

  /// Changes the bytes in place, after a copy if they are shared.
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
  /// The minimum size of a plane.
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

  /// The number of bytes of a frame with contiguous planes.
  public func byteCount(width: Int, height: Int) -> Int {
    shapes(width: width, height: height).reduce(0) { $0 + $1.rows * $1.bytesPerRow }
  }

  /// Whether chroma is subsampled by two in both directions.
  var isSubsampled: Bool { self == .i420 || self == .nv12 }
}

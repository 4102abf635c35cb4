package import Media

/// The clockwise rotation in degrees for display.
public enum RTCVideoRotation: Int, Sendable {
  // swift-format-ignore
  /// No rotation.
  case _0 = 0
  // swift-format-ignore
  /// A quarter turn clockwise.
  case _90 = 90
  // swift-format-ignore
  /// A half turn.
  case _180 = 180
  // swift-format-ignore
  /// Three quarters of a turn clockwise.
  case _270 = 270

  var native: VideoRotation {
    switch self {
    case ._0: .none
    case ._90: .quarter
    case ._180: .half
    case ._270: .threeQuarters
    }
  }
}

/// A frame from a camera or a received track.
public final class RTCVideoFrame: Sendable {
  /// The pixels before rotation.
  public let buffer: any RTCVideoFrameBuffer
  /// The rotation to apply to `buffer` before displaying it.
  public let rotation: RTCVideoRotation
  /// When the frame was captured, in nanoseconds by its source's clock.
  public let timeStampNs: Int64

  /// Creates a frame; the capture time is in nanoseconds by its source's clock.
  public init(
    buffer: any RTCVideoFrameBuffer, rotation: RTCVideoRotation, timeStampNs: Int64
  ) {
    self.buffer = buffer
    self.rotation = rotation
    self.timeStampNs = timeStampNs
  }

  /// Creates a frame from a pixel buffer.
  public convenience init(
    pixelBuffer: CVPixelBuffer, rotation: RTCVideoRotation, timeStampNs: Int64
  ) {
    self.init(
      buffer: RTCCVPixelBuffer(pixelBuffer: pixelBuffer), rotation: rotation,
      timeStampNs: timeStampNs)
  }

  /// The width in pixels before rotation.
  public var width: Int32 { buffer.width }
  /// The height in pixels before rotation.
  public var height: Int32 { buffer.height }
  /// The capture time in ticks of a 90 kHz clock, wrapping around.
  public var timeStamp: Int32 { Int32(truncatingIfNeeded: timeStampNs / 1000 * 9 / 100) }

  /// Returns the frame with its pixels in I420.
  public func newI420() -> RTCVideoFrame {
    RTCVideoFrame(buffer: buffer.toI420(), rotation: rotation, timeStampNs: timeStampNs)
  }

  /// Returns the rotated pixels in RGBA, for display; empty for a buffer whose bytes do not match
  /// its size.
  public func rgba() -> [UInt8] { native?.rgba() ?? [] }

  /// Creates an upright frame from a frame of the stack.
  package convenience init(_ frame: VideoFrame) {
    let upright = frame.upright
    self.init(
      buffer: RTCI420Buffer(upright.videoFrame()), rotation: ._0,
      timeStampNs: upright.timestampNanoseconds)
  }

  /// The frame as the stack's type; nil for a buffer whose bytes do not match its size.
  package var native: VideoFrame? {
    let buffer = (buffer as? any NativeBuffer)?.native ?? buffer.toI420().native
    return buffer.flatMap {
      try? VideoFrame(buffer: $0, rotation: rotation.native, timestampNanoseconds: timeStampNs)
    }
  }
}

// MARK: - RTCVideoFrameBuffer

/// A frame's pixels, in a format that can be converted to I420.
public protocol RTCVideoFrameBuffer: AnyObject, Sendable {
  /// The width in pixels.
  var width: Int32 { get }
  /// The height in pixels.
  var height: Int32 { get }
  /// Converts to I420; unreadable pixels are black.
  func toI420() -> RTCI420Buffer
}

/// A buffer defined in this module.
protocol NativeBuffer: RTCVideoFrameBuffer {
  /// The pixels; nil if the bytes do not match the size.
  var native: VideoFrameBuffer? { get }
}

/// Pixels in I420: the planes Y, U and V, without row padding.
public final class RTCI420Buffer: NativeBuffer {
  private let videoFrame: I420Buffer

  /// Creates a black buffer.
  public convenience init(width: Int32, height: Int32) {
    let (width, height) = (max(1, Int(width)), max(1, Int(height)))
    let luma = Array(repeating: UInt8(16), count: width * height)
    let chroma = I420Buffer.byteCount(width: width, height: height) - luma.count
    self.init(
      I420Buffer(
        width: width, height: height, samples: luma + Array(repeating: 128, count: chroma)))
  }

  init(_ videoFrame: I420Buffer) { self.videoFrame = videoFrame }

  /// The width in pixels.
  public var width: Int32 { Int32(videoFrame.width) }
  /// The height in pixels.
  public var height: Int32 { Int32(videoFrame.height) }
  /// The width of U and V in pixels: half of the frame's width, rounded up.
  public var chromaWidth: Int32 { (width + 1) / 2 }
  /// The height of U and V in pixels: half of the frame's height, rounded up.
  public var chromaHeight: Int32 { (height + 1) / 2 }
  /// The bytes from one row of Y to the next.
  public var strideY: Int32 { width }
  /// The bytes from one row of U to the next.
  public var strideU: Int32 { chromaWidth }
  /// The bytes from one row of V to the next.
  public var strideV: Int32 { chromaWidth }
  /// The Y plane; a copy, not a pointer as in Objective-C.
  public var dataY: [UInt8] { plane(0, lumaCount) }
  /// The U plane; a copy.
  public var dataU: [UInt8] { plane(lumaCount, chromaCount) }
  /// The V plane; a copy.
  public var dataV: [UInt8] { plane(lumaCount + chromaCount, chromaCount) }
  /// Returns the buffer itself.
  public func toI420() -> RTCI420Buffer { self }

  var native: VideoFrameBuffer? { try? VideoFrameBuffer(videoFrame) }

  private var lumaCount: Int { videoFrame.width * videoFrame.height }
  private var chromaCount: Int { Int(chromaWidth * chromaHeight) }

  private func plane(_ start: Int, _ count: Int) -> [UInt8] {
    guard videoFrame.samples.count >= start + count else { return [] }
    return Array(videoFrame.samples[start..<start + count])
  }
}

/// A buffer that wraps a `CVPixelBuffer`.
public final class RTCCVPixelBuffer: NativeBuffer {
  /// The wrapped pixels.
  public let pixelBuffer: CVPixelBuffer

  /// Creates a buffer that shares the pixels.
  public init(pixelBuffer: CVPixelBuffer) { self.pixelBuffer = pixelBuffer }

  /// The width in pixels.
  public var width: Int32 { Int32(clamping: pixelBuffer.width) }
  /// The height in pixels.
  public var height: Int32 { Int32(clamping: pixelBuffer.height) }

  /// Converts to I420; unreadable pixels are black.
  public func toI420() -> RTCI420Buffer {
    guard let native, let frame = try? VideoFrame(buffer: native, timestampNanoseconds: 0) else {
      return RTCI420Buffer(width: width, height: height)
    }
    return RTCI420Buffer(frame.videoFrame())
  }

  var native: VideoFrameBuffer? { pixelBuffer.native }
}

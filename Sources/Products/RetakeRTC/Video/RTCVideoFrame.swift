package import Media

/// The clockwise rotation in degrees for display.
public enum RTCVideoRotation: Int, Sendable {
  // swift-format-ignore
  /// No rotation.
  case _0 = 0
  // swift-format-ignore
  /// A quarter turn.
  case _90 = 90
  // swift-format-ignore
  /// A half turn.
  case _180 = 180
  // swift-format-ignore
  /// Three quarters of a turn.
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

/// A frame of a camera or of a received track.
public final class RTCVideoFrame: Sendable {
  /// The pixels.
  public let buffer: any RTCVideoFrameBuffer
  /// The rotation for display.
  public let rotation: RTCVideoRotation
  /// When it was captured, by the clock of its source, in nanoseconds.
  public let timeStampNs: Int64

  /// Creates a frame.
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
  /// The capture time in units of 90 kHz, wrapping around.
  public var timeStamp: Int32 { Int32(truncatingIfNeeded: timeStampNs / 1000 * 9 / 100) }

  /// The frame with its pixels in I420.
  public func newI420() -> RTCVideoFrame {
    RTCVideoFrame(buffer: buffer.toI420(), rotation: rotation, timeStampNs: timeStampNs)
  }

  /// The rotated pixels in RGBA, for a screen; black for a buffer whose bytes do not match its
  /// size.
  public func rgba() -> [UInt8] { native?.rgba() ?? [] }

  /// Creates a frame without rotation, as it was captured or received.
  package convenience init(_ frame: VideoFrame) {
    let upright = frame.upright
    self.init(
      buffer: RTCI420Buffer(upright.videoFrame()), rotation: ._0,
      timeStampNs: upright.timestampNanoseconds)
  }

  /// Converts to the stack's type; nil for a buffer whose bytes do not match its size.
  package var native: VideoFrame? {
    let buffer = (buffer as? any NativeBuffer)?.native ?? buffer.toI420().native
    return buffer.flatMap {
      try? VideoFrame(buffer: $0, rotation: rotation.native, timestampNanoseconds: timeStampNs)
    }
  }
}

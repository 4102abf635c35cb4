package import Media

/// By how many degrees a frame is to be turned for showing, clockwise.
public enum RTCVideoRotation: Int, Sendable {
  // swift-format-ignore
  /// Not at all.
  case _0 = 0
  // swift-format-ignore
  /// A quarter.
  case _90 = 90
  // swift-format-ignore
  /// Upside down.
  case _180 = 180
  // swift-format-ignore
  /// Three quarters.
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
  /// By how much it is to be turned for showing.
  public let rotation: RTCVideoRotation
  /// When it was taken, by the clock of its source, in nanoseconds.
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

  /// The width in pixels before it is turned.
  public var width: Int32 { buffer.width }
  /// The height in pixels before it is turned.
  public var height: Int32 { buffer.height }
  /// The same time in units of 90 kHz, which wrap around.
  public var timeStamp: Int32 { Int32(truncatingIfNeeded: timeStampNs / 1000 * 9 / 100) }

  /// The same frame with its pixels in I420.
  public func newI420() -> RTCVideoFrame {
    RTCVideoFrame(buffer: buffer.toI420(), rotation: rotation, timeStampNs: timeStampNs)
  }

  /// The upright pixels as red, green, blue and alpha in four bytes each, for a screen; black for a
  /// buffer whose bytes do not fit its size.
  public func rgba() -> [UInt8] { native?.rgba() ?? [] }

  /// An upright frame as it was captured or received.
  package convenience init(_ frame: VideoFrame) {
    let upright = frame.upright
    self.init(
      buffer: RTCI420Buffer(upright.videoFrame()), rotation: ._0,
      timeStampNs: upright.timestampNanoseconds)
  }

  /// The frame as a sender takes it; nil for a buffer whose bytes do not fit its size.
  package var native: VideoFrame? {
    let buffer = (buffer as? any NativeBuffer)?.native ?? buffer.toI420().native
    return buffer.flatMap {
      try? VideoFrame(buffer: $0, rotation: rotation.native, timestampNanoseconds: timeStampNs)
    }
  }
}

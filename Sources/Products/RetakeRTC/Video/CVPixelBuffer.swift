import Media

// Stand-ins for what signatures have of CoreVideo and CoreMedia.

/// A code of four characters.
public typealias OSType = UInt32

// swift-format-ignore: AlwaysUseLowerCamelCase
/// NV12, whose Y is 16 to 235: `420v`.
public let kCVPixelFormatType_420YpCbCr8BiPlanarVideoRange: OSType = 0x3432_3076
// swift-format-ignore: AlwaysUseLowerCamelCase
/// I420: `y420`.
public let kCVPixelFormatType_420YpCbCr8Planar: OSType = 0x7934_3230
// swift-format-ignore: AlwaysUseLowerCamelCase
/// Blue, green, red, alpha: `BGRA`.
public let kCVPixelFormatType_32BGRA: OSType = 0x4247_5241
// swift-format-ignore: AlwaysUseLowerCamelCase
/// Alpha, red, green, blue.
public let kCVPixelFormatType_32ARGB: OSType = 32

/// Pixels in memory, in the place of the class of CoreVideo.
public final class CVPixelBuffer: Sendable {
  let width: Int
  let height: Int
  let pixelFormat: OSType
  let bytes: [UInt8]

  /// Creates a buffer whose planes follow each other without gaps between rows; one whose bytes do
  /// not fit its size and format is shown as black.
  public init(width: Int, height: Int, pixelFormat: OSType, bytes: [UInt8]) {
    self.width = width
    self.height = height
    self.pixelFormat = pixelFormat
    self.bytes = bytes
  }

  var native: VideoFrameBuffer? {
    let format: VideoPixelFormat
    switch pixelFormat {
    case kCVPixelFormatType_420YpCbCr8BiPlanarVideoRange: format = .nv12
    case kCVPixelFormatType_420YpCbCr8Planar: format = .i420
    case kCVPixelFormatType_32BGRA: format = .bgra
    case kCVPixelFormatType_32ARGB: format = .argb
    default: return nil
    }
    return try? VideoFrameBuffer(
      format: format, codedWidth: width, codedHeight: height, bytes: bytes)
  }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The width in pixels.
public func CVPixelBufferGetWidth(_ pixelBuffer: CVPixelBuffer) -> Int { pixelBuffer.width }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The height in pixels.
public func CVPixelBufferGetHeight(_ pixelBuffer: CVPixelBuffer) -> Int { pixelBuffer.height }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The format of the pixels.
public func CVPixelBufferGetPixelFormatType(_ pixelBuffer: CVPixelBuffer) -> OSType {
  pixelBuffer.pixelFormat
}

/// A size in pixels, in the place of the structure of CoreMedia.
public struct CMVideoDimensions: Hashable, Sendable {
  /// The width.
  public var width: Int32
  /// The height.
  public var height: Int32
}

/// What is known of a format of video frames, in the place of the class of CoreMedia.
public struct CMFormatDescription: Hashable, Sendable {
  let dimensions: CMVideoDimensions
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The size of video frames of a format.
public func CMVideoFormatDescriptionGetDimensions(
  _ description: CMFormatDescription
) -> CMVideoDimensions { description.dimensions }

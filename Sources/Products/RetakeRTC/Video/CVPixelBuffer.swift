import Media

// Replacements for the types of CoreVideo and CoreMedia that signatures use.

/// A four-character code.
public typealias OSType = UInt32

// swift-format-ignore: AlwaysUseLowerCamelCase
/// NV12 with a Y of 16 to 235: `420v`.
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

/// Pixels in memory, in place of CoreVideo's class.
public final class CVPixelBuffer: Sendable {
  let width: Int
  let height: Int
  let pixelFormat: OSType
  let bytes: [UInt8]

  /// Creates a buffer of contiguous planes without row padding; one whose bytes do not match its
  /// size and format is rendered black.
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

/// A size in pixels, in place of CoreMedia's structure.
public struct CMVideoDimensions: Hashable, Sendable {
  /// The width.
  public var width: Int32
  /// The height.
  public var height: Int32
}

/// The description of a video format, in place of CoreMedia's class.
public struct CMFormatDescription: Hashable, Sendable {
  let dimensions: CMVideoDimensions
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The size of the frames of a video format.
public func CMVideoFormatDescriptionGetDimensions(
  _ description: CMFormatDescription
) -> CMVideoDimensions { description.dimensions }

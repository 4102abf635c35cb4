import AudioSession
public import Foundation
package import Media

/// Recorded audio or an image; replaces CoreMedia's class.
public final class CMSampleBuffer: Sendable {
  /// The audio samples; nil for an image.
  let chunk: PCMChunk?
  /// The image's pixels; nil for audio.
  let imageBuffer: CVPixelBuffer?
  let presentationTimeNs: Int64

  /// The image as a video frame; nil for audio, and for bytes that do not match their size.
  package var videoFrame: VideoFrame? {
    imageBuffer?.native.flatMap {
      try? VideoFrame(buffer: $0, timestampNanoseconds: presentationTimeNs)
    }
  }

  /// Creates a buffer of interleaved 16-bit samples.
  /// - Parameter presentationTimeNs: when the first sample was recorded, by its source's clock.
  public init(
    samples: [Int16], sampleRate: Int, channels: Int = 1, presentationTimeNs: Int64 = 0
  ) {
    chunk = PCMChunk(
      samples: samples, sampleRate: sampleRate, channels: channels,
      captureTimeNanoseconds: presentationTimeNs)
    imageBuffer = nil
    self.presentationTimeNs = presentationTimeNs
  }

  /// Creates a buffer with an image.
  /// - Parameter presentationTimeNs: when the image was captured, by its source's clock.
  public init(imageBuffer: CVPixelBuffer, presentationTimeNs: Int64) {
    chunk = nil
    self.imageBuffer = imageBuffer
    self.presentationTimeNs = presentationTimeNs
  }
}

/// A time; replaces CoreMedia's structure.
public struct CMTime: Hashable, Sendable {
  /// The time in units of the timescale.
  public var value: Int64
  /// The number of units per second.
  public var timescale: Int32

  /// Creates a time of `value` units, with `timescale` units per second.
  public init(value: Int64, timescale: Int32) {
    self.value = value
    self.timescale = timescale
  }

  /// The time in seconds; 0 for a timescale of 0.
  public var seconds: Double { timescale == 0 ? 0 : Double(value) / Double(timescale) }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Returns a time in seconds.
public func CMTimeGetSeconds(_ time: CMTime) -> Double { time.seconds }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Returns a buffer's image; nil for audio.
public func CMSampleBufferGetImageBuffer(_ sampleBuffer: CMSampleBuffer) -> CVPixelBuffer? {
  sampleBuffer.imageBuffer
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Returns the time at which a buffer was captured.
public func CMSampleBufferGetPresentationTimeStamp(_ sampleBuffer: CMSampleBuffer) -> CMTime {
  CMTime(value: sampleBuffer.presentationTimeNs, timescale: 1_000_000_000)
}

// MARK: - CVPixelBuffer

// Replacements for CoreVideo and CoreMedia types that appear in signatures.

/// A four-character code.
public typealias OSType = UInt32

// swift-format-ignore: AlwaysUseLowerCamelCase
/// NV12 with luma values from 16 to 235: `420v`.
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

/// Pixels in memory; replaces CoreVideo's class.
public final class CVPixelBuffer: Sendable {
  let width: Int
  let height: Int
  let pixelFormat: OSType
  let bytes: [UInt8]

  /// Creates a buffer of contiguous planes without row padding; a buffer whose bytes do not match
  /// its size and format is rendered black.
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
/// Returns the width in pixels.
public func CVPixelBufferGetWidth(_ pixelBuffer: CVPixelBuffer) -> Int { pixelBuffer.width }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Returns the height in pixels.
public func CVPixelBufferGetHeight(_ pixelBuffer: CVPixelBuffer) -> Int { pixelBuffer.height }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Returns the pixel format.
public func CVPixelBufferGetPixelFormatType(_ pixelBuffer: CVPixelBuffer) -> OSType {
  pixelBuffer.pixelFormat
}

/// A size in pixels; replaces CoreMedia's structure.
public struct CMVideoDimensions: Hashable, Sendable {
  /// The width in pixels.
  public var width: Int32
  /// The height in pixels.
  public var height: Int32
}

/// A video format's description; replaces CoreMedia's class.
public struct CMFormatDescription: Hashable, Sendable {
  let dimensions: CMVideoDimensions
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Returns a video format's frame size.
public func CMVideoFormatDescriptionGetDimensions(
  _ description: CMFormatDescription
) -> CMVideoDimensions { description.dimensions }

/// A broadcast buffer's content, numbered as in ReplayKit.
public enum RPSampleBufferType: Int, Sendable {
  /// An image from the screen.
  case video = 1
  /// Audio from applications.
  case audioApp
  /// Audio from the microphone.
  case audioMic
}

/// Receives a screen broadcast's buffers; replaces ReplayKit's class.
///
/// The program that captures the screen passes the buffers to a subclass.
open class RPBroadcastSampleHandler {
  /// Called when the handler ends the broadcast itself, with the reason that the system displays.
  public var onFinish: ((any Error) -> Void)?

  /// Creates a handler without an `onFinish` closure.
  public init() {}

  /// Called when the broadcast has started.
  open func broadcastStarted(withSetupInfo setupInfo: [String: NSObject]?) {}
  /// Called when the broadcast has paused: no buffers follow.
  open func broadcastPaused() {}
  /// Called when the broadcast has resumed.
  open func broadcastResumed() {}
  /// Called when the user has ended the broadcast.
  open func broadcastFinished() {}
  /// Handles a buffer with an image or audio; does nothing unless overridden.
  open func processSampleBuffer(
    _ sampleBuffer: CMSampleBuffer, with sampleBufferType: RPSampleBufferType
  ) {}

  /// Ends the broadcast with an error whose description is displayed to the user.
  public final func finishBroadcastWithError(_ error: any Error) { onFinish?(error) }
}

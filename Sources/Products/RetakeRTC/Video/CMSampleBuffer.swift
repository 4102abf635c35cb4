import AudioSession
public import Foundation
package import Media

/// Recorded audio or an image, in place of CoreMedia's class.
public final class CMSampleBuffer: Sendable {
  /// The audio; nil for an image.
  let chunk: PCMChunk?
  /// The image; nil for audio.
  let imageBuffer: CVPixelBuffer?
  let presentationTimeNs: Int64

  /// The image as a video frame; nil for audio, and for bytes that do not match their size.
  package var videoFrame: VideoFrame? {
    imageBuffer?.native.flatMap {
      try? VideoFrame(buffer: $0, timestampNanoseconds: presentationTimeNs)
    }
  }

  /// Creates a buffer of interleaved 16-bit samples.
  /// - Parameter presentationTimeNs: when the first sample was recorded, by the clock of its
  ///   source.
  public init(
    samples: [Int16], sampleRate: Int, channels: Int = 1, presentationTimeNs: Int64 = 0
  ) {
    chunk = PCMChunk(
      samples: samples, sampleRate: sampleRate, channels: channels,
      captureTimeNanoseconds: presentationTimeNs)
    imageBuffer = nil
    self.presentationTimeNs = presentationTimeNs
  }

  /// Creates a buffer of an image.
  /// - Parameter presentationTimeNs: when it was captured, by the clock of its source.
  public init(imageBuffer: CVPixelBuffer, presentationTimeNs: Int64) {
    chunk = nil
    self.imageBuffer = imageBuffer
    self.presentationTimeNs = presentationTimeNs
  }
}

/// A time, in place of CoreMedia's structure.
public struct CMTime: Hashable, Sendable {
  /// The time in units of the timescale.
  public var value: Int64
  /// The number of units per second.
  public var timescale: Int32

  /// Creates a time.
  public init(value: Int64, timescale: Int32) {
    self.value = value
    self.timescale = timescale
  }

  /// The time in seconds; 0 for a timescale of 0.
  public var seconds: Double { timescale == 0 ? 0 : Double(value) / Double(timescale) }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// A time in seconds.
public func CMTimeGetSeconds(_ time: CMTime) -> Double { time.seconds }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The image of a buffer; nil for audio.
public func CMSampleBufferGetImageBuffer(_ sampleBuffer: CMSampleBuffer) -> CVPixelBuffer? {
  sampleBuffer.imageBuffer
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The time when a buffer was captured.
public func CMSampleBufferGetPresentationTimeStamp(_ sampleBuffer: CMSampleBuffer) -> CMTime {
  CMTime(value: sampleBuffer.presentationTimeNs, timescale: 1_000_000_000)
}

// MARK: - CVPixelBuffer

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

/// The content of a broadcast buffer, numbered as in ReplayKit.
public enum RPSampleBufferType: Int, Sendable {
  /// An image of the screen.
  case video = 1
  /// Audio of the applications.
  case audioApp
  /// Audio of the microphone.
  case audioMic
}

/// Receives the buffers of a screen broadcast, in place of ReplayKit's class: a subclass gets them
/// from whatever captures on this system.
open class RPBroadcastSampleHandler {
  /// Called when the handler ends the broadcast by itself, with the reason that the system
  /// displays.
  public var onFinish: ((any Error) -> Void)?

  /// Creates a handler.
  public init() {}

  /// The broadcast started.
  open func broadcastStarted(withSetupInfo setupInfo: [String: NSObject]?) {}
  /// The broadcast paused: no buffers follow.
  open func broadcastPaused() {}
  /// The broadcast resumed.
  open func broadcastResumed() {}
  /// The user ended the broadcast.
  open func broadcastFinished() {}
  /// Handles a buffer.
  open func processSampleBuffer(
    _ sampleBuffer: CMSampleBuffer, with sampleBufferType: RPSampleBufferType
  ) {}

  /// Ends the broadcast with a reason for its user: an error whose description is displayed.
  public final func finishBroadcastWithError(_ error: any Error) { onFinish?(error) }
}

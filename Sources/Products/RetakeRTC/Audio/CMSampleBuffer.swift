import AudioSession
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

import AudioSession
package import Media

/// Recorded audio or a picture, in the place of the class of CoreMedia.
public final class CMSampleBuffer: Sendable {
  /// The audio; nil for a picture.
  let chunk: PCMChunk?
  /// The picture; nil for audio.
  let imageBuffer: CVPixelBuffer?
  let presentationTimeNs: Int64

  /// The picture as senders take it; nil for audio, and for bytes that do not fit their size.
  package var videoFrame: VideoFrame? {
    imageBuffer?.native.flatMap {
      try? VideoFrame(buffer: $0, timestampNanoseconds: presentationTimeNs)
    }
  }

  /// Creates a buffer of samples of 16 bits, those of the channels of a frame side by side.
  ///
  /// - Parameter presentationTimeNs: when the first one was recorded, by the clock of its source.
  public init(
    samples: [Int16], sampleRate: Int, channels: Int = 1, presentationTimeNs: Int64 = 0
  ) {
    chunk = PCMChunk(
      samples: samples, sampleRate: sampleRate, channels: channels,
      captureTimeNanoseconds: presentationTimeNs)
    imageBuffer = nil
    self.presentationTimeNs = presentationTimeNs
  }

  /// Creates a buffer of a picture.
  ///
  /// - Parameter presentationTimeNs: when it was taken, by the clock of its source.
  public init(imageBuffer: CVPixelBuffer, presentationTimeNs: Int64) {
    chunk = nil
    self.imageBuffer = imageBuffer
    self.presentationTimeNs = presentationTimeNs
  }
}

/// A time, in the place of the structure of CoreMedia.
public struct CMTime: Hashable, Sendable {
  /// The time in units.
  public var value: Int64
  /// How many units a second has.
  public var timescale: Int32

  /// Creates a time.
  public init(value: Int64, timescale: Int32) {
    self.value = value
    self.timescale = timescale
  }

  /// The time in seconds; 0 without a scale.
  public var seconds: Double { timescale == 0 ? 0 : Double(value) / Double(timescale) }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// A time in seconds.
public func CMTimeGetSeconds(_ time: CMTime) -> Double { time.seconds }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The picture of a buffer; nil for audio.
public func CMSampleBufferGetImageBuffer(_ sampleBuffer: CMSampleBuffer) -> CVPixelBuffer? {
  sampleBuffer.imageBuffer
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// When a buffer was taken.
public func CMSampleBufferGetPresentationTimeStamp(_ sampleBuffer: CMSampleBuffer) -> CMTime {
  CMTime(value: sampleBuffer.presentationTimeNs, timescale: 1_000_000_000)
}

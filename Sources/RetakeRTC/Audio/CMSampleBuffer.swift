import AudioSession

/// Recorded audio, in the place of the class of CoreMedia.
public final class CMSampleBuffer: Sendable {
  let chunk: PCMChunk

  /// Creates a buffer of samples of 16 bits, those of the channels of a frame side by side.
  ///
  /// - Parameter presentationTimeNs: when the first one was recorded, by the clock of its source.
  public init(
    samples: [Int16], sampleRate: Int, channels: Int = 1, presentationTimeNs: Int64 = 0
  ) {
    chunk = PCMChunk(
      samples: samples, sampleRate: sampleRate, channels: channels,
      captureTimeNanoseconds: presentationTimeNs)
  }
}

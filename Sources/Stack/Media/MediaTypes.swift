/// A video frame in I420: the Y plane, then U, then V, each without padding between rows.
public final class I420Buffer: Sendable {
  /// The width in pixels; chroma planes have half of it, rounded up.
  public let width: Int
  /// The height in pixels; chroma planes have half of it, rounded up.
  public let height: Int
  /// The samples, or nothing when a replay skips the codecs.
  public let samples: [UInt8]

  /// Creates a video frame; samples that do not fit the size make it blank.
  public init(width: Int, height: Int, samples: [UInt8]) {
    self.width = width
    self.height = height
    self.samples =
      samples.count == I420Buffer.byteCount(width: width, height: height) ? samples : []
  }

  /// How many bytes an I420 video frame of a size has.
  public static func byteCount(width: Int, height: Int) -> Int {
    width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2)
  }
}

/// A block of audio: 16-bit samples at 48 kHz, channels interleaved.
public struct AudioBlock: Hashable, Sendable {
  /// The samples, or nothing when a replay skips the codecs.
  public var samples: [Int16]
  /// 1 or 2.
  public var channels: Int
  /// How many samples each channel has, also when `samples` is empty.
  public var frameCount: Int

  /// The sampling rate of every block.
  public static let sampleRate = 48_000

  /// Creates a block from its samples.
  public init(samples: [Int16], channels: Int) {
    self.samples = samples
    self.channels = max(1, channels)
    frameCount = samples.count / max(1, channels)
  }

  /// Creates a block that has a length but no content.
  public init(blank frameCount: Int, channels: Int) {
    samples = []
    self.channels = channels
    self.frameCount = frameCount
  }
}

/// A video frame as received, of a codec that is not decoded here.
public struct EncodedVideoChunk: Hashable, Sendable {
  /// The codec by its encoding name in lower case: `h264`.
  public var codec: String
  /// Whether a decoder can begin here.
  public var isKey: Bool
  /// The encoded bytes, as files of the codec have them: of H.264 a byte stream with start codes
  /// (H.264 annex B).
  public var bytes: [UInt8]

  /// Creates a video frame.
  public init(codec: String, isKey: Bool, bytes: [UInt8]) {
    self.codec = codec
    self.isKey = isKey
    self.bytes = bytes
  }
}

/// A block of audio or a video frame, as applications send and receive it.
public enum MediaContent: Sendable {
  /// 20 ms of audio; received blocks follow each other without gaps.
  case audio(AudioBlock)
  /// A video frame, of a received one at the time to show it.
  case videoFrame(I420Buffer)
  /// A video frame of a codec that is not decoded here, of a received one at the time to show it.
  case encodedVideo(EncodedVideoChunk)
}

/// Where the media of a sender comes from.
public enum MediaSource: Hashable, Sendable, Codable {
  /// A sine tone, made inside the stack; it pauses for a second in every `pauseSeconds` when that
  /// is not 0.
  case tone(hertz: Int, pauseSeconds: Int)
  /// A moving test pattern with a frame counter, made inside the stack.
  case pattern(width: Int, height: Int, framesPerSecond: Int)
  /// What the application hands in; each block or video frame becomes a recorded input.
  case application
  /// What the same transceiver receives.
  case echo
}

import DequeModule

/// A video frame in I420: the Y plane, then U, then V, each without padding between rows.
public final class I420Buffer: Sendable {
  /// The width in pixels; chroma planes have half the width, rounded up.
  public let width: Int
  /// The height in pixels; chroma planes have half the height, rounded up.
  public let height: Int
  /// The samples; empty if a replay skips the codecs.
  public let samples: [UInt8]

  /// Creates a frame, which is blank if the samples do not fit the size.
  public init(width: Int, height: Int, samples: [UInt8]) {
    self.width = width
    self.height = height
    self.samples =
      samples.count == I420Buffer.byteCount(width: width, height: height) ? samples : []
  }

  /// Returns the number of bytes in an I420 frame; chroma sides are rounded up.
  public static func byteCount(width: Int, height: Int) -> Int {
    width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2)
  }
}

/// A block of audio: 16-bit samples at 48 kHz, channels interleaved.
public struct AudioBlock: Hashable, Sendable {
  /// The samples; empty if a replay skips the codecs.
  public var samples: [Int16]
  /// The number of channels, 1 or 2.
  public var channels: Int
  /// Samples per channel, even if `samples` is empty.
  public var frameCount: Int

  /// The sampling rate of all blocks, in Hz.
  public static let sampleRate = 48_000

  /// Creates a block from samples, with the channels interleaved.
  public init(samples: [Int16], channels: Int) {
    self.samples = samples
    self.channels = max(1, channels)
    frameCount = samples.count / max(1, channels)
  }

  /// Creates a block with a length but no samples.
  public init(blank frameCount: Int, channels: Int) {
    samples = []
    self.channels = channels
    self.frameCount = frameCount
  }
}

/// An encoded video frame: received in a codec that is not decoded here, or sent unchanged.
public struct EncodedVideoChunk: Hashable, Sendable {
  /// The codec's encoding name in lower case: `h264`.
  public var codec: String
  /// Whether a decoder can start with the frame.
  public var isKey: Bool
  /// The encoded bytes in the codec's file format: for H.264 a byte stream with start codes (H.264
  /// annex B).
  public var bytes: [UInt8]

  /// Creates a chunk from a frame that is already encoded; the bytes are not checked.
  public init(codec: String, isKey: Bool, bytes: [UInt8]) {
    self.codec = codec
    self.isKey = isKey
    self.bytes = bytes
  }
}

/// A block of audio or a video frame, as applications send and receive it.
public enum MediaContent: Sendable {
  /// Audio of any length; received blocks are contiguous and as long as their packets.
  case audio(AudioBlock)
  /// A video frame; a received frame arrives at its display time.
  case videoFrame(I420Buffer)
  /// An encoded video frame; a received frame arrives at its display time.
  case encodedVideo(EncodedVideoChunk)
}

/// Where a sender's media comes from.
public enum MediaSource: Hashable, Sendable, Codable {
  /// A sine tone generated in the stack; unless `pauseSeconds` is 0, the last of every
  /// `pauseSeconds` seconds is silent.
  case tone(hertz: Int, pauseSeconds: Int)
  /// A moving test pattern with a frame counter, generated in the stack.
  case pattern(width: Int, height: Int, framesPerSecond: Int)
  /// Audio or video from the application; each block or frame is a recorded input.
  case application
  /// The media that the same transceiver receives.
  case echo
}

/// Counts the frames in the last second, on any clock.
package struct FrameRate: Hashable, Sendable {
  /// The maximum number of frames stored; a higher frame rate is reported as this number.
  private static let capacity = 256

  private let ticksPerSecond: Int64
  /// The last frames' times, oldest first.
  private var times = Deque<Int64>()

  /// Creates a counter; the clock rate is in Hz.
  package init(ticksPerSecond: Int64) { self.ticksPerSecond = ticksPerSecond }

  /// Records a frame, which must not be earlier than the last one.
  package mutating func record(_ time: Int64) {
    if times.count == FrameRate.capacity { times.removeFirst() }
    times.append(time)
  }

  /// Returns the number of frames in the second that ends at a time.
  package func count(at time: Int64) -> Int {
    var count = 0
    for noted in times.reversed() {
      guard time - noted < ticksPerSecond else { break }
      count += 1
    }
    return count
  }
}

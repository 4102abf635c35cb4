public import Media
import RTP

/// Video frames out of an H.264 byte stream, as they are encoded, over and over when wanted.
public struct H264FileSource: TimedMedia {
  private var file: RepeatedFile<H264Reader>
  private var count: Int64 = 0

  /// How many video frames a second has.
  public let framesPerSecond: Double
  /// The parameter `profile-level-id` of SDP that the video frames call for (RFC 6184 section 8.1).
  public let profileLevelID: String
  /// The size of the first video frames in pixels.
  public let width: Int
  /// The size of the first video frames in pixels.
  public let height: Int

  /// Up to how many video frames are looked at before any is sent.
  private static let previewMaximum = 64

  /// Opens a file and reads its first video frames, so that a file that cannot be sent is refused
  /// at once.
  ///
  /// - Parameter framesPerSecond: the pace; nil takes that of the file, or 30 where it tells none.
  public init(path: String, loops: Bool, framesPerSecond: Double? = nil) throws(MediaFileError) {
    file = try RepeatedFile(path: path, loops: loops)
    while file.count < H264FileSource.previewMaximum, try file.nextOnce() != nil {}
    guard let parameters = file.reader.parameters else { throw file.emptiness }
    profileLevelID = parameters.profileLevelIDText
    (width, height) = (parameters.width, parameters.height)
    let told = parameters.timing.map {
      Double($0.ticksPerSecond) / (2 * Double($0.ticksPerField))
    }
    // A file may claim any rate.
    let rate = framesPerSecond ?? told ?? 30
    self.framesPerSecond = (0.1...1000).contains(rate) ? rate : 30
    try file.restart()
  }

  /// The next video frame and its time.
  public mutating func next() throws(MediaFileError) -> (
    media: MediaContent, nanoseconds: Int64
  )? {
    guard let videoFrame = try file.next() else { return nil }
    let seconds = Double(count) / framesPerSecond
    count += 1
    return (content(videoFrame), Int64(min(seconds * 1e9, 9e18)))
  }

  /// The next key frame of the file, with which it continues; the pace stays.
  public mutating func nextKeyFrame() throws(MediaFileError) -> MediaContent? {
    while let videoFrame = try file.next() {
      if videoFrame.isKey { return content(videoFrame) }
    }
    return nil
  }

  private func content(_ videoFrame: H264AccessUnit) -> MediaContent {
    .encodedVideo(
      EncodedVideoChunk(
        codec: CodecName.h264.rawValue, isKey: videoFrame.isKey, bytes: videoFrame.bytes))
  }
}

extension H264Reader: PieceReader {
  typealias Fault = H264Error

  static var emptiness: String {
    "the file holds no key frame of H.264 with its parameters: encode it anew, with an IDR"
      + " picture and its parameter sets in front"
  }

  func place(of fault: H264Error, after count: Int) -> (videoFrame: Int?, byteOffset: Int?) {
    // Nothing of what was read is of use before the reader knows it for a stream.
    fault == .noByteStream ? (nil, nil) : (count + 1, unitPosition)
  }
}

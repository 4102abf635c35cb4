public import Media

/// Video frames out of a YUV4MPEG2 file, over and over when wanted.
public struct Y4MFileSource: TimedMedia {
  private var file: RepeatedFile<Y4MReader>
  private let secondsPerFrame: Double
  private var count: Int64 = 0

  /// The size of the video frames.
  public let width: Int
  /// The size of the video frames.
  public let height: Int
  /// How many video frames a second has.
  public var framesPerSecond: Double { 1 / secondsPerFrame }

  /// Opens a file and reads its first video frame, so that a file without any is refused at once.
  public init(path: String, loops: Bool) throws(MediaFileError) {
    file = try RepeatedFile(path: path, loops: loops)
    guard let header = file.reader.header else { throw file.emptiness }
    width = header.width
    height = header.height
    let isKnown = header.rateNumerator > 0 && header.rateDenominator > 0
    let seconds = Double(header.rateDenominator) / Double(header.rateNumerator)
    // A file may claim any rate; a thousand video frames per second is more than any screen shows.
    secondsPerFrame = max(isKnown ? seconds : 1 / 30, 0.001)
  }

  /// The next video frame and its time.
  public mutating func next() throws(MediaFileError) -> (
    media: MediaContent, nanoseconds: Int64
  )? {
    guard let videoFrame = try file.next() else { return nil }
    let seconds = Double(count) * secondsPerFrame
    count += 1
    return (.videoFrame(videoFrame), Int64(min(seconds * 1e9, 9e18)))
  }
}

extension Y4MReader: PieceReader {
  typealias Fault = Y4MError

  static var emptiness: String { "the file holds no video frame: convert it anew" }

  func place(of fault: Y4MError, after count: Int) -> (videoFrame: Int?, byteOffset: Int?) {
    // A header that cannot be read has no video frame yet.
    header == nil ? (nil, nil) : (count + 1, partPosition)
  }
}

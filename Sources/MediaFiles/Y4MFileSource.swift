public import Media

/// Pictures out of a YUV4MPEG2 file, over and over when wanted.
public struct Y4MFileSource: TimedMedia {
  private var file: RepeatedFile<Y4MReader>
  private let secondsPerPicture: Double
  private var count: Int64 = 0

  /// The size of the pictures.
  public let width: Int
  /// The size of the pictures.
  public let height: Int
  /// How many pictures a second has.
  public var framesPerSecond: Double { 1 / secondsPerPicture }

  /// Opens a file and reads its first picture, so that a file without any is refused at once.
  public init(path: String, loops: Bool) throws(MediaFileError) {
    file = try RepeatedFile(path: path, loops: loops)
    guard let header = file.reader.header else { throw file.emptiness }
    width = header.width
    height = header.height
    let isKnown = header.rateNumerator > 0 && header.rateDenominator > 0
    let seconds = Double(header.rateDenominator) / Double(header.rateNumerator)
    // A file may claim any rate; a thousand pictures per second is more than any screen shows.
    secondsPerPicture = max(isKnown ? seconds : 1 / 30, 0.001)
  }

  /// The next picture and its time.
  public mutating func next() throws(MediaFileError) -> (
    media: MediaContent, nanoseconds: Int64
  )? {
    guard let picture = try file.next() else { return nil }
    let seconds = Double(count) * secondsPerPicture
    count += 1
    return (.picture(picture), Int64(min(seconds * 1e9, 9e18)))
  }
}

extension Y4MReader: PieceReader {
  typealias Fault = Y4MError

  static var emptiness: String { "the file holds no picture: convert it anew" }

  func place(of fault: Y4MError, after count: Int) -> (picture: Int?, byteOffset: Int?) {
    // A header that cannot be read has no picture yet.
    header == nil ? (nil, nil) : (count + 1, partPosition)
  }
}

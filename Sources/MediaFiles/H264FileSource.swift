public import Media
import RTP
import Wire

/// Pictures out of an H.264 byte stream, as they are encoded, over and over when wanted.
public struct H264FileSource: TimedMedia {
  private let file: MediaFile
  private let loops: Bool
  private var reader = H264Reader()
  private var isAtEnd = false
  private var firstPicture: H264Picture?
  private var count: Int64 = 0

  /// How many pictures a second has.
  public let framesPerSecond: Double
  /// The parameter `profile-level-id` of SDP that the pictures call for (RFC 6184 section 8.1).
  public let profileLevelID: String

  /// Up to how many pictures are looked at before any is sent.
  private static let previewMaximum = 64

  /// Opens a file and reads its first pictures, so that a file that cannot be sent is refused at
  /// once.
  ///
  /// - Parameter framesPerSecond: the pace; nil takes that of the file, or 30 where it tells none.
  public init(path: String, loops: Bool, framesPerSecond: Double? = nil) throws(MediaFileError) {
    file = try MediaFile(path, for: .reading)
    self.loops = loops
    var count = 0
    while count < H264FileSource.previewMaximum,
      try H264FileSource.read(&reader, file, &isAtEnd) != nil
    {
      count += 1
    }
    guard count > 0, let parameters = reader.parameters else {
      throw MediaFileError(
        path: path, reason: "the file holds no key picture of H.264 with its parameters")
    }
    profileLevelID = parameters.profileLevelIDText
    let told = parameters.timing.map {
      Double($0.ticksPerSecond) / (2 * Double($0.ticksPerField))
    }
    // A file may claim any rate.
    let rate = framesPerSecond ?? told ?? 30
    self.framesPerSecond = (0.1...1000).contains(rate) ? rate : 30
    try rewind()
    firstPicture = try H264FileSource.read(&reader, file, &isAtEnd)
  }

  /// The next picture and its time.
  public mutating func next() throws(MediaFileError) -> (
    media: MediaContent, nanoseconds: Int64
  )? {
    guard let picture = try nextPicture() else { return nil }
    let seconds = Double(count) / framesPerSecond
    count += 1
    return (content(picture), Int64(min(seconds * 1e9, 9e18)))
  }

  /// The next key picture of the file, with which it goes on; the pace stays.
  public mutating func nextKeyPicture() throws(MediaFileError) -> MediaContent? {
    while let picture = try nextPicture() {
      if picture.isKey { return content(picture) }
    }
    return nil
  }

  private func content(_ picture: H264Picture) -> MediaContent {
    .encodedPicture(
      EncodedPicture(codec: CodecName.h264.rawValue, isKey: picture.isKey, bytes: picture.bytes))
  }

  private mutating func nextPicture() throws(MediaFileError) -> H264Picture? {
    if let picture = firstPicture.take() { return picture }
    if let picture = try H264FileSource.read(&reader, file, &isAtEnd) { return picture }
    guard loops else { return nil }
    try rewind()
    return try H264FileSource.read(&reader, file, &isAtEnd)
  }

  private mutating func rewind() throws(MediaFileError) {
    try file.rewind()
    reader = H264Reader()
    isAtEnd = false
  }

  private static func read(_ reader: inout H264Reader, _ file: MediaFile, _ isAtEnd: inout Bool)
    throws(MediaFileError) -> H264Picture?
  {
    while true {
      do throws(H264Error) {
        if let picture = try reader.next() { return picture }
      } catch {
        throw MediaFileError(path: file.path, reason: error.description)
      }
      guard !isAtEnd else { return nil }
      if let piece = try file.read() {
        reader.append(piece.span.bytes)
      } else {
        isAtEnd = true
        reader.finish()
      }
    }
  }
}

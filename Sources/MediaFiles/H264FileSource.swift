public import Media
import RTP
import Wire

/// Pictures out of an H.264 byte stream, as they are encoded, over and over when wanted.
public struct H264FileSource: TimedMedia {
  private var file: PictureFile
  private let loops: Bool
  private var firstPicture: H264Picture?
  private var count: Int64 = 0

  /// How many pictures a second has.
  public let framesPerSecond: Double
  /// The parameter `profile-level-id` of SDP that the pictures call for (RFC 6184 section 8.1).
  public let profileLevelID: String
  /// The size of the first pictures in pixels.
  public let width: Int
  /// The size of the first pictures in pixels.
  public let height: Int

  /// Up to how many pictures are looked at before any is sent.
  private static let previewMaximum = 64

  /// Opens a file and reads its first pictures, so that a file that cannot be sent is refused at
  /// once.
  ///
  /// - Parameter framesPerSecond: the pace; nil takes that of the file, or 30 where it tells none.
  public init(path: String, loops: Bool, framesPerSecond: Double? = nil) throws(MediaFileError) {
    file = PictureFile(try MediaFile(path, for: .reading))
    self.loops = loops
    while file.count < H264FileSource.previewMaximum, try file.next() != nil {}
    guard file.count > 0, let parameters = file.parameters else { throw file.holdsNothing }
    profileLevelID = parameters.profileLevelIDText
    (width, height) = (parameters.width, parameters.height)
    let told = parameters.timing.map {
      Double($0.ticksPerSecond) / (2 * Double($0.ticksPerField))
    }
    // A file may claim any rate.
    let rate = framesPerSecond ?? told ?? 30
    self.framesPerSecond = (0.1...1000).contains(rate) ? rate : 30
    try file.rewind()
    firstPicture = try file.next()
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
    if let picture = try file.next() { return picture }
    guard loops else { return nil }
    try file.rewind()
    guard let picture = try file.next() else { throw file.holdsNothing }
    return picture
  }
}

/// A file of H.264 with its reader, which starts anew with each rewind.
private struct PictureFile {
  private let file: MediaFile
  private var reader = H264Reader()
  private var isAtEnd = false
  /// How many pictures were read since the beginning.
  private(set) var count = 0

  init(_ file: MediaFile) { self.file = file }

  /// The sequence parameter set that came last.
  var parameters: H264SequenceParameters? { reader.parameters }

  /// What to say of a file in which there is no picture to begin with.
  var holdsNothing: MediaFileError {
    MediaFileError(
      path: file.path,
      reason: "the file holds no key picture of H.264 with its parameters: encode it anew, with an"
        + " IDR picture and its parameter sets in front")
  }

  /// The next picture; nil at the end of the file.
  mutating func next() throws(MediaFileError) -> H264Picture? {
    while true {
      do throws(H264Error) {
        if let picture = try reader.next() {
          count += 1
          return picture
        }
      } catch {
        // Nothing of what was read is of use before the reader knows it for a stream.
        let isStream = error != .noByteStream
        throw MediaFileError(
          path: file.path, reason: error.description, picture: isStream ? count + 1 : nil,
          byteOffset: isStream ? reader.unitPosition : nil)
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

  /// Goes back to the beginning.
  mutating func rewind() throws(MediaFileError) {
    try file.rewind()
    reader = H264Reader()
    isAtEnd = false
    count = 0
  }
}

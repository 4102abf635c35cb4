public import Media
import Wire

/// Media in the order of time, ready to be sent.
public protocol TimedMedia: SendableMetatype {
  /// The next picture or block and its time in nanoseconds from the first one; nil at the end.
  mutating func next() throws(MediaFileError) -> (media: MediaContent, nanoseconds: Int64)?
  /// The next picture that a decoder can begin with, to be sent in the place of the one that `next`
  /// gave last; nil when there is none, or when any will do.
  mutating func nextKeyPicture() throws(MediaFileError) -> MediaContent?
}

extension TimedMedia {
  /// Nil: what is encoded only when it is sent can become a key frame then.
  public mutating func nextKeyPicture() -> MediaContent? { nil }
}

/// Pictures out of a YUV4MPEG2 file, over and over when wanted.
public struct Y4MFileSource: TimedMedia {
  private let file: MediaFile
  private let loops: Bool
  private var reader = Y4MReader()
  private var firstPicture: Picture?
  private var count: Int64 = 0

  /// The size of the pictures.
  public let width: Int
  /// The size of the pictures.
  public let height: Int
  private let rateNumerator: Double
  private let rateDenominator: Double

  /// Opens a file and reads its first picture, so that a file without any is refused at once.
  public init(path: String, loops: Bool) throws(MediaFileError) {
    file = try MediaFile(path, for: .reading)
    self.loops = loops
    firstPicture = try Y4MFileSource.read(&reader, file)
    guard let header = reader.header, firstPicture != nil else {
      throw MediaFileError(path: path, reason: "the file holds no picture: convert it anew")
    }
    width = header.width
    height = header.height
    let isKnown = header.rateNumerator > 0 && header.rateDenominator > 0
    rateNumerator = isKnown ? Double(header.rateNumerator) : 30
    rateDenominator = isKnown ? Double(header.rateDenominator) : 1
  }

  /// The next picture and its time.
  public mutating func next() throws(MediaFileError) -> (
    media: MediaContent, nanoseconds: Int64
  )? {
    var picture = firstPicture.take()
    if picture == nil { picture = try Y4MFileSource.read(&reader, file) }
    if picture == nil, loops {
      try file.rewind()
      reader = Y4MReader()
      picture = try Y4MFileSource.read(&reader, file)
      if picture == nil {
        throw MediaFileError(
          path: file.path, reason: "the file holds no picture any longer: leave it as it is")
      }
    }
    guard let picture else { return nil }
    // A file may claim any rate; a thousand pictures per second is more than any screen shows.
    let seconds = Double(count) * max(rateDenominator / rateNumerator, 0.001)
    count += 1
    return (.picture(picture), Int64(min(seconds * 1e9, 9e18)))
  }

  private static func read(_ reader: inout Y4MReader, _ file: MediaFile) throws(MediaFileError)
    -> Picture?
  {
    while true {
      let picture = try parse(&reader, file) { (reader) throws(Y4MError) in try reader.next() }
      if let picture { return picture }
      guard let piece = try file.read() else { break }
      reader.append(piece.span.bytes)
    }
    return try parse(&reader, file) { (reader) throws(Y4MError) in
      try reader.finish()
      return nil
    }
  }

  /// Does something with the reader, whose errors become those of the file.
  private static func parse(
    _ reader: inout Y4MReader, _ file: MediaFile,
    _ body: (inout Y4MReader) throws(Y4MError) -> Picture?
  ) throws(MediaFileError) -> Picture? {
    do throws(Y4MError) {
      return try body(&reader)
    } catch {
      // A header that cannot be read has no picture yet.
      let isPicture = reader.header != nil
      throw MediaFileError(
        path: file.path, reason: error.description,
        picture: isPicture ? reader.frameCount + 1 : nil,
        byteOffset: isPicture ? reader.partPosition : nil)
    }
  }
}

/// Sound out of a WAV file in blocks of 20 ms at 48 kHz, over and over when wanted.
public struct WAVFileSource: TimedMedia {
  private let file: MediaFile
  private let loops: Bool
  private var reader = WAVReader()
  private var isAtEnd = false
  private var frameCount: Int64 = 0
  private var firstBlock: AudioBlock?

  /// Opens a file and reads its first block, so that a file without sound is refused at once.
  public init(path: String, loops: Bool) throws(MediaFileError) {
    file = try MediaFile(path, for: .reading)
    self.loops = loops
    firstBlock = try WAVFileSource.read(&reader, &isAtEnd, file)
    guard firstBlock != nil else {
      throw MediaFileError(path: path, reason: "the file holds no sound: record it anew")
    }
  }

  /// The next block and its time.
  public mutating func next() throws(MediaFileError) -> (
    media: MediaContent, nanoseconds: Int64
  )? {
    var block = firstBlock.take()
    if block == nil { block = try WAVFileSource.read(&reader, &isAtEnd, file) }
    if block == nil, loops {
      try file.rewind()
      reader = WAVReader()
      isAtEnd = false
      block = try WAVFileSource.read(&reader, &isAtEnd, file)
      if block == nil {
        throw MediaFileError(
          path: file.path, reason: "the file holds no sound any longer: leave it as it is")
      }
    }
    guard let block else { return nil }
    defer { frameCount += Int64(block.frameCount) }
    return (.audio(block), frameCount * 1_000_000 / (Int64(AudioBlock.sampleRate) / 1_000))
  }

  private static func read(_ reader: inout WAVReader, _ isAtEnd: inout Bool, _ file: MediaFile)
    throws(MediaFileError) -> AudioBlock?
  {
    while true {
      if let block = reader.next() { return block }
      guard !isAtEnd else { return reader.rest() }
      let piece = try file.read()
      do throws(WAVError) {
        if let piece {
          try reader.append(piece.span.bytes)
        } else {
          isAtEnd = true
          try reader.finish()
        }
      } catch {
        throw MediaFileError(
          path: file.path, reason: error.description,
          byteOffset: error == .malformedFormat || error == .truncated ? reader.partPosition : nil)
      }
    }
  }
}

public import Media

/// Audio out of a WAV file in blocks of 20 ms at 48 kHz, over and over when wanted.
public struct WAVFileSource: TimedMedia {
  private var file: RepeatedFile<WAVReader>
  private var frameCount: Int64 = 0

  /// Opens a file and reads its first block, so that a file without audio is refused at once.
  public init(path: String, loops: Bool) throws(MediaFileError) {
    file = try RepeatedFile(path: path, loops: loops)
  }

  /// The next block and its time.
  public mutating func next() throws(MediaFileError) -> (
    media: MediaContent, nanoseconds: Int64
  )? {
    guard let block = try file.next() else { return nil }
    defer { frameCount += Int64(block.frameCount) }
    return (.audio(block), frameCount * 1_000_000 / (Int64(AudioBlock.sampleRate) / 1_000))
  }
}

extension WAVReader: PieceReader {
  typealias Fault = WAVError

  static var emptiness: String { "the file holds no audio: record it anew" }

  mutating func next() -> AudioBlock? { next(frameCount: AudioBlock.sampleRate / 50) }

  func place(of fault: WAVError, after count: Int) -> (videoFrame: Int?, byteOffset: Int?) {
    (nil, fault == .malformedFormat || fault == .truncated ? partPosition : nil)
  }
}

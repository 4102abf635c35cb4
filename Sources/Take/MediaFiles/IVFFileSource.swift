public import Media
import RTP

/// Video frames out of an IVF file with VP8 or VP9, decoded, over and over when wanted.
public struct IVFFileSource: TimedMedia {
  private let path: String
  private var file: RepeatedFile<IVFReader>
  private var decoder: any VideoDecoding
  private let codec: CodecName
  private let secondsPerTick: Double
  /// When the present round of the file began, and the times of its last video frame and of the one
  /// before.
  private var roundBegan = 0.0
  private var last: (time: Double, step: Double)?

  /// The size that the file claims.
  public let width: Int
  /// The size that the file claims.
  public let height: Int
  /// How many video frames a second has, by the first two.
  public let framesPerSecond: Double

  /// Opens a file and reads its first video frames, so that one without any is refused at once.
  public init(path: String, loops: Bool) throws(MediaFileError) {
    self.path = path
    file = try RepeatedFile(path: path, loops: loops)
    guard let header = file.reader.header else { throw file.emptiness }
    switch header.fourCC {
    case "VP80": codec = .vp8
    case "VP90": codec = .vp9
    default:
      throw MediaFileError(path: path, reason: IVFError.codec(header.fourCC).description)
    }
    (width, height) = (header.width, header.height)
    secondsPerTick = 1 / min(max(header.ticksPerSecond, 0.001), 1e9)
    decoder = try IVFFileSource.decoder(codec, path)
    let first = try file.nextOnce()
    let second = try file.nextOnce()
    let ticks = (second?.time ?? 0) &- (first?.time ?? 0)
    let step = Double(ticks) * secondsPerTick
    framesPerSecond = (0.001...10).contains(step) ? 1 / step : 30
    try file.restart()
  }

  private static func decoder(_ codec: CodecName, _ path: String) throws(MediaFileError)
    -> any VideoDecoding
  {
    do throws(CodecError) {
      return try LibraryCodecs().videoDecoder(track: "file", codec)
    } catch {
      throw MediaFileError(path: path, reason: error.reason)
    }
  }

  /// The next video frame and its time.
  public mutating func next() throws(MediaFileError) -> (
    media: MediaContent, nanoseconds: Int64
  )? {
    guard let piece = try file.next() else { return nil }
    let step = last?.step ?? 1 / framesPerSecond
    if file.count == 1, let last {
      // The file restarts, after as long a while as between its last video frames.
      roundBegan = last.time + step
      decoder = try IVFFileSource.decoder(codec, path)
    }
    // A file may claim any time; none goes back.
    let time = max(roundBegan + Double(piece.time) * secondsPerTick, last?.time ?? 0)
    last = (time, last.map { min(max(time - $0.time, 0.001), 10) } ?? step)
    do throws(CodecError) {
      let decoded = try decoder.decode(piece.bytes)
      return (.videoFrame(decoded.videoFrame), Int64(min(time * 1e9, 9e18)))
    } catch {
      throw MediaFileError(path: path, reason: error.reason, videoFrame: file.count)
    }
  }
}

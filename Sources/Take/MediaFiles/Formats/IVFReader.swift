public import Media
import RTP
import Wire

/// An error in an IVF file.
package enum IVFError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file does not begin with an IVF header.
  case notIVF
  /// The codec with this FourCC is not supported.
  case codec(String)
  /// A video frame whose stated size is implausibly large.
  case tooLong
  /// The file ends inside a video frame.
  case truncated
  /// The decoder refused a video frame.
  case undecodable(String)

  package var description: String {
    switch self {
    case .notIVF: "it is not an IVF file: convert it"
    case .codec(let name): "its codec \(name) cannot be decoded here: encode it as VP8 or VP9"
    case .tooLong: "a video frame has an impossible length: convert the file again"
    case .truncated: "the file ends in the middle of a video frame: copy or convert it again"
    case .undecodable(let reason): reason
    }
  }
}

/// Reads IVF from pieces of any size: encoded video frames with their times.
struct IVFReader {
  struct Header {
    var fourCC: String
    var width: Int
    var height: Int
    var ticksPerSecond: Double
  }

  struct Frame {
    var bytes: [UInt8]
    /// The frame's time in ticks.
    var time: UInt64
  }

  private(set) var header: Header?
  /// The byte offset of the header or frame being read, which errors state.
  private(set) var partPosition = 0
  private var buffer = PieceBuffer()
  private var frame: (count: Int, time: UInt64)?

  private static let headerLength = 32
  private static let frameHeaderLength = 12
  private static let longestFrame = 64 << 20

  private mutating func readHeader() throws(IVFError) -> Bool {
    guard let bytes = buffer.read(IVFReader.headerLength) else { return false }
    let length = number(bytes, 6, 2)
    guard bytes.starts(with: Array("DKIF".utf8)), length == IVFReader.headerLength else {
      throw .notIVF
    }
    let rate = (number(bytes, 16, 4), number(bytes, 20, 4))
    let fourCC = String(
      decoding: bytes[8..<12].filter { (0x20..<0x7f).contains($0) }, as: UTF8.self)
    header = Header(
      fourCC: fourCC, width: Int(number(bytes, 12, 2)), height: Int(number(bytes, 14, 2)),
      ticksPerSecond: rate.0 > 0 && rate.1 > 0 ? Double(rate.0) / Double(rate.1) : 30)
    return true
  }

  /// Parses a little-endian number of several bytes.
  private func number(_ bytes: [UInt8], _ start: Int, _ count: Int) -> UInt64 {
    (0..<count).reduce(0) { $0 | UInt64(bytes[start + $1]) << UInt64(8 * $1) }
  }
}

extension IVFReader: PieceReader {
  typealias Fault = IVFError

  static var emptiness: String { "the file contains no video frame: convert it again" }

  mutating func append(_ piece: RawSpan) { buffer.append(piece) }

  mutating func next() throws(IVFError) -> Frame? {
    if header == nil {
      guard try readHeader() else { return nil }
    }
    if frame == nil {
      partPosition = buffer.position
      guard let bytes = buffer.read(IVFReader.frameHeaderLength) else { return nil }
      let count = number(bytes, 0, 4)
      guard count <= IVFReader.longestFrame else { throw .tooLong }
      frame = (Int(count), number(bytes, 4, 8))
    }
    guard let (count, time) = frame, let bytes = buffer.read(count) else { return nil }
    frame = nil
    return Frame(bytes: bytes, time: time)
  }

  mutating func finish() throws(IVFError) {
    if header == nil { throw .notIVF }
    if frame != nil || buffer.count > 0 { throw .truncated }
  }

  func place(of fault: IVFError, after count: Int) -> (videoFrame: Int?, byteOffset: Int?) {
    header == nil ? (nil, nil) : (count + 1, partPosition)
  }
}

/// Writes IVF: encoded video frames with their times, all numbers little-endian.
package enum IVFWriter {
  /// Returns the file's header: 32 bytes.
  package static func header(
    fourCC: String, width: Int, height: Int, ticksPerSecond: UInt32, frameCount: Int
  ) -> [UInt8] {
    var bytes = Array("DKIF".utf8)
    append(0, 2, to: &bytes)  // the version
    append(32, 2, to: &bytes)  // the length of the header
    bytes += Array((fourCC + "    ").utf8.prefix(4))
    append(UInt64(UInt16(clamping: width)), 2, to: &bytes)
    append(UInt64(UInt16(clamping: height)), 2, to: &bytes)
    append(UInt64(ticksPerSecond), 4, to: &bytes)
    append(1, 4, to: &bytes)  // the denominator of the tick rate
    append(UInt64(UInt32(clamping: frameCount)), 4, to: &bytes)
    append(0, 4, to: &bytes)
    return bytes
  }

  /// Returns the 12 bytes before a frame in the file: its size in bytes, and its time in ticks.
  package static func frameHeader(byteCount: Int, time: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    append(UInt64(UInt32(clamping: byteCount)), 4, to: &bytes)
    append(time, 8, to: &bytes)
    return bytes
  }

  private static func append(_ value: UInt64, _ count: Int, to bytes: inout [UInt8]) {
    for place in 0..<count { bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * place))) }
  }
}

// MARK: - IVFFileSource

/// Provides decoded video frames from an IVF file with VP8 or VP9, optionally repeated.
public struct IVFFileSource: TimedMedia {
  private let path: String
  private var file: RepeatedFile<IVFReader>
  private var decoder: any VideoDecoding
  private let codec: CodecName
  private let secondsPerTick: Double
  /// The start of the current repetition, and the last video frame's time and interval.
  private var roundBegan = 0.0
  private var last: (time: Double, step: Double)?

  /// The width stated in the header.
  public let width: Int
  /// The height stated in the header.
  public let height: Int
  /// The frame rate, from the times of the first two video frames; 30 if they yield no usable rate.
  public let framesPerSecond: Double

  /// Opens a file and reads its first video frames, so that a file without video frames is refused
  /// at once.
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

  /// Returns the next video frame and its time; nil at the end of the file.
  public mutating func next() throws(MediaFileError) -> (
    media: MediaContent, nanoseconds: Int64
  )? {
    guard let piece = try file.next() else { return nil }
    let step = last?.step ?? 1 / framesPerSecond
    if file.count == 1, let last {
      // The file repeats after the interval between its last video frames.
      roundBegan = last.time + step
      decoder = try IVFFileSource.decoder(codec, path)
    }
    // A file may state any time; times never decrease.
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

public import Media
import Wire

/// A YUV4MPEG2 file's stream header.
package struct Y4MHeader: Hashable, Sendable {
  /// The size in pixels.
  package var width: Int
  package var height: Int
  /// The frame rate as a fraction; 0:0 in a file means unknown and is read as 30:1.
  package var rateNumerator: Int
  package var rateDenominator: Int

  package init(width: Int, height: Int, rateNumerator: Int, rateDenominator: Int = 1) {
    self.width = width
    self.height = height
    self.rateNumerator = rateNumerator
    self.rateDenominator = rateDenominator
  }

  /// The frame rate, rounded to an integer of at least 1.
  package var framesPerSecond: Int {
    guard rateDenominator > 0 else { return 30 }
    return max(1, (rateNumerator + rateDenominator / 2) / rateDenominator)
  }
}

/// An error in a YUV4MPEG2 file.
package enum Y4MError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file does not begin with the magic word.
  case notY4M
  /// A header line that does not end, or a parameter with an invalid value.
  case malformedHeader(String)
  /// Samples other than 8-bit 4:2:0, with the parameter C's value.
  case unsupportedColourSpace(String)
  /// A frame that does not begin with the word FRAME, with its number from 0.
  case malformedFrame(Int)
  /// The file ended inside a header or frame, after this many complete frames.
  case truncated(afterFrames: Int)

  package var description: String {
    switch self {
    case .notY4M:
      "the file is not a YUV4MPEG2 file: convert it, as ffmpeg does with -pix_fmt yuv420p NAME.y4m"
    case .malformedHeader(let what):
      "the YUV4MPEG2 header is malformed: \(what); convert the file again"
    case .unsupportedColourSpace(let name):
      "the colour space \(name) is not supported; convert the file to 8-bit 4:2:0 (C420)"
    case .malformedFrame(let number):
      "frame \(number) of the YUV4MPEG2 file has no FRAME header: convert the file again"
    case .truncated(let count):
      "the YUV4MPEG2 file ends in the middle of a video frame, after \(count) whole ones:"
        + " convert it again"
    }
  }
}

// MARK: - Y4MReader

/// Reads YUV4MPEG2 from pieces of any size: append pieces, then call `next` until it returns nil.
package struct Y4MReader {
  /// The maximum length of a header line, in bytes.
  private static let longestLine = 4_096
  /// The maximum width and height, in pixels.
  private static let largestSide = 16_383

  private enum Phase {
    case header
    case frameHeader
    case samples
    case failed(Y4MError)
  }

  /// The stream header; nil until it has been read.
  package private(set) var header: Y4MHeader?
  /// The offset of the header or frame being read.
  package private(set) var partPosition = 0
  /// The number of video frames read.
  package private(set) var frameCount = 0

  private var buffer = PieceBuffer()
  private var phase = Phase.header

  package init() {}

  package mutating func append(_ piece: RawSpan) { buffer.append(piece) }

  /// Returns the next video frame; nil if more bytes are needed.
  package mutating func next() throws(Y4MError) -> I420Buffer? {
    do throws(Y4MError) {
      while true {
        switch phase {
        case .header:
          guard try checkMagic(), let line = try line() else { return nil }
          header = try Y4MReader.parse(line)
          phase = .frameHeader
        case .frameHeader:
          partPosition = buffer.position
          guard buffer.count > 0, let line = try line() else { return nil }
          guard line == "FRAME" || line.hasPrefix("FRAME ") else {
            throw .malformedFrame(frameCount)
          }
          phase = .samples
        case .samples:
          guard let header else { return nil }
          let size = I420Buffer.byteCount(width: header.width, height: header.height)
          guard let samples = buffer.read(size) else { return nil }
          phase = .frameHeader
          frameCount += 1
          return I420Buffer(width: header.width, height: header.height, samples: samples)
        case .failed(let error): throw error
        }
      }
    } catch {
      phase = .failed(error)
      throw error
    }
  }

  /// Marks the end of the file; throws if a header or a frame is incomplete.
  package func finish() throws(Y4MError) {
    switch phase {
    case .failed(let error): throw error
    case .frameHeader where buffer.count == 0: return
    case .header where buffer.count == 0: throw .notY4M
    default: throw .truncated(afterFrames: frameCount)
    }
  }

  // MARK: - Header

  private static let magic = Array("YUV4MPEG2".utf8)

  /// Checks the magic word; returns false if more bytes are needed.
  private func checkMagic() throws(Y4MError) -> Bool {
    let count = min(buffer.count, Y4MReader.magic.count)
    for index in 0..<count where buffer[index] != Y4MReader.magic[index] { throw .notY4M }
    return count == Y4MReader.magic.count
  }

  /// Returns the next line without its line break; nil if it is incomplete.
  private mutating func line() throws(Y4MError) -> String? {
    guard let end = buffer.firstIndex(of: 0x0A, within: Y4MReader.longestLine) else {
      if buffer.count >= Y4MReader.longestLine {
        throw header == nil
          ? .malformedHeader("the line does not end") : .malformedFrame(frameCount)
      }
      return nil
    }
    guard let bytes = buffer.read(end + 1) else { return nil }
    return String(decoding: bytes.dropLast(), as: UTF8.self)
  }

  private static func parse(_ line: String) throws(Y4MError) -> Y4MHeader {
    var header = Y4MHeader(width: 0, height: 0, rateNumerator: 30)
    for (index, word) in line.split(separator: " ").enumerated() {
      guard index > 0, let tag = word.first else {
        guard word == "YUV4MPEG2" else { throw .notY4M }
        continue
      }
      let value = word.dropFirst()
      switch tag {
      case "W": header.width = try side(value, "width")
      case "H": header.height = try side(value, "height")
      case "F": try parseRate(value, into: &header)
      case "C": try checkColourSpace(value)
      default: break  // interlacing, pixel aspect and comments do not matter here
      }
    }
    guard header.width > 0, header.height > 0 else { throw .malformedHeader("no picture size") }
    return header
  }

  private static func side(_ value: Substring, _ name: String) throws(Y4MError) -> Int {
    guard let side = Int(value), (1...largestSide).contains(side) else {
      throw .malformedHeader("the \(name) is \(value)")
    }
    return side
  }

  private static func parseRate(
    _ value: Substring, into header: inout Y4MHeader
  ) throws(Y4MError) {
    let parts = value.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let numerator = Int32(parts[0]), let denominator = Int32(parts[1]),
      numerator >= 0, denominator >= 0
    else { throw .malformedHeader("the frame rate is \(value)") }
    guard numerator > 0, denominator > 0 else { return }
    header.rateNumerator = Int(numerator)
    header.rateDenominator = Int(denominator)
  }

  /// Accepts 8-bit 4:2:0 with any siting of the chroma samples; throws for anything else.
  private static func checkColourSpace(_ value: Substring) throws(Y4MError) {
    guard ["420", "420jpeg", "420mpeg2", "420paldv"].contains(value) else {
      throw .unsupportedColourSpace(String(value))
    }
  }
}

/// Writes YUV4MPEG2: the header, then each video frame.
package enum Y4MWriter {
  package static func header(_ header: Y4MHeader) -> [UInt8] {
    let rate = "F\(header.rateNumerator):\(header.rateDenominator)"
    let line = "YUV4MPEG2 W\(header.width) H\(header.height) \(rate) Ip A1:1 C420jpeg\n"
    return Array(line.utf8)
  }

  /// Returns a video frame's bytes; a blank frame is grey.
  package static func frame(_ videoFrame: I420Buffer) -> [UInt8] {
    let size = I420Buffer.byteCount(width: videoFrame.width, height: videoFrame.height)
    var bytes = Array("FRAME\n".utf8)
    bytes.reserveCapacity(bytes.count + size)
    if videoFrame.samples.isEmpty {
      bytes.append(contentsOf: repeatElement(128, count: size))
    } else {
      bytes.append(contentsOf: videoFrame.samples)
    }
    return bytes
  }
}

// MARK: - Y4MFileSource

/// Provides video frames from a YUV4MPEG2 file, optionally repeated.
public struct Y4MFileSource: TimedMedia {
  private var file: RepeatedFile<Y4MReader>
  private let secondsPerFrame: Double
  private var count: Int64 = 0

  /// The video frames' width in pixels.
  public let width: Int
  /// The video frames' height in pixels.
  public let height: Int
  /// The frame rate, at most 1000; 30 if the file does not state one.
  public var framesPerSecond: Double { 1 / secondsPerFrame }

  /// Opens a file and reads its first video frame, so that a file without video frames is refused
  /// at once.
  public init(path: String, loops: Bool) throws(MediaFileError) {
    file = try RepeatedFile(path: path, loops: loops)
    guard let header = file.reader.header else { throw file.emptiness }
    width = header.width
    height = header.height
    let isKnown = header.rateNumerator > 0 && header.rateDenominator > 0
    let seconds = Double(header.rateDenominator) / Double(header.rateNumerator)
    // A file may state any rate; no screen shows more than a thousand video frames per second.
    secondsPerFrame = max(isKnown ? seconds : 1 / 30, 0.001)
  }

  /// Returns the next video frame and its time; nil at the end of the file.
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

  static var emptiness: String { "the file contains no video frame: convert it again" }

  func place(of fault: Y4MError, after count: Int) -> (videoFrame: Int?, byteOffset: Int?) {
    // If the header cannot be read, there is no video frame or offset to state.
    header == nil ? (nil, nil) : (count + 1, partPosition)
  }
}

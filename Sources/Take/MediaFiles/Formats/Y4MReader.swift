package import Media
import Wire

/// Reads YUV4MPEG2 from pieces of any size: give bytes with `append`, then take video frames with
/// `next` until there is none.
package struct Y4MReader {
  /// The longest header line that is accepted, in bytes.
  private static let longestLine = 4_096
  /// The largest width and height that are accepted, in pixels.
  private static let largestSide = 16_383

  private enum Phase {
    case header
    case frameHeader
    case samples
    case failed(Y4MError)
  }

  /// The stream header, once it was read.
  package private(set) var header: Y4MHeader?
  /// Where the header or the frame that is being read begins, in bytes from the beginning.
  package private(set) var partPosition = 0
  /// How many video frames were read.
  package private(set) var frameCount = 0

  private var buffer = PieceBuffer()
  private var phase = Phase.header

  /// Creates a reader at the beginning of a file.
  package init() {}

  /// Gives the reader the next bytes of the file.
  package mutating func append(_ piece: RawSpan) { buffer.append(piece) }

  /// The next video frame, or nil when more bytes are needed.
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

  /// Says that the file has ended; throws when it did so in the middle of something.
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

  /// Whether the magic word is there; false when more bytes are needed.
  private func checkMagic() throws(Y4MError) -> Bool {
    let count = min(buffer.count, Y4MReader.magic.count)
    for index in 0..<count where buffer[index] != Y4MReader.magic[index] { throw .notY4M }
    return count == Y4MReader.magic.count
  }

  /// The next line without its end, or nil when it is not all there.
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

  /// 4:2:0 with any siting of the chroma samples, 8 bits each.
  private static func checkColourSpace(_ value: Substring) throws(Y4MError) {
    guard ["420", "420jpeg", "420mpeg2", "420paldv"].contains(value) else {
      throw .unsupportedColourSpace(String(value))
    }
  }
}

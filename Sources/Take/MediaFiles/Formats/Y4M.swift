/// The stream header of a YUV4MPEG2 file.
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

  /// The frame rate as a whole number, at least 1.
  package var framesPerSecond: Int {
    guard rateDenominator > 0 else { return 30 }
    return max(1, (rateNumerator + rateDenominator / 2) / rateDenominator)
  }
}

/// Why a YUV4MPEG2 file cannot be read.
package enum Y4MError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file does not begin with the magic word.
  case notY4M
  /// A header line does not end, or a parameter has no value that makes sense.
  case malformedHeader(String)
  /// Samples of another shape than 8-bit 4:2:0; the value of the parameter C.
  case unsupportedColourSpace(String)
  /// A frame does not begin with the word FRAME; its number from 0.
  case malformedFrame(Int)
  /// The file ended inside a header or a frame; the number of whole frames before.
  case truncated(afterFrames: Int)

  package var description: String {
    switch self {
    case .notY4M:
      "the file is no YUV4MPEG2 file: convert it, as ffmpeg does with -pix_fmt yuv420p NAME.y4m"
    case .malformedHeader(let what):
      "the YUV4MPEG2 header is malformed: \(what); convert the file anew"
    case .unsupportedColourSpace(let name):
      "the colour space \(name) is not supported; convert the file to 8-bit 4:2:0 (C420)"
    case .malformedFrame(let number):
      "frame \(number) of the YUV4MPEG2 file has no FRAME header: convert the file anew"
    case .truncated(let count):
      "the YUV4MPEG2 file ends in the middle of a video frame, after \(count) whole ones:"
        + " convert it anew"
    }
  }
}

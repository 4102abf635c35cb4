import Wire

/// What is wrong with an IVF file.
package enum IVFError: Error, Hashable, Sendable, CustomStringConvertible {
  /// It does not begin as such files do.
  case notIVF
  /// A codec that is not decoded here, by its four letters.
  case codec(String)
  /// A video frame that claims to be larger than any is.
  case tooLong
  /// The file ends within a video frame.
  case truncated
  /// The decoder refused a video frame.
  case undecodable(String)

  package var description: String {
    switch self {
    case .notIVF: "it is no IVF file: convert it anew"
    case .codec(let name): "its codec \(name) is not decoded here: encode it as VP8 or VP9"
    case .tooLong: "a video frame claims to be longer than any is: convert the file anew"
    case .truncated: "the file ends within a video frame: copy or convert it anew"
    case .undecodable(let reason): reason
    }
  }
}

/// Reads IVF from pieces of any size: encoded video frames with their times.
struct IVFReader {
  /// What stands at the front of the file.
  struct Header {
    var fourCC: String
    var width: Int
    var height: Int
    var ticksPerSecond: Double
  }

  /// A video frame as it is in the file.
  struct Frame {
    var bytes: [UInt8]
    /// In ticks.
    var time: UInt64
  }

  private(set) var header: Header?
  /// Where the part that is being read begins, in bytes from the beginning.
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

  /// A number of several bytes, the low one first.
  private func number(_ bytes: [UInt8], _ start: Int, _ count: Int) -> UInt64 {
    (0..<count).reduce(0) { $0 | UInt64(bytes[start + $1]) << UInt64(8 * $1) }
  }
}

extension IVFReader: PieceReader {
  typealias Fault = IVFError

  static var emptiness: String { "the file holds no video frame: convert it anew" }

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

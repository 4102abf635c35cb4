public import Media
package import RTP
import Wire

/// A video frame in an H.264 byte stream.
package struct H264AccessUnit: Hashable, Sendable {
  /// The NAL units with start codes; a key frame begins with all parameter sets.
  package var bytes: [UInt8]
  /// Whether a decoder can begin with this frame.
  package var isKey: Bool
}

/// An error in an H.264 byte stream, or a feature that cannot be sent.
package enum H264Error: Error, Hashable, Sendable, CustomStringConvertible {
  /// The data does not begin with a start code.
  case noByteStream
  /// An invalid NAL unit, with its number counted from 0.
  case malformedUnit(Int)
  /// A NAL unit or video frame that exceeds a limit, with the unit's number counted from 0.
  case tooLarge(Int)
  /// Video frames refer to later ones (B-frames).
  case bidirectional
  /// Video frames consist of two interlaced fields.
  case interlaced

  package var description: String {
    switch self {
    case .noByteStream:
      "the file is not an H.264 byte stream (H.264 annex B): extract it from its container, as "
        + "ffmpeg does with -c copy -bsf:v h264_mp4toannexb"
    case .malformedUnit(let number):
      "unit \(number) of the H.264 byte stream is malformed: encode the file again"
    case .tooLarge(let number):
      "unit \(number) of the H.264 byte stream belongs to a video frame of over 16 MiB or 4096 "
        + "units: encode smaller video frames"
    case .bidirectional:
      "the video frames refer to later ones, which calls do not allow: encode without B pictures"
    case .interlaced:
      "the video frames are interlaced, which calls do not allow: encode whole frames"
    }
  }
}

/// Splits an H.264 byte stream (annex B) into video frames: append pieces of any size, then call
/// `next` until it returns nil.
///
/// Everything before the first key frame is skipped.
package struct H264Reader {
  /// The maximum size of a video frame, and of a parameter set, in bytes.
  private static let accessUnitMaximum = 16 << 20
  private static let parametersMaximum = 64 << 10
  /// The maximum number of units in a video frame.
  private static let unitsMaximum = 4096

  /// A parameter set that is repeated in later key frames.
  private struct ParameterSet {
    let type: H264UnitType
    let number: UInt32
    let unit: [UInt8]
  }

  /// The offset of the last unit, in bytes from the start of the file.
  package private(set) var unitPosition = 0
  /// The latest sequence parameter set; nil until one has been read.
  package private(set) var parameters: H264SequenceParameters?

  private var buffer = PieceBuffer()
  /// The number of scanned bytes in the buffer, and the number of zeros at the end of the scanned
  /// part.
  private var scanned = 0
  private var zeros = 0
  private var hasBegun = false
  private var unitCount = 0
  private var isEnded = false
  private var failure: H264Error?

  private var sets: [ParameterSet] = []
  /// The NAL units of the incomplete video frame.
  private var units: [[UInt8]] = []
  private var unitBytes = 0
  private var hasSlices = false
  private var isKey = false
  private var hasHadKey = false
  private var ready: H264AccessUnit?

  package init() {}

  package mutating func append(_ piece: RawSpan) { buffer.append(piece) }

  /// Marks the end of the file, which completes the last video frame.
  package mutating func finish() { isEnded = true }

  /// Returns the next video frame; nil if more bytes are needed or the file has ended.
  package mutating func next() throws(H264Error) -> H264AccessUnit? {
    if let failure { throw failure }
    do throws(H264Error) {
      while let unit = try nextUnit() {
        try handle(unit)
        if let videoFrame = ready.take() { return videoFrame }
      }
      if isEnded { endFrame() }
      return ready.take()
    } catch {
      failure = error
      // The video frame before the error is complete.
      if let videoFrame = ready.take() { return videoFrame }
      throw error
    }
  }

  // MARK: Units

  private mutating func nextUnit() throws(H264Error) -> [UInt8]? {
    while scanned < buffer.count {
      let byte = buffer[scanned]
      scanned += 1
      if byte == 1, zeros >= 2 {
        let length = scanned - 1 - zeros
        unitPosition = buffer.position
        let unit = buffer.read(length) ?? []
        _ = buffer.drop(zeros + 1)
        (scanned, zeros) = (0, 0)
        if hasBegun, !unit.isEmpty { return unit }
        guard hasBegun || unit.isEmpty else { throw .noByteStream }
        hasBegun = true
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      guard hasBegun || byte == 0 else { throw .noByteStream }
      guard scanned <= H264Reader.accessUnitMaximum else {
        unitPosition = buffer.position
        throw .tooLarge(unitCount)
      }
    }
    guard isEnded, hasBegun, buffer.count > zeros else {
      if isEnded, !hasBegun { throw .noByteStream }
      return nil
    }
    unitPosition = buffer.position
    let rest = buffer.read(buffer.count - zeros)
    _ = buffer.drop(zeros)
    (scanned, zeros) = (0, 0)
    return rest
  }

  private mutating func handle(_ unit: [UInt8]) throws(H264Error) {
    defer { unitCount += 1 }
    guard let header = unit.first, header & 0x80 == 0 else { throw .malformedUnit(unitCount) }
    switch H264UnitType(rawValue: header) {
    case .slice, .instantRefreshSlice: try handleSlice(unit)
    case .sequenceParameters:
      if hasSlices { endFrame() }
      guard let read = try? H264SequenceParameters(parsing: unit.span.bytes) else {
        throw .malformedUnit(unitCount)
      }
      guard !read.isInterlaced else { throw .interlaced }
      parameters = read
      try store(.sequenceParameters, read.number, unit)
    case .pictureParameters:
      if hasSlices { endFrame() }
      guard let number = H264Payload.pictureParametersNumber(unit.span.bytes) else {
        throw .malformedUnit(unitCount)
      }
      try store(.pictureParameters, number, unit)
    case .supplement:
      if hasSlices { endFrame() }
      try add(unit)
    case .accessUnitDelimiter: if hasSlices { endFrame() }
    // The other units are filler, end markers, or meant for other kinds of decoders (table 7-1).
    default: break
    }
  }

  private mutating func handleSlice(_ unit: [UInt8]) throws(H264Error) {
    guard let slice = try? H264SliceHeader(parsing: unit.span.bytes) else {
      throw .malformedUnit(unitCount)
    }
    if slice.beginsVideoFrame, hasSlices { endFrame() }
    guard !slice.isBidirectional else { throw .bidirectional }
    hasSlices = true
    if H264UnitType(rawValue: unit[0]) == .instantRefreshSlice { isKey = true }
    try add(unit)
  }

  /// Stores a parameter set, replacing an earlier one with the same number.
  private mutating func store(_ type: H264UnitType, _ number: UInt32, _ unit: [UInt8])
    throws(H264Error)
  {
    guard unit.count <= H264Reader.parametersMaximum else { throw .malformedUnit(unitCount) }
    let set = ParameterSet(type: type, number: number, unit: unit)
    if let index = sets.firstIndex(where: { $0.type == type && $0.number == number }) {
      let isOther = sets[index].unit != unit
      sets[index] = set
      if !isOther { return }
    } else {
      sets.append(set)
    }
    // A parameter set that changes between key frames is sent with the next video frame; key frames
    // contain all parameter sets anyway.
    try add(unit)
  }

  private mutating func add(_ unit: [UInt8]) throws(H264Error) {
    unitBytes += unit.count + H264Payload.startCode.count
    guard unitBytes <= H264Reader.accessUnitMaximum, units.count < H264Reader.unitsMaximum else {
      throw .tooLarge(unitCount)
    }
    units.append(unit)
  }

  /// Completes the video frame if it is decodable.
  private mutating func endFrame() {
    defer {
      units = []
      unitBytes = 0
      hasSlices = false
      isKey = false
    }
    guard hasSlices, parameters != nil, isKey || hasHadKey else { return }
    hasHadKey = true
    var bytes: [UInt8] = []
    func append(_ unit: [UInt8]) { bytes += H264Payload.startCode + unit }
    if isKey {
      for type in [H264UnitType.sequenceParameters, .pictureParameters] {
        for set in sets where set.type == type { append(set.unit) }
      }
    }
    for unit in units {
      let type = H264UnitType(rawValue: unit[0])
      if isKey, type == .sequenceParameters || type == .pictureParameters { continue }
      append(unit)
    }
    ready = H264AccessUnit(bytes: bytes, isKey: isKey)
  }
}

// MARK: - H264FileSource

/// Provides encoded video frames from an H.264 byte stream, optionally repeated.
public struct H264FileSource: TimedMedia {
  private var file: RepeatedFile<H264Reader>
  private var count: Int64 = 0

  /// The requested frame rate, or else the file's; 30 if neither is known, or if the rate is not
  /// from 0.1 to 1000.
  public let framesPerSecond: Double
  /// The `profile-level-id` in SDP that the video frames require (RFC 6184 section 8.1).
  public let profileLevelID: String
  /// The first video frames' width in pixels.
  public let width: Int
  /// The first video frames' height in pixels.
  public let height: Int

  /// The maximum number of video frames examined before any is sent.
  private static let previewMaximum = 64

  /// Opens a file and reads its first video frames, so that an unusable file is refused at once.
  ///
  /// - Parameter framesPerSecond: the frame rate; nil for the file's rate, or 30 if it states none.
  public init(path: String, loops: Bool, framesPerSecond: Double? = nil) throws(MediaFileError) {
    file = try RepeatedFile(path: path, loops: loops)
    while file.count < H264FileSource.previewMaximum, try file.nextOnce() != nil {}
    guard let parameters = file.reader.parameters else { throw file.emptiness }
    profileLevelID = parameters.profileLevelIDText
    (width, height) = (parameters.width, parameters.height)
    let told = parameters.timing.map {
      Double($0.ticksPerSecond) / (2 * Double($0.ticksPerField))
    }
    // A file may claim any rate.
    let rate = framesPerSecond ?? told ?? 30
    self.framesPerSecond = (0.1...1000).contains(rate) ? rate : 30
    try file.restart()
  }

  /// Returns the next video frame and its time; nil at the end of the file.
  public mutating func next() throws(MediaFileError) -> (
    media: MediaContent, nanoseconds: Int64
  )? {
    guard let videoFrame = try file.next() else { return nil }
    let seconds = Double(count) / framesPerSecond
    count += 1
    return (content(videoFrame), Int64(min(seconds * 1e9, 9e18)))
  }

  /// Skips to the file's next key frame and returns it, so that sending continues after it; nil if
  /// there is none.
  public mutating func nextKeyFrame() throws(MediaFileError) -> MediaContent? {
    while let videoFrame = try file.next() {
      if videoFrame.isKey { return content(videoFrame) }
    }
    return nil
  }

  private func content(_ videoFrame: H264AccessUnit) -> MediaContent {
    .encodedVideo(
      EncodedVideoChunk(
        codec: CodecName.h264.rawValue, isKey: videoFrame.isKey, bytes: videoFrame.bytes))
  }
}

extension H264Reader: PieceReader {
  typealias Fault = H264Error

  static var emptiness: String {
    "the file has no H.264 key frame with its parameters: encode it again so that it begins with "
      + "parameter sets and an IDR picture"
  }

  func place(of fault: H264Error, after count: Int) -> (videoFrame: Int?, byteOffset: Int?) {
    // Positions are meaningless unless the file is an H.264 stream.
    fault == .noByteStream ? (nil, nil) : (count + 1, unitPosition)
  }
}

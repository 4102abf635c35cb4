package import RTP
import Wire

/// A picture of an H.264 byte stream.
package struct H264Picture: Hashable, Sendable {
  /// Its units with start codes; those of a key picture begin with all parameter sets.
  package var bytes: [UInt8]
  /// Whether a decoder can begin here.
  package var isKey: Bool
}

/// Why an H.264 byte stream cannot be read or sent.
package enum H264Error: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file does not begin with a start code.
  case noByteStream
  /// A unit that cannot be read; its number from 0.
  case malformedUnit(Int)
  /// A unit or a picture is larger than is kept; the number of the unit from 0.
  case tooLarge(Int)
  /// Pictures refer to later ones.
  case bidirectional
  /// Pictures are made of fields.
  case interlaced

  package var description: String {
    switch self {
    case .noByteStream:
      "the file is no H.264 byte stream (H.264 annex B): take the stream out of its container, as"
        + " ffmpeg does with -c copy -bsf:v h264_mp4toannexb"
    case .malformedUnit(let number):
      "unit \(number) of the H.264 byte stream is malformed: encode the file anew"
    case .tooLarge(let number):
      "unit \(number) of the H.264 byte stream belongs to a picture of over 16 MiB or 4096 units:"
        + " encode smaller pictures"
    case .bidirectional:
      "the pictures refer to later ones, which calls do not allow: encode without B pictures"
    case .interlaced:
      "the pictures are interlaced, which calls do not allow: encode whole frames"
    }
  }
}

/// Cuts an H.264 byte stream (annex B) into pictures, from pieces of any size: give bytes with
/// `append`, then take pictures with `next` until there is none.
///
/// What comes before the first picture that a decoder can begin with is left out.
package struct H264Reader {
  /// The most bytes that a picture may have, and a parameter set.
  private static let pictureMaximum = 16 << 20
  private static let parametersMaximum = 64 << 10
  /// Up to how many units a picture may have.
  private static let unitsMaximum = 4096

  /// A parameter set that later key pictures are given.
  private struct ParameterSet {
    let type: H264UnitType
    let number: UInt32
    let unit: [UInt8]
  }

  /// Where the unit that was read last begins, in bytes from the beginning of the file.
  package private(set) var unitPosition = 0
  /// The sequence parameter set that came last.
  package private(set) var parameters: H264SequenceParameters?

  private var buffer = PieceBuffer()
  /// How many bytes of the buffer were looked at, and how many zeros are at their end.
  private var scanned = 0
  private var zeros = 0
  private var hasBegun = false
  private var unitCount = 0
  private var isEnded = false
  private var failure: H264Error?

  private var sets: [ParameterSet] = []
  /// The units of the picture that is being put together.
  private var units: [[UInt8]] = []
  private var unitBytes = 0
  private var hasSlices = false
  private var isKey = false
  private var hasHadKey = false
  private var ready: H264Picture?

  /// Creates a reader at the beginning of a file.
  package init() {}

  /// Gives the reader the next bytes of the file.
  package mutating func append(_ piece: RawSpan) { buffer.append(piece) }

  /// Says that the file has ended, so that the last picture is whole.
  package mutating func finish() { isEnded = true }

  /// The next picture, or nil when more bytes are needed or the file has ended.
  package mutating func next() throws(H264Error) -> H264Picture? {
    if let failure { throw failure }
    do throws(H264Error) {
      while let unit = try nextUnit() {
        try take(unit)
        if let picture = ready.take() { return picture }
      }
      if isEnded { endPicture() }
      return ready.take()
    } catch {
      failure = error
      // The picture before the fault is whole.
      if let picture = ready.take() { return picture }
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
        let unit = buffer.take(length) ?? []
        _ = buffer.drop(zeros + 1)
        (scanned, zeros) = (0, 0)
        if hasBegun, !unit.isEmpty { return unit }
        guard hasBegun || unit.isEmpty else { throw .noByteStream }
        hasBegun = true
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      guard hasBegun || byte == 0 else { throw .noByteStream }
      guard scanned <= H264Reader.pictureMaximum else {
        unitPosition = buffer.position
        throw .tooLarge(unitCount)
      }
    }
    guard isEnded, hasBegun, buffer.count > zeros else {
      if isEnded, !hasBegun { throw .noByteStream }
      return nil
    }
    unitPosition = buffer.position
    let rest = buffer.take(buffer.count - zeros)
    _ = buffer.drop(zeros)
    (scanned, zeros) = (0, 0)
    return rest
  }

  private mutating func take(_ unit: [UInt8]) throws(H264Error) {
    defer { unitCount += 1 }
    guard let header = unit.first, header & 0x80 == 0 else { throw .malformedUnit(unitCount) }
    switch H264UnitType(rawValue: header) {
    case .slice, .instantRefreshSlice: try takeSlice(unit)
    case .sequenceParameters:
      if hasSlices { endPicture() }
      guard let read = try? H264SequenceParameters(parsing: unit.span.bytes) else {
        throw .malformedUnit(unitCount)
      }
      guard !read.isInterlaced else { throw .interlaced }
      parameters = read
      try keep(.sequenceParameters, read.number, unit)
    case .pictureParameters:
      if hasSlices { endPicture() }
      guard let number = H264Payload.pictureParametersNumber(unit.span.bytes) else {
        throw .malformedUnit(unitCount)
      }
      try keep(.pictureParameters, number, unit)
    case .supplement:
      if hasSlices { endPicture() }
      try add(unit)
    case .accessUnitDelimiter: if hasSlices { endPicture() }
    // The rest is filling, ends, or for decoders of other kinds (table 7-1).
    default: break
    }
  }

  private mutating func takeSlice(_ unit: [UInt8]) throws(H264Error) {
    guard let slice = try? H264SliceHeader(parsing: unit.span.bytes) else {
      throw .malformedUnit(unitCount)
    }
    if slice.beginsPicture, hasSlices { endPicture() }
    guard !slice.isBidirectional else { throw .bidirectional }
    hasSlices = true
    if H264UnitType(rawValue: unit[0]) == .instantRefreshSlice { isKey = true }
    try add(unit)
  }

  /// Remembers a parameter set in the place of an earlier one with its number.
  private mutating func keep(_ type: H264UnitType, _ number: UInt32, _ unit: [UInt8])
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
    // A change between key pictures goes with the next picture; key pictures get all sets anyway.
    try add(unit)
  }

  private mutating func add(_ unit: [UInt8]) throws(H264Error) {
    unitBytes += unit.count + H264Payload.startCode.count
    guard unitBytes <= H264Reader.pictureMaximum, units.count < H264Reader.unitsMaximum else {
      throw .tooLarge(unitCount)
    }
    units.append(unit)
  }

  /// Gives out the picture that was put together, if a decoder has seen what it needs.
  private mutating func endPicture() {
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
    ready = H264Picture(bytes: bytes, isKey: isKey)
  }
}

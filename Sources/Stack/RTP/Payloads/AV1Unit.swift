package import Wire

/// The codes of open bitstream units (AV1 section 6.2.2).
package struct AV1UnitType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue & 0x0f }

  package static let sequenceHeader = AV1UnitType(rawValue: 1)
  package static let temporalDelimiter = AV1UnitType(rawValue: 2)
  package static let frameHeader = AV1UnitType(rawValue: 3)
  package static let tileGroup = AV1UnitType(rawValue: 4)
  package static let frame = AV1UnitType(rawValue: 6)
  package static let tileList = AV1UnitType(rawValue: 8)

  /// Whether the unit is for files and decoders alone: it is not sent (AV1 RTP section 5).
  package var isLeftOut: Bool { self == .temporalDelimiter || self == .tileList }
}

/// An open bitstream unit and where its parts lie (AV1 section 5.3).
package struct AV1Unit: Hashable, Sendable {
  package private(set) var type: AV1UnitType
  /// The header without the bit that tells of a size: one byte, and one more for layers.
  package private(set) var header: [UInt8]
  /// What follows the header and the size.
  package private(set) var payload: Range<Int>

  /// The bit of a header that tells of a size.
  package static let sizeBit: UInt8 = 0x02
  /// What stands before each temporal unit: a delimiter, which has no payload (section 7.5).
  package static let delimiter: [UInt8] = [0x12, 0]

  /// Reads the unit that begins at an offset; without a size it ends with the bytes.
  package init(parsing bytes: RawSpan, at offset: Int) throws(ReadError) {
    var reader = ByteReader(bytes)
    try reader.skip(offset)
    let first = try reader.uint8()
    guard first & 0x80 == 0 else { throw .malformed }
    type = AV1UnitType(rawValue: first >> 3)
    header = [first & ~AV1Unit.sizeBit]
    if first & 0x04 != 0 { header.append(try reader.uint8()) }
    var length = reader.remaining
    if first & AV1Unit.sizeBit != 0 {
      length = try reader.littleEndianBase128()
      guard length <= reader.remaining else { throw .truncated }
    }
    payload = reader.offset..<reader.offset + length
  }

  /// The units of a temporal unit, up to the first one that is broken.
  package static func units(of bytes: RawSpan) -> [AV1Unit] {
    var units: [AV1Unit] = []
    var offset = 0
    while offset < bytes.byteCount, let unit = try? AV1Unit(parsing: bytes, at: offset) {
      units.append(unit)
      offset = unit.payload.upperBound
    }
    return units
  }

  /// Looks at the units of a temporal unit.
  static func look(_ bytes: RawSpan) -> FrameLook {
    var look = FrameLook()
    var hasSequence = false
    for unit in units(of: bytes) {
      switch unit.type {
      case .sequenceHeader:
        hasSequence = true
        look.size = try? size(ofSequence: bytes.extracting(unit.payload))
      case .frame, .frameHeader:
        look.hasFrame = true
        // Which ones later video frames refer to stands deep in the header.
        look.isReference = true
        if hasSequence, beginsKeyFrame(bytes.extracting(unit.payload)) { look.isKey = true }
      default: break
      }
    }
    return look
  }

  /// Whether a frame header is that of a key frame (section 5.9.2), unless it is one of a still
  /// video frame.
  static func beginsKeyFrame(_ payload: RawSpan) -> Bool {
    guard payload.byteCount > 0 else { return false }
    // Bits: whether an earlier frame is shown again, then the type, 0 for key frames.
    return payload.byte(at: 0) & 0xe0 == 0
  }

  /// The largest size of the video frames of a sequence, in pixels (section 5.5.1).
  static func size(ofSequence payload: RawSpan) throws(ReadError) -> (width: Int, height: Int) {
    var reader = BitReader(payload)
    try reader.skip(4)  // the profile, and whether it is a still video frame
    let isReduced = try reader.flag()
    if isReduced { try reader.skip(5) } else { try reader.skipOperatingPoints() }
    let widthBits = Int(try reader.bits(4)) + 1
    let heightBits = Int(try reader.bits(4)) + 1
    return (Int(try reader.bits(widthBits)) + 1, Int(try reader.bits(heightBits)) + 1)
  }
}

extension BitReader {
  /// Timing, decoder models and levels.
  fileprivate mutating func skipOperatingPoints() throws(ReadError) {
    var delayBits: Int?
    if try flag() {
      try skip(64)
      if try flag() { try skipVariableLength() }
      if try flag() {
        delayBits = Int(try bits(5)) + 1
        try skip(32 + 5 + 5)
      }
    }
    let hasDisplayDelays = try flag()
    for _ in 0...(try bits(5)) {
      try skip(12)
      if try bits(5) > 7 { try skip(1) }
      if let delayBits, try flag() { try skip(2 * delayBits + 1) }
      if hasDisplayDelays, try flag() { try skip(4) }
    }
  }

  /// A number of any length (AV1 section 4.10.3).
  private mutating func skipVariableLength() throws(ReadError) {
    var zeros = 0
    while try !flag() { zeros += 1 }
    if zeros < 32 { try skip(zeros) }
  }
}

extension ByteReader {
  /// An unsigned number in 7-bit groups, lowest first (LEB128); at most 8 bytes, below 2^32 (AV1
  /// section 4.10.5).
  mutating func littleEndianBase128() throws(ReadError) -> Int {
    var value: UInt64 = 0
    for index in 0..<8 {
      let byte = try uint8()
      value |= UInt64(byte & 0x7f) << UInt64(7 * index)
      if byte & 0x80 == 0 {
        guard value <= UInt64(UInt32.max) else { throw .malformed }
        return Int(value)
      }
    }
    throw .malformed
  }
}

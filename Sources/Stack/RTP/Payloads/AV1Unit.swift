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

  /// Whether the unit is not sent over RTP (AV1 RTP section 5).
  package var isLeftOut: Bool { self == .temporalDelimiter || self == .tileList }
}

/// An open bitstream unit and the ranges of its parts (AV1 section 5.3).
package struct AV1Unit: Hashable, Sendable {
  package private(set) var type: AV1UnitType
  /// The header with its size bit cleared: one byte, and another one if there are layers.
  package private(set) var header: [UInt8]
  /// The range after the header and the size.
  package private(set) var payload: Range<Int>

  /// The header bit that announces a size (`obu_has_size_field`).
  package static let sizeBit: UInt8 = 0x02
  /// The temporal delimiter before each temporal unit, which has no payload (section 7.5).
  package static let delimiter: [UInt8] = [0x12, 0]

  /// Parses the unit at an offset; one without a size extends to the end.
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

  /// Returns the units of a temporal unit up to the first malformed one.
  package static func units(of bytes: RawSpan) -> [AV1Unit] {
    var units: [AV1Unit] = []
    var offset = 0
    while offset < bytes.byteCount, let unit = try? AV1Unit(parsing: bytes, at: offset) {
      units.append(unit)
      offset = unit.payload.upperBound
    }
    return units
  }

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
        // Which frames are referenced later is deep in the header, so assume all are.
        look.isReference = true
        if hasSequence, beginsKeyFrame(bytes.extracting(unit.payload)) { look.isKey = true }
      default: break
      }
    }
    return look
  }

  /// Whether a frame header starts a key frame (section 5.9.2); false for still pictures.
  static func beginsKeyFrame(_ payload: RawSpan) -> Bool {
    guard payload.byteCount > 0 else { return false }
    // Bits: show_existing_frame, then frame_type, 0 for key frames.
    return payload.byte(at: 0) & 0xe0 == 0
  }

  /// Returns the largest frame size of a sequence, in pixels (section 5.5.1).
  static func size(ofSequence payload: RawSpan) throws(ReadError) -> (width: Int, height: Int) {
    var reader = BitReader(payload)
    try reader.skip(4)  // profile, still_picture
    let isReduced = try reader.flag()
    if isReduced { try reader.skip(5) } else { try reader.skipOperatingPoints() }
    let widthBits = Int(try reader.bits(4)) + 1
    let heightBits = Int(try reader.bits(4)) + 1
    return (Int(try reader.bits(widthBits)) + 1, Int(try reader.bits(heightBits)) + 1)
  }
}

extension BitReader {
  /// Skips timing, decoder models and levels.
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

  /// Parses `uvlc()` (AV1 section 4.10.3).
  private mutating func skipVariableLength() throws(ReadError) {
    var zeros = 0
    while try !flag() { zeros += 1 }
    if zeros < 32 { try skip(zeros) }
  }
}

extension ByteReader {
  /// Parses an unsigned LEB128 number of at most 8 bytes, below 2^32 (AV1 section
  /// 4.10.5).
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

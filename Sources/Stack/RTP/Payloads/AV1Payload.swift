package import Wire

/// The contents of an AV1 packet (AOM, RTP payload format for AV1, section 4): an aggregation
/// header, then OBUs or OBU fragments without the size fields used in files.
package struct AV1Payload: Hashable, Sendable {
  /// Whether the first element continues an element of the previous packet.
  package private(set) var continues: Bool
  /// Whether the last element continues in the next packet.
  package private(set) var isContinued: Bool
  /// Whether the packet begins a coded video sequence.
  package private(set) var beginsSequence: Bool
  package private(set) var elements: [Range<Int>] = []

  private static let continuesBit: UInt8 = 0x80
  private static let isContinuedBit: UInt8 = 0x40
  private static let sequenceBit: UInt8 = 0x08

  /// Parses a payload; nil if it is malformed.
  package init?(_ payload: RawSpan) {
    guard payload.byteCount > 1 else { return nil }
    let header = payload.byte(at: 0)
    continues = header & AV1Payload.continuesBit != 0
    isContinued = header & AV1Payload.isContinuedBit != 0
    beginsSequence = header & AV1Payload.sequenceBit != 0
    // 0 means any number of elements, each preceded by its length.
    let count = Int(header >> 4 & 3)
    var reader = ByteReader(payload)
    guard (try? reader.skip(1)) != nil else { return nil }
    while !reader.isAtEnd {
      var length = reader.remaining
      if elements.count + 1 != count {
        guard let told = try? reader.littleEndianBase128() else { return nil }
        length = told
      }
      let begin = reader.offset
      guard (try? reader.skip(length)) != nil else { return nil }
      elements.append(begin..<begin + length)
    }
    guard count == 0 || elements.count == count else { return nil }
  }

  // MARK: Frames

  /// Parses a payload, which becomes the packet's content unchanged; nil if it is malformed.
  ///
  /// `join` reassembles the OBUs across packets.
  static func videoFrame(_ payload: RawSpan) -> VideoPacket? {
    guard let read = AV1Payload(payload) else { return nil }
    var packet = VideoPacket(.slice(0..<payload.byteCount))
    var first: AV1UnitType?
    var hasSequence = false
    packet.isKey = read.beginsSequence
    for element in read.elements.dropFirst(read.continues ? 1 : 0) {
      let bytes = payload.extracting(element)
      guard let unit = try? AV1Unit(parsing: bytes, at: 0) else { continue }
      first = first ?? unit.type
      if unit.type == .sequenceHeader { hasSequence = true }
      let isFrame = unit.type == .frame || unit.type == .frameHeader
      if isFrame, hasSequence, AV1Unit.beginsKeyFrame(bytes.extracting(unit.payload)) {
        packet.isKey = true
      }
    }
    guard !read.continues else { return packet }
    // These units precede all others in a frame, so they prove that the packet is the first one.
    let isFirst = read.beginsSequence || first == .sequenceHeader || first == .temporalDelimiter
    packet.beginning = isFirst ? .certain : .possible
    return packet
  }

  /// Reassembles the OBUs into a temporal unit in the file format: a delimiter, then all OBUs with
  /// sizes (AV1 section 7.5).
  static func join(_ packets: [ArraySlice<UInt8>]) -> [UInt8] {
    var stream = ByteWriter(capacity: packets.reduce(16) { $0 + $1.count })
    stream.append(AV1Unit.delimiter)
    // The unit being reassembled.
    var open: [UInt8]?
    for packet in packets {
      let bytes = packet.span.bytes
      guard let read = AV1Payload(bytes) else { continue }
      for (index, element) in read.elements.enumerated() {
        let part = [UInt8](bytes.extracting(element))
        if index == 0, read.continues {
          open?.append(contentsOf: part)
        } else {
          open = part
        }
        guard index < read.elements.count - 1 || !read.isContinued else { continue }
        if let open { append(open, to: &stream) }
        open = nil
      }
    }
    return stream.bytes
  }

  private static func append(_ bytes: [UInt8], to stream: inout ByteWriter) {
    let span = bytes.span.bytes
    guard let unit = try? AV1Unit(parsing: span, at: 0), !unit.type.isLeftOut else { return }
    stream.uint8(unit.header[0] | AV1Unit.sizeBit)
    for byte in unit.header.dropFirst() { stream.uint8(byte) }
    stream.variable(UInt64(unit.payload.count))
    stream.append(span.extracting(unit.payload))
  }

  // MARK: Packets

  /// Packetizes a temporal unit: OBUs follow one another, and an OBU that does not fit continues in
  /// the next packet.
  static func split(_ frame: PayloadFormat.Frame) -> [PayloadShare] {
    let bytes = frame.frame.bytes.span.bytes
    let all = AV1Unit.units(of: bytes)
    let units = all.filter { !$0.type.isLeftOut }
    // Leave room for the header, a length and at least one byte of a unit.
    guard frame.limit >= 16, !units.isEmpty, all.last?.payload.upperBound == bytes.byteCount
    else { return [] }
    var packets: [[Part]] = [[]]
    var room = frame.limit - 1
    for unit in units {
      var rest = Part(header: unit.header, payload: unit.payload)
      while rest.length > 0 {
        // Two length bytes per fragment are enough for any packet.
        if room < 4 {
          packets.append([])
          room = frame.limit - 1
        }
        let part = rest.removeFirst(min(rest.length, room - 2))
        packets[packets.count - 1].append(part)
        room -= part.length + 2
      }
    }
    return packets.indices.map { index in
      let continues = packets[index].first?.header.isEmpty ?? false
      let isContinued = index + 1 < packets.count && packets[index + 1][0].header.isEmpty
      let flags =
        (continues ? continuesBit : 0) | (isContinued ? isContinuedBit : 0)
        | (index == 0 && frame.frame.isKey ? sequenceBit : 0)
      return share(of: bytes, packets[index], flags)
    }
  }

  /// A fragment of a unit in a packet.
  private struct Part {
    /// The unit's header, or empty if the fragment continues a unit.
    var header: [UInt8]
    var payload: Range<Int>
    var length: Int { header.count + payload.count }

    /// Splits off `count` bytes at the front, at least the header.
    mutating func removeFirst(_ count: Int) -> Part {
      let end = payload.lowerBound + max(0, count - header.count)
      let first = Part(header: header, payload: payload.lowerBound..<end)
      self = Part(header: [], payload: end..<payload.upperBound)
      return first
    }
  }

  /// Builds a packet from its fragments; the last fragment's payload stays a range of the frame.
  private static func share(of bytes: RawSpan, _ parts: [Part], _ flags: UInt8) -> PayloadShare {
    guard let last = parts.last else { return PayloadShare(prefix: .none, range: 0..<0) }
    var prefix = ByteWriter()
    let isCounted = parts.count < 4
    prefix.uint8(flags | (isCounted ? UInt8(parts.count) << 4 : 0))
    for part in parts.dropLast() {
      prefix.variable(UInt64(part.length))
      prefix.append(part.header)
      prefix.append(bytes.extracting(part.payload))
    }
    if !isCounted { prefix.variable(UInt64(last.length)) }
    prefix.append(last.header)
    return PayloadShare(prefix: PayloadPrefix(prefix.bytes), range: last.payload)
  }
}

extension PayloadFormat {
  static let av1 = PayloadFormat(
    split: { AV1Payload.split($0) }, read: { AV1Payload.videoFrame($0) },
    join: { AV1Payload.join($0) })
}

extension FormatRules {
  /// The rules for AV1, whose formats differ by profile.
  ///
  /// An answer repeats the peer's level and tier, because every level and tier can be received (AV1
  /// RTP section 7).
  static let av1 = FormatRules(
    variant: FormatRules.profile("profile", usual: "0").variant,
    answer: { parameters in
      func value(_ name: String, _ usual: String) -> String {
        let told = CodecFormat.value(of: name, in: parameters) ?? usual
        return UInt8(told) == nil ? usual : told
      }
      return "level-idx=\(value("level-idx", "5"));profile=\(value("profile", "0"));"
        + "tier=\(value("tier", "0"))"
    })
}

// MARK: - AV1Unit

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
  /// The header with its size bit cleared: one byte, or two with layers.
  package private(set) var header: [UInt8]
  /// The range of the bytes after the header and the size.
  package private(set) var payload: Range<Int>

  /// The header bit that announces a size (`obu_has_size_field`).
  package static let sizeBit: UInt8 = 0x02
  /// The temporal delimiter, an OBU without payload that precedes each temporal unit (section 7.5).
  package static let delimiter: [UInt8] = [0x12, 0]

  /// Parses the unit at an offset; a unit without a size extends to the end.
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
        // Which frames are referenced later is coded deep in the frame header, so assume that all
        // are.
        look.isReference = true
        if hasSequence, beginsKeyFrame(bytes.extracting(unit.payload)) { look.isKey = true }
      default: break
      }
    }
    return look
  }

  /// Returns whether a frame header starts a key frame (section 5.9.2); undefined for sequences
  /// with `reduced_still_picture_header`.
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

  /// Skips `uvlc()` (AV1 section 4.10.3).
  private mutating func skipVariableLength() throws(ReadError) {
    var zeros = 0
    while try !flag() { zeros += 1 }
    if zeros < 32 { try skip(zeros) }
  }
}

extension ByteReader {
  /// Parses an unsigned LEB128 number of at most 8 bytes, below 2^32 (AV1 section 4.10.5).
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

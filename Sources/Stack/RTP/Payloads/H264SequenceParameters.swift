package import Wire

/// The values of a sequence parameter set (H.264 section 7.3.2.1.1).
package struct H264SequenceParameters: Hashable, Sendable {
  /// The parameter `profile-level-id` of SDP: the first three bytes of the set.
  package private(set) var profileLevelID: UInt32
  /// The identifier by which slices refer to the set.
  package private(set) var number: UInt32
  /// The size in pixels after cropping.
  package private(set) var width = 0
  package private(set) var height = 0
  /// Whether frames may be coded as fields.
  package private(set) var isInterlaced = false
  /// The frame timing, if the set carries it.
  package private(set) var timing: Timing?

  /// A clock of which a frame lasts two ticks, one per field (section E.2.1).
  package struct Timing: Hashable, Sendable {
    package var ticksPerSecond: UInt32
    package var ticksPerField: UInt32

    package init(ticksPerSecond: UInt32, ticksPerField: UInt32) {
      self.ticksPerSecond = ticksPerSecond
      self.ticksPerField = ticksPerField
    }
  }

  /// The largest accepted width or height, in macroblocks of 16 pixels.
  private static let sideMaximum: UInt32 = 1024
  /// The profiles whose sets carry chroma format, bit depth and scaling lists.
  private static let highProfiles: [UInt32] = [
    100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135,
  ]

  /// Parses a whole unit including its header.
  package init(parsing unit: RawSpan) throws(ReadError) {
    let bytes = H264Payload.withoutEmulationPrevention(unit)
    var reader = BitReader(bytes.span.bytes)
    guard try reader.bits(8) & 0x9f == UInt32(H264UnitType.sequenceParameters.rawValue) else {
      throw .malformed
    }
    profileLevelID = try reader.bits(24)
    number = try reader.exponentialGolomb()
    guard number < 32 else { throw .malformed }
    var sampling: UInt32 = 1
    if Self.highProfiles.contains(profileLevelID >> 16) {
      sampling = try reader.skipHighProfile()
    }
    try reader.skipPictureOrder()
    _ = try reader.exponentialGolomb()  // max_num_ref_frames
    try reader.skip(1)  // gaps_in_frame_num_value_allowed_flag
    let columns = try reader.exponentialGolomb()
    let rows = try reader.exponentialGolomb()
    guard columns < Self.sideMaximum, rows < Self.sideMaximum else { throw .malformed }
    isInterlaced = try !reader.flag()
    if isInterlaced { try reader.skip(1) }
    try reader.skip(1)  // direct_8x8_inference_flag
    width = Int(columns + 1) * 16
    height = Int(rows + 1) * 16 * (isInterlaced ? 2 : 1)
    if try reader.flag() { try crop(&reader, sampling) }
    if try reader.flag() { timing = try reader.timing() }
  }

  private mutating func crop(_ reader: inout BitReader, _ sampling: UInt32) throws(ReadError) {
    let unitWidth = sampling == 1 || sampling == 2 ? 2 : 1
    let unitHeight = (sampling == 1 ? 2 : 1) * (isInterlaced ? 2 : 1)
    for side in 0..<4 {
      let units = Int(try reader.exponentialGolomb())
      guard units < 16_384 else { throw .malformed }
      if side < 2 { width -= units * unitWidth } else { height -= units * unitHeight }
    }
    guard width > 0, height > 0 else { throw .malformed }
  }

  /// The six hexadecimal digits of the SDP parameter.
  package var profileLevelIDText: String {
    var writer = ByteWriter()
    writer.uint24(profileLevelID)
    return hexadecimal(writer.bytes)
  }
}

/// The beginning of a slice header (H.264 section 7.3.3).
package struct H264SliceHeader: Hashable, Sendable {
  /// Whether it is the first slice of its frame; slices arrive in order.
  package var beginsVideoFrame: Bool
  /// Whether it is a B slice: it also refers to later frames, which are then decoded before it.
  package var isBidirectional: Bool

  /// Parses the front of a whole unit including its header.
  package init(parsing unit: RawSpan) throws(ReadError) {
    let front = unit.extracting(0..<min(unit.byteCount, 16))
    let bytes = H264Payload.withoutEmulationPrevention(front)
    var reader = BitReader(bytes.span.bytes)
    try reader.skip(8)
    beginsVideoFrame = try reader.exponentialGolomb() == 0
    let type = try reader.exponentialGolomb()
    guard type < 10 else { throw .malformed }
    isBidirectional = type % 5 == 1
  }
}

extension H264Payload {
  /// Returns the pic_parameter_set_id of a picture parameter set; nil if it is truncated (section
  /// 7.3.2.2).
  package static func pictureParametersNumber(_ unit: RawSpan) -> UInt32? {
    let front = withoutEmulationPrevention(unit.extracting(0..<min(unit.byteCount, 8)))
    var reader = BitReader(front.span.bytes)
    guard (try? reader.skip(8)) != nil, let number = try? reader.exponentialGolomb(), number < 256
    else { return nil }
    return number
  }

  /// Returns a unit without emulation_prevention_three_bytes (section 7.4.1).
  static func withoutEmulationPrevention(_ unit: RawSpan) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(unit.byteCount)
    var zeros = 0
    for offset in 0..<unit.byteCount {
      let byte = unit.byte(at: offset)
      if zeros >= 2, byte == 3 {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      bytes.append(byte)
    }
    return bytes
  }
}

extension BitReader {
  /// Parses `ue(v)` (H.264 section 9.1).
  mutating func exponentialGolomb() throws(ReadError) -> UInt32 {
    var zeros = 0
    while try !flag() {
      zeros += 1
      guard zeros < 32 else { throw .malformed }
    }
    return try bits(zeros) &+ (1 << UInt32(zeros) &- 1)
  }

  /// Returns chroma_format_idc of a high profile; skips bit depths and scaling lists.
  fileprivate mutating func skipHighProfile() throws(ReadError) -> UInt32 {
    let sampling = try exponentialGolomb()
    guard sampling < 4 else { throw .malformed }
    if sampling == 3 { try skip(1) }
    _ = try exponentialGolomb()
    _ = try exponentialGolomb()
    try skip(1)
    guard try flag() else { return sampling }
    for list in 0..<(sampling == 3 ? 12 : 8) where try flag() {
      try skipScaling(count: list < 6 ? 16 : 64)
    }
    return sampling
  }

  /// Section 7.3.2.1.1.1: signed differences until the next scale is 0.
  private mutating func skipScaling(count: Int) throws(ReadError) {
    var scale: Int64 = 8
    for _ in 0..<count {
      let code = Int64(try exponentialGolomb())
      let difference = code % 2 == 0 ? -(code / 2) : (code + 1) / 2
      scale = (scale + difference) & 0xff
      if scale == 0 { return }
    }
  }

  fileprivate mutating func skipPictureOrder() throws(ReadError) {
    _ = try exponentialGolomb()  // the length of frame numbers
    switch try exponentialGolomb() {
    case 0: _ = try exponentialGolomb()
    case 1:
      try skip(1)
      _ = try exponentialGolomb()
      _ = try exponentialGolomb()
      let count = try exponentialGolomb()
      guard count < 256 else { throw .malformed }
      for _ in 0..<count { _ = try exponentialGolomb() }
    case 2: break
    default: throw .malformed
    }
  }

  /// Parses the timing of the VUI parameters (section E.1.1).
  fileprivate mutating func timing() throws(ReadError)
    -> H264SequenceParameters.Timing?
  {
    if try flag() {  // aspect_ratio_idc
      let isExplicit = try bits(8) == 255
      if isExplicit { try skip(32) }
    }
    if try flag() { try skip(1) }  // overscan_appropriate_flag
    if try flag() {  // colour description
      try skip(4)
      if try flag() { try skip(24) }
    }
    if try flag() {  // chroma sample location
      _ = try exponentialGolomb()
      _ = try exponentialGolomb()
    }
    guard try flag() else { return nil }
    let ticksPerField = try bits(32)
    let ticksPerSecond = try bits(32)
    guard ticksPerField > 0, ticksPerSecond > 0 else { return nil }
    return .init(ticksPerSecond: ticksPerSecond, ticksPerField: ticksPerField)
  }
}

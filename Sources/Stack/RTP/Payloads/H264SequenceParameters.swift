package import Wire

/// The values of a sequence parameter set (H.264 section 7.3.2.1.1).
package struct H264SequenceParameters: Hashable, Sendable {
  /// SDP's `profile-level-id`: the first three bytes of the set.
  package private(set) var profileLevelID: UInt32
  /// The identifier by which picture parameter sets refer to this one.
  package private(set) var number: UInt32
  /// The size in pixels after cropping.
  package private(set) var width = 0
  package private(set) var height = 0
  /// Whether frames may be coded as fields.
  package private(set) var isInterlaced = false
  /// The frame timing, if the set includes it.
  package private(set) var timing: Timing?

  /// A clock with two ticks per frame, one per field (section E.2.1).
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
  /// Profiles whose sets include chroma format, bit depth and scaling lists.
  private static let highProfiles: [UInt32] = [
    100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135,
  ]

  /// Parses a unit including its header.
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

  /// `profileLevelID` as the six hexadecimal digits of the SDP parameter.
  package var profileLevelIDText: String {
    var writer = ByteWriter()
    writer.uint24(profileLevelID)
    return hexadecimal(writer.bytes)
  }
}

/// A slice header's start (H.264 section 7.3.3).
package struct H264SliceHeader: Hashable, Sendable {
  /// Whether the slice is the first of its frame; slices arrive in order.
  package var beginsVideoFrame: Bool
  /// Whether the slice is a B slice, which may also refer to later frames that are decoded earlier.
  package var isBidirectional: Bool

  /// Parses the start of a unit including its header.
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
  /// Returns the pic_parameter_set_id of a picture parameter set; nil if it is truncated or above
  /// 255 (section 7.3.2.2).
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

  /// Skips a scaling list (section 7.3.2.1.1.1): signed differences until the next scale is 0.
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

  /// Parses the timing of the VUI parameters (section E.1.1); nil if the set has none.
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

// MARK: - H264Quantisers

/// Parses the quantisers of H.264 slices without fields, slice groups and weighted prediction, as
/// in the constrained baseline profile (H.264 section 7.3.3).
package struct H264Quantisers: Sendable {
  /// The parameter set values that slice headers depend on; nil until received.
  private var sequence: (frameNumberBits: Int, orderType: UInt32, orderBits: Int)?
  private var initialQuantiser: Int?

  package init() {}

  /// Returns the mean QP of a frame's slices, 0 to 51; nil if no slice header could be read.
  package mutating func mean(of frame: RawSpan) -> UInt8? {
    var (sum, count) = (0, 0)
    for range in H264Payload.units(of: frame) {
      let unit = frame.extracting(range)
      switch H264UnitType(rawValue: unit.byte(at: 0)) {
      case .sequenceParameters: sequence = try? H264Quantisers.sequence(unit)
      case .pictureParameters: initialQuantiser = try? H264Quantisers.initialQuantiser(unit)
      case .slice, .instantRefreshSlice:
        guard let quantiser = try? quantiser(ofSlice: unit) else { continue }
        sum += quantiser
        count += 1
      default: break
      }
    }
    return count == 0 ? nil : UInt8(clamping: sum / count)
  }

  /// Returns the first `count` bytes of a unit, or all bytes of a shorter unit, without emulation
  /// prevention bytes.
  private static func front(of unit: RawSpan, _ count: Int) -> [UInt8] {
    H264Payload.withoutEmulationPrevention(unit.extracting(0..<min(unit.byteCount, count)))
  }

  /// Parses a sequence parameter set (section 7.3.2.1.1); nil for profiles other than baseline, and
  /// for unsupported picture order types.
  private static func sequence(_ unit: RawSpan) throws(ReadError)
    -> (frameNumberBits: Int, orderType: UInt32, orderBits: Int)?
  {
    let bytes = H264Quantisers.front(of: unit, 32)
    var reader = BitReader(bytes.span.bytes)
    try reader.skip(8)
    guard try reader.bits(8) == 66 else { return nil }
    try reader.skip(16)
    _ = try reader.exponentialGolomb()  // seq_parameter_set_id
    let frameNumberBits = try reader.exponentialGolomb()
    let orderType = try reader.exponentialGolomb()
    let orderBits = orderType == 0 ? try reader.exponentialGolomb() : 0
    guard frameNumberBits <= 12, orderBits <= 12, orderType != 1 else { return nil }
    return (Int(frameNumberBits) + 4, orderType, Int(orderBits) + 4)
  }

  /// Returns a picture parameter set's initial QP (section 7.3.2.2); nil if the set has slice
  /// groups.
  private static func initialQuantiser(_ unit: RawSpan) throws(ReadError) -> Int? {
    let bytes = H264Quantisers.front(of: unit, 32)
    var reader = BitReader(bytes.span.bytes)
    try reader.skip(8)
    _ = try reader.exponentialGolomb()  // pic_parameter_set_id
    _ = try reader.exponentialGolomb()  // seq_parameter_set_id
    try reader.skip(2)  // entropy_coding_mode_flag, bottom_field_pic_order_in_frame_present_flag
    guard try reader.exponentialGolomb() == 0 else { return nil }  // slice groups
    _ = try reader.exponentialGolomb()
    _ = try reader.exponentialGolomb()
    try reader.skip(3)  // weighted prediction
    return 26 + Int(try reader.signedExponentialGolomb())
  }

  private func quantiser(ofSlice unit: RawSpan) throws(ReadError) -> Int {
    guard let sequence, let initialQuantiser else { throw .malformed }
    let bytes = H264Quantisers.front(of: unit, 48)
    var reader = BitReader(bytes.span.bytes)
    let header = UInt8(truncatingIfNeeded: try reader.bits(8))
    let isKey = H264UnitType(rawValue: header) == .instantRefreshSlice
    _ = try reader.exponentialGolomb()  // first_mb_in_slice
    let type = try reader.exponentialGolomb() % 5
    // Only P and I slices: the baseline profile has no other slice types.
    guard type == 0 || type == 2 else { throw .malformed }
    _ = try reader.exponentialGolomb()  // pic_parameter_set_id
    try reader.skip(sequence.frameNumberBits)
    if isKey { _ = try reader.exponentialGolomb() }
    if sequence.orderType == 0 { try reader.skip(sequence.orderBits) }
    if type == 0 {
      if try reader.flag() { _ = try reader.exponentialGolomb() }
      try reader.skipReordering()
    }
    if header & 0x60 != 0 { try reader.skipMarking(isKey: isKey) }
    let quantiser = initialQuantiser + Int(try reader.signedExponentialGolomb())
    guard (0...51).contains(quantiser) else { throw .malformed }
    return quantiser
  }
}

extension BitReader {
  /// Parses `se(v)` (H.264 section 9.1.1).
  fileprivate mutating func signedExponentialGolomb() throws(ReadError) -> Int64 {
    let code = Int64(try exponentialGolomb())
    return code % 2 == 0 ? -(code / 2) : (code + 1) / 2
  }

  /// Skips ref_pic_list_modification (section 7.3.3.1).
  fileprivate mutating func skipReordering() throws(ReadError) {
    guard try flag() else { return }
    for _ in 0..<66 {
      if try exponentialGolomb() == 3 { return }
      _ = try exponentialGolomb()
    }
    throw .malformed
  }

  /// Skips dec_ref_pic_marking (section 7.3.3.3).
  fileprivate mutating func skipMarking(isKey: Bool) throws(ReadError) {
    guard !isKey else { return try skip(2) }
    guard try flag() else { return }
    for _ in 0..<66 {
      let operation = try exponentialGolomb()
      if operation == 0 { return }
      if operation != 5 { _ = try exponentialGolomb() }
      if operation == 3 { _ = try exponentialGolomb() }
    }
    throw .malformed
  }
}

/// Reads bits from borrowed bytes, highest bit of each byte first; never reads past their end.
package struct BitReader: ~Escapable {
  private let bytes: RawSpan
  private var position = 0

  @_lifetime(copy bytes)
  package init(_ bytes: RawSpan) { self.bytes = bytes }

  package mutating func flag() throws(ReadError) -> Bool {
    guard position >> 3 < bytes.byteCount else { throw .truncated }
    let byte = bytes.byte(at: position >> 3)
    defer { position += 1 }
    return byte & (0x80 >> UInt8(position & 7)) != 0
  }

  /// Reads a number of at most 32 bits.
  package mutating func bits(_ count: Int) throws(ReadError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<count { value = value << 1 | (try flag() ? 1 : 0) }
    return value
  }

  package mutating func skip(_ count: Int) throws(ReadError) {
    guard count >= 0, count <= bytes.byteCount * 8 - position else { throw .truncated }
    position += count
  }
}

import Wire

/// Parses the quantisers of H.264 slices coded without fields, slice groups and weighted
/// prediction, as in the baseline profile (H.264 section 7.3.3).
package struct H264Quantisers: Sendable {
  /// The parameter sets' values that slice headers depend on; nil until they arrive.
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

  /// Returns the first `count` bytes of a unit, or all of a shorter one.
  private static func front(of unit: RawSpan, _ count: Int) -> [UInt8] {
    H264Payload.withoutEmulationPrevention(unit.extracting(0..<min(unit.byteCount, count)))
  }

  /// Section 7.3.2.1.1; nil for profiles that code slices differently.
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

  /// Section 7.3.2.2.
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
    // P and I; the baseline profile has no other slices.
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

import Wire

/// The beginning of a VP8 frame, as far as it is needed without a decoder (RFC 6386 section 9).
package struct VP8BitstreamHeader: Hashable, Sendable {
  /// Whether a decoder can begin here.
  package var isKey: Bool
  /// The size in pixels; 0 when the frame is not a key frame.
  package var width: Int
  package var height: Int
  /// The quantiser index `y_ac_qi`, 0 to 127 (RFC 6386 section 9.6).
  package var quantiser: UInt8

  /// Parses the frame tag and the first partition up to the quantiser; nil if they are truncated.
  package init?(_ bytes: RawSpan) {
    guard bytes.byteCount >= 4 else { return nil }
    var offset = 3
    isKey = bytes.byte(at: 0) & 1 == 0
    width = 0
    height = 0
    if isKey {
      guard bytes.byteCount >= 11, bytes.byte(at: 3) == 0x9D, bytes.byte(at: 4) == 0x01,
        bytes.byte(at: 5) == 0x2A
      else { return nil }
      width = Int(bytes.byte(at: 6)) | Int(bytes.byte(at: 7) & 0x3F) << 8
      height = Int(bytes.byte(at: 8)) | Int(bytes.byte(at: 9) & 0x3F) << 8
      offset = 10
    }
    var decoder = BoolDecoder(bytes.extracting(offset..<bytes.byteCount))
    if isKey { decoder.skip(2) }  // color_space, clamping_type
    decoder.skipSegmentation()
    decoder.skip(1 + 6 + 3)  // filter_type, loop_filter_level, sharpness_level
    decoder.skipFilterAdjustments()
    decoder.skip(2)  // log2_nbr_of_dct_partitions
    quantiser = UInt8(decoder.literal(7))
    guard !decoder.ranOut else { return nil }
  }
}

/// The boolean entropy decoder (RFC 6386 section 7), for flags with even odds only.
private struct BoolDecoder: ~Escapable {
  private let bytes: RawSpan
  private var offset = 0
  /// Bits not consumed yet, the current ones above the low 32.
  private var window: UInt32 = 0
  private var bitsLeft = 0
  private var range: UInt32 = 255
  /// Whether more bits were requested than there are.
  private(set) var ranOut = false

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) {
    self.bytes = bytes
    fill()
  }

  private mutating func fill() {
    while bitsLeft <= 24 {
      guard offset < bytes.byteCount else { return }
      window |= UInt32(bytes.byte(at: offset)) << UInt32(24 - bitsLeft)
      offset += 1
      bitsLeft += 8
    }
  }

  /// Reads a flag with even odds.
  mutating func flag() -> Bool {
    fill()
    let split = 1 + ((range - 1) * 128) >> 8
    let isSet = window >= split << 24
    if isSet {
      range -= split
      window -= split << 24
    } else {
      range = split
    }
    let shift = UInt32(max(0, range.leadingZeroBitCount - 24))
    range <<= shift
    window <<= shift
    bitsLeft -= Int(shift)
    if bitsLeft < 0 {
      ranOut = true
      bitsLeft = 0
    }
    return isSet
  }

  /// Reads an unsigned number, highest bit first.
  mutating func literal(_ count: Int) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<count { value = value << 1 | (flag() ? 1 : 0) }
    return value
  }

  mutating func skip(_ count: Int) { for _ in 0..<count { _ = flag() } }

  private mutating func skipOptional(times: Int, bits: Int) {
    for _ in 0..<times where flag() { skip(bits) }
  }

  /// Section 9.3: segment maps, quantisers and filter levels.
  mutating func skipSegmentation() {
    guard flag() else { return }
    let updatesMap = flag()
    if flag() {
      skip(1)
      skipOptional(times: 4, bits: 7 + 1)
      skipOptional(times: 4, bits: 6 + 1)
    }
    if updatesMap { skipOptional(times: 3, bits: 8) }
  }

  /// Section 9.6: loop filter adjustments by reference frame and mode.
  mutating func skipFilterAdjustments() {
    guard flag(), flag() else { return }
    skipOptional(times: 8, bits: 6 + 1)
  }
}

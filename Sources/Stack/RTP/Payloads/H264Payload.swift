import Wire

/// The NAL unit types that matter to the payload format (H.264 table 7-1, RFC 6184 table 1).
package struct H264UnitType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue & 0x1f }

  /// A slice of a picture that is not an IDR picture.
  package static let slice = H264UnitType(rawValue: 1)
  /// A slice of an IDR picture.
  package static let instantRefreshSlice = H264UnitType(rawValue: 5)
  package static let sequenceParameters = H264UnitType(rawValue: 7)
  package static let pictureParameters = H264UnitType(rawValue: 8)
  package static let accessUnitDelimiter = H264UnitType(rawValue: 9)
  /// Supplemental enhancement information.
  package static let supplement = H264UnitType(rawValue: 6)
  /// STAP-A: several units in one packet (RFC 6184 section 5.7.1).
  package static let aggregation = H264UnitType(rawValue: 24)
  /// FU-A: a fragment of a unit (RFC 6184 section 5.8).
  package static let fragment = H264UnitType(rawValue: 28)

  /// Whether the type is defined by H.264 itself rather than by the payload format.
  var isPlain: Bool { (1...23).contains(rawValue) }
  /// Whether a unit of this type marks a key frame.
  var isKey: Bool { self == .instantRefreshSlice || self == .sequenceParameters }
}

/// The contents of an H.264 packet as part of a byte stream with start codes (RFC 6184, H.264 annex
/// B), in packetization mode 0 or 1.
package struct H264Payload: Hashable, Sendable {
  package static let startCode: [UInt8] = [0, 0, 0, 1]

  /// Complete units, or the next part of a fragmented unit.
  package private(set) var bytes: [UInt8] = []
  /// The first unit's type; nil if the packet continues a unit.
  package private(set) var firstUnit: H264UnitType?
  /// Whether this packet shows that a decoder can start with its frame.
  package private(set) var isKey = false

  /// Parses a payload; nil if it is malformed or of another packetization mode.
  package init?(_ payload: RawSpan) {
    guard payload.byteCount > 0 else { return nil }
    let type = H264UnitType(rawValue: payload.byte(at: 0))
    switch type {
    case .aggregation:
      var reader = ByteReader(payload)
      guard (try? reader.uint8()) != nil, (try? append(aggregated: &reader)) != nil,
        !bytes.isEmpty
      else { return nil }
    case .fragment: guard append(fragment: payload) else { return nil }
    default:
      guard type.isPlain else { return nil }
      append(unit: payload)
    }
  }

  private mutating func append(unit: RawSpan) {
    let type = H264UnitType(rawValue: unit.byte(at: 0))
    if bytes.isEmpty {
      firstUnit = type
      bytes.reserveCapacity(H264Payload.startCode.count + unit.byteCount)
    }
    if type.isKey { isKey = true }
    bytes += H264Payload.startCode
    bytes += [UInt8](unit)
  }

  private mutating func append(aggregated reader: inout ByteReader) throws(ReadError) {
    while !reader.isAtEnd {
      let unit = try reader.span(Int(try reader.uint16()))
      guard unit.byteCount > 0, H264UnitType(rawValue: unit.byte(at: 0)).isPlain else {
        throw .malformed
      }
      append(unit: unit)
    }
  }

  private mutating func append(fragment: RawSpan) -> Bool {
    guard fragment.byteCount > 2 else { return false }
    let header = fragment.byte(at: 1)
    let type = H264UnitType(rawValue: header)
    guard type.isPlain else { return false }
    isKey = type.isKey
    bytes.reserveCapacity(fragment.byteCount + H264Payload.startCode.count)
    if header & 0x80 != 0 {
      firstUnit = type
      bytes += H264Payload.startCode
      bytes.append(fragment.byte(at: 0) & 0xe0 | type.rawValue)
    }
    bytes += [UInt8](fragment.extracting(2..<fragment.byteCount))
    return true
  }

  // MARK: Byte streams

  static func look(_ stream: RawSpan) -> FrameLook {
    var look = FrameLook()
    for unit in units(of: stream) {
      let header = stream.byte(at: unit.lowerBound)
      switch H264UnitType(rawValue: header) {
      case .slice:
        look.hasFrame = true
        // `nal_ref_idc` is 0 if no other frame refers to this one (H.264 section 7.4.1).
        if header & 0x60 != 0 { look.isReference = true }
      case .instantRefreshSlice:
        (look.hasFrame, look.isKey, look.isReference) = (true, true, true)
      case .sequenceParameters:
        guard let read = try? H264SequenceParameters(parsing: stream.extracting(unit)) else {
          continue
        }
        look.size = (read.width, read.height)
      default: break
      }
    }
    return look
  }

  /// Returns the units' ranges, without start codes and the zero bytes between them.
  package static func units(of stream: RawSpan) -> [Range<Int>] {
    var units: [Range<Int>] = []
    var begin: Int?
    var zeros = 0
    for offset in 0..<stream.byteCount {
      let byte = stream.byte(at: offset)
      if byte == 1, zeros >= 2 {
        if let begin, begin < offset - zeros { units.append(begin..<offset - zeros) }
        begin = offset + 1
      }
      zeros = byte == 0 ? zeros + 1 : 0
    }
    if let begin, begin < stream.byteCount - zeros {
      units.append(begin..<stream.byteCount - zeros)
    }
    return units
  }
}

extension PayloadShare {
  /// Packetizes a byte stream as single units and FU-A fragments (RFC 6184 sections 5.6 and 5.8);
  /// empty if a unit is too large and fragments are not allowed.
  static func h264(_ frame: EncodedFrame, limit: Int, fragments: Bool) -> [PayloadShare] {
    let bytes = frame.bytes.span.bytes
    var shares: [PayloadShare] = []
    for unit in H264Payload.units(of: bytes) {
      if unit.count <= limit {
        shares.append(PayloadShare(prefix: .none, range: unit))
        continue
      }
      guard fragments else { return [] }
      let header = bytes.byte(at: unit.lowerBound)
      // A fragment's header contains the unit's header, so the unit's own header is not sent.
      let body = unit.dropFirst()
      let split = PayloadSplit(length: body.count, limit: limit - PayloadPrefix.fragmentLength)
      for part in 0..<split.count {
        let range = split[part]
        shares.append(
          PayloadShare(
            prefix: .h264Fragment(
              unitHeader: header, isFirst: part == 0, isLast: part == split.count - 1),
            range: body.lowerBound + range.lowerBound..<body.lowerBound + range.upperBound))
      }
    }
    return shares
  }
}

// MARK: - H264Profile

/// An H.264 profile; several byte patterns can denote it (RFC 6184 section 8.1, table 5).
package enum H264Profile: Hashable, Sendable {
  case constrainedBaseline
  case baseline
  case main
  case extended
  case high
  case constrainedHigh
  /// Any other profile: `profile_idc` and the `profile-iop` byte.
  case other(UInt8, UInt8)

  /// Byte patterns: `profile_idc`, the relevant constraint bits, and their values.
  private static let spellings: [(idc: UInt8, mask: UInt8, bits: UInt8, profile: H264Profile)] = [
    (0x42, 0x4f, 0x40, .constrainedBaseline), (0x4d, 0x8f, 0x80, .constrainedBaseline),
    (0x58, 0xcf, 0xc0, .constrainedBaseline), (0x42, 0x4f, 0x00, .baseline),
    (0x58, 0xcf, 0x80, .baseline), (0x4d, 0xaf, 0x00, .main), (0x58, 0xcf, 0x00, .extended),
    (0x64, 0xff, 0x00, .high), (0x64, 0xff, 0x0c, .constrainedHigh),
  ]

  init(idc: UInt8, constraints: UInt8) {
    self =
      Self.spellings.first { $0.idc == idc && constraints & $0.mask == $0.bits }?.profile
      ?? .other(idc, constraints)
  }
}

/// The profile and level in H.264's fmtp parameter `profile-level-id` (RFC 6184 section 8.1).
package struct H264ProfileLevelID: Hashable, Sendable {
  /// The value that browsers assume when the parameter is missing: constrained baseline, level 3.1.
  package static let usual = "42e01f"

  package var profile: H264Profile
  /// The level times ten: 31 for level 3.1.
  package var level: UInt8

  /// Parses six hexadecimal digits; nil for anything else.
  package init?(_ text: String) {
    guard text.utf8.count == 6, let number = UInt32(text, radix: 16) else { return nil }
    profile = H264Profile(
      idc: UInt8(number >> 16), constraints: UInt8(truncatingIfNeeded: number >> 8))
    level = UInt8(truncatingIfNeeded: number)
  }
}

extension FormatRules {
  /// The rules for H.264, whose formats differ by packetization mode and profile.
  ///
  /// An answer repeats the peer's `profile-level-id`: levels may differ, and every level can be
  /// received (RFC 6184 section 8.2.2).
  static let h264 = FormatRules(
    variant: { h264Variant($0) },
    answer: { parameters in
      guard case .h264(let mode, _) = h264Variant(parameters) else { return nil }
      let id = CodecFormat.value(of: "profile-level-id", in: parameters)
      return h264(id?.lowercased() ?? H264ProfileLevelID.usual, mode: mode)
    })

  private static func h264Variant(_ parameters: String) -> CodecFormat.Variant? {
    let mode = CodecFormat.value(of: "packetization-mode", in: parameters) ?? "0"
    // Mode 2, which sends units out of order, is refused; no browser uses it.
    guard let mode = UInt8(mode), mode < 2,
      let id = H264ProfileLevelID(
        CodecFormat.value(of: "profile-level-id", in: parameters) ?? H264ProfileLevelID.usual)
    else { return nil }
    return .h264(packetizationMode: mode, id.profile)
  }

  /// Returns the H.264 fmtp value, with its parameters in the order that browsers use.
  static func h264(_ profileLevelID: String, mode: UInt8) -> String {
    "level-asymmetry-allowed=1;packetization-mode=\(mode);profile-level-id=\(profileLevelID)"
  }
}

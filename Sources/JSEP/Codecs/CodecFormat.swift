/// What two descriptions must have in common for a payload format to be the same on both sides
/// (RFC 3264 section 6.1).
package struct CodecFormat: Hashable, Sendable {
  /// What tells formats of one encoding name apart.
  package enum Variant: Hashable, Sendable {
    case none
    /// The `profile-id` of VP9 (RFC 9628 section 7).
    case profile(String)
    /// The packetization mode and the profile of H.264; its level may differ (RFC 6184 section
    /// 8.2.2).
    case h264(packetizationMode: UInt8, H264Profile)
  }

  /// The encoding name in lower case.
  package var name: String
  package var variant: Variant

  /// Reads the value of an fmtp line; nil when there is no such format.
  package init?(name: String, parameters: String) {
    self.name = name.lowercased()
    switch self.name {
    case "vp9": variant = .profile(Self.value(of: "profile-id", in: parameters) ?? "0")
    case "h264":
      let mode = Self.value(of: "packetization-mode", in: parameters) ?? "0"
      // Mode 2 sends units out of order, which no browser does.
      guard let mode = UInt8(mode), mode < 2,
        let id = H264ProfileLevelID(
          Self.value(of: "profile-level-id", in: parameters) ?? H264ProfileLevelID.usual)
      else { return nil }
      variant = .h264(packetizationMode: mode, id.profile)
    default: variant = .none
    }
  }

  /// A parameter of an fmtp value: `name=value;name=value`.
  static func value(of name: String, in parameters: String) -> String? {
    for part in parameters.split(separator: ";") {
      let pair = part.split(separator: "=", maxSplits: 1)
      guard pair.count == 2, trimmed(pair[0]).lowercased() == name else { continue }
      return String(trimmed(pair[1]))
    }
    return nil
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var text = text
    while text.first == " " { text.removeFirst() }
    while text.last == " " { text.removeLast() }
    return text
  }
}

/// A profile of H.264, which has several spellings (RFC 6184 section 8.1, table 5).
package enum H264Profile: Hashable, Sendable {
  case constrainedBaseline
  case baseline
  case main
  case extended
  case high
  case constrainedHigh
  /// Any other: `profile_idc` and the bits of `profile-iop`.
  case other(UInt8, UInt8)

  /// Each spelling: `profile_idc`, which constraint bits count, and what they are.
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

/// The parameter `profile-level-id` of H.264.
package struct H264ProfileLevelID: Hashable, Sendable {
  /// What browsers take where none is given: constrained baseline, level 3.1.
  static let usual = "42e01f"

  package var profile: H264Profile
  /// Ten times the level.
  package var level: UInt8

  /// Reads six hexadecimal digits.
  package init?(_ text: String) {
    guard text.utf8.count == 6, let number = UInt32(text, radix: 16) else { return nil }
    profile = H264Profile(
      idc: UInt8(number >> 16), constraints: UInt8(truncatingIfNeeded: number >> 8))
    level = UInt8(truncatingIfNeeded: number)
  }
}

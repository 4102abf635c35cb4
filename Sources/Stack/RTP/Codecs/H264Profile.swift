/// A profile of H.264; several byte patterns mean the same one (RFC 6184 section 8.1, table 5).
package enum H264Profile: Hashable, Sendable {
  case constrainedBaseline
  case baseline
  case main
  case extended
  case high
  case constrainedHigh
  /// Any other profile: `profile_idc` and the bits of `profile-iop`.
  case other(UInt8, UInt8)

  /// The byte patterns: `profile_idc`, the constraint bits that count, and their values.
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
  /// What browsers assume if the parameter is missing: constrained baseline, level 3.1.
  package static let usual = "42e01f"

  package var profile: H264Profile
  /// Ten times the level.
  package var level: UInt8

  /// Parses six hexadecimal digits.
  package init?(_ text: String) {
    guard text.utf8.count == 6, let number = UInt32(text, radix: 16) else { return nil }
    profile = H264Profile(
      idc: UInt8(number >> 16), constraints: UInt8(truncatingIfNeeded: number >> 8))
    level = UInt8(truncatingIfNeeded: number)
  }
}

extension FormatRules {
  /// Formats differ in packetization mode and profile.
  ///
  /// The level is up to each side, because any can be received (RFC 6184 section 8.2.2).
  static let h264 = FormatRules(
    variant: { h264Variant($0) },
    answer: { parameters in
      guard case .h264(let mode, _) = h264Variant(parameters) else { return nil }
      let id = CodecFormat.value(of: "profile-level-id", in: parameters)
      return h264(id?.lowercased() ?? H264ProfileLevelID.usual, mode: mode)
    })

  private static func h264Variant(_ parameters: String) -> CodecFormat.Variant? {
    let mode = CodecFormat.value(of: "packetization-mode", in: parameters) ?? "0"
    // Mode 2 sends units out of order; no browser does.
    guard let mode = UInt8(mode), mode < 2,
      let id = H264ProfileLevelID(
        CodecFormat.value(of: "profile-level-id", in: parameters) ?? H264ProfileLevelID.usual)
    else { return nil }
    return .h264(packetizationMode: mode, id.profile)
  }

  /// The fmtp value of H.264 in the order that browsers use.
  static func h264(_ profileLevelID: String, mode: UInt8) -> String {
    "level-asymmetry-allowed=1;packetization-mode=\(mode);profile-level-id=\(profileLevelID)"
  }
}

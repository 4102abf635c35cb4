/// An SRTP profile that can be negotiated, by its IANA name (RFC 5764 section 4.1.2, RFC 7714
/// section 14.2).
public enum SRTPProtection: String, Hashable, Sendable, Codable, CaseIterable {
  /// AES-128 in Galois counter mode.
  case aeadAES128GCM = "SRTP_AEAD_AES_128_GCM"
  /// AES-256 in Galois counter mode.
  case aeadAES256GCM = "SRTP_AEAD_AES_256_GCM"
  /// AES-128 in counter mode with HMAC-SHA1, which every peer must support.
  case aes128CMSHA1_80 = "SRTP_AES128_CM_HMAC_SHA1_80"

  /// The default offer, in order of preference.
  public static let preferred: [SRTPProtection] = [
    .aeadAES128GCM, .aeadAES256GCM, .aes128CMSHA1_80,
  ]

  /// OpenSSL's name, which differs for the oldest one.
  var libraryName: String {
    self == .aes128CMSHA1_80 ? "SRTP_AES128_CM_SHA1_80" : rawValue
  }
}

extension SRTPProtection {
  /// The profile's number on the wire.
  package var profile: SRTPProfile {
    switch self {
    case .aeadAES128GCM: .aeadAES128GCM
    case .aeadAES256GCM: .aeadAES256GCM
    case .aes128CMSHA1_80: .aes128CMSHA1_80
    }
  }

  /// The name of a profile; nil if it cannot be negotiated here.
  package init?(_ profile: SRTPProfile) {
    guard let known = Self.allCases.first(where: { $0.profile == profile }) else { return nil }
    self = known
  }
}

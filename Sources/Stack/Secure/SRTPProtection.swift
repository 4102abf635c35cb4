/// An SRTP profile that can be negotiated, by its IANA name (RFC 5764 section 4.1.2, RFC 7714
/// section 14.2).
public enum SRTPProtection: String, Hashable, Sendable, Codable, CaseIterable {
  /// AES in Galois counter mode with keys of 128 bits.
  case aeadAES128GCM = "SRTP_AEAD_AES_128_GCM"
  /// AES in Galois counter mode with keys of 256 bits.
  case aeadAES256GCM = "SRTP_AEAD_AES_256_GCM"
  /// AES in counter mode with HMAC-SHA1, the profile that every peer must know.
  case aes128CMSHA1_80 = "SRTP_AES128_CM_HMAC_SHA1_80"

  /// What is offered unless something else is asked for, the preferred one first.
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

  /// What a profile is called that can be negotiated here; nil for any other.
  package init?(_ profile: SRTPProfile) {
    guard let known = Self.allCases.first(where: { $0.profile == profile }) else { return nil }
    self = known
  }
}

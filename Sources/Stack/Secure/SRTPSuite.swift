/// The protection of SRTP and SRTCP packets: everything libsrtp2 supports, by the names of SDES
/// (RFC 4568 section 6.2, RFC 6188 section 5, RFC 7714 section 14).
package enum SRTPSuite: String, Hashable, Sendable, CaseIterable {
  case aes128CMSHA1_80 = "AES_CM_128_HMAC_SHA1_80"
  case aes128CMSHA1_32 = "AES_CM_128_HMAC_SHA1_32"
  case aes192CMSHA1_80 = "AES_192_CM_HMAC_SHA1_80"
  case aes192CMSHA1_32 = "AES_192_CM_HMAC_SHA1_32"
  case aes256CMSHA1_80 = "AES_256_CM_HMAC_SHA1_80"
  case aes256CMSHA1_32 = "AES_256_CM_HMAC_SHA1_32"
  case aeadAES128GCM = "AEAD_AES_128_GCM"
  case aeadAES256GCM = "AEAD_AES_256_GCM"
  /// With 8-byte tags, from drafts only.
  case aeadAES128GCM8 = "AEAD_AES_128_GCM_8"
  case aeadAES256GCM8 = "AEAD_AES_256_GCM_8"
  /// Authenticated but not encrypted.
  case nullSHA1_80 = "NULL_HMAC_SHA1_80"
  case nullSHA1_32 = "NULL_HMAC_SHA1_32"

  /// The suite that DTLS-SRTP negotiated; nil if the profile is not supported.
  package init?(_ profile: SRTPProfile) {
    switch profile {
    case .aes128CMSHA1_80: self = .aes128CMSHA1_80
    case .aes128CMSHA1_32: self = .aes128CMSHA1_32
    case .nullSHA1_80: self = .nullSHA1_80
    case .nullSHA1_32: self = .nullSHA1_32
    case .aeadAES128GCM: self = .aeadAES128GCM
    case .aeadAES256GCM: self = .aeadAES256GCM
    default: return nil
    }
  }

  /// The length of a master key in bytes.
  package var keyLength: Int {
    switch self {
    case .aes128CMSHA1_80, .aes128CMSHA1_32, .aeadAES128GCM, .aeadAES128GCM8: 16
    // Nothing is encrypted, but the authentication key is derived from as many bytes.
    case .nullSHA1_80, .nullSHA1_32: 16
    case .aes192CMSHA1_80, .aes192CMSHA1_32: 24
    case .aes256CMSHA1_80, .aes256CMSHA1_32, .aeadAES256GCM, .aeadAES256GCM8: 32
    }
  }

  /// The length of a master salt in bytes (RFC 3711 section 8.2, RFC 7714 section 12).
  package var saltLength: Int { isAEAD ? 12 : 14 }

  /// The length of the authentication tag of RTP packets in bytes.
  package var tagLength: Int {
    switch self {
    case .aes128CMSHA1_80, .aes192CMSHA1_80, .aes256CMSHA1_80, .nullSHA1_80: 10
    case .aes128CMSHA1_32, .aes192CMSHA1_32, .aes256CMSHA1_32, .nullSHA1_32: 4
    case .aeadAES128GCM, .aeadAES256GCM: 16
    case .aeadAES128GCM8, .aeadAES256GCM8: 8
    }
  }

  /// The length of the RTCP tag in bytes, which is never the short one (RFC 5764 section 4.1.2).
  package var controlTagLength: Int { isAEAD ? tagLength : 10 }

  package var isAEAD: Bool {
    switch self {
    case .aeadAES128GCM, .aeadAES256GCM, .aeadAES128GCM8, .aeadAES256GCM8: true
    default: false
    }
  }
}

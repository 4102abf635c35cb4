import CSRTP
import CSRTPCiphers

/// A libsrtp session: one direction with all of its streams, each created with its first packet.
///
/// A class, because the Swift 6.3 optimiser crashes on a non-copyable member of a type that other
/// modules destroy.
final class SRTPSession {
  let handle: srtp_t?
  private let suite: SRTPSuite
  private let key: [UInt8]
  private let identifier: [UInt8]
  /// Decrypts RTCP whose identifier has been removed; nil unless libsrtp would look for the
  /// identifier in the wrong place.
  ///
  /// libsrtp expects the identifier before a tag as long as RTP's, although RTCP's tag may be
  /// longer.
  private let control: SRTPSession?

  /// libsrtp, initialised once per process.
  private static let library: (isReady: Bool, replacedCiphers: Int32) = {
    guard srtp_init() == srtp_err_status_ok else { return (false, 0) }
    retainCiphers()
    // If libsrtp does not accept OpenSSL's ciphers, its own ciphers compute the same bytes more
    // slowly.
    return (true, csrtpciphers_use_openssl())
  }()

  /// Creates a session that is never freed.
  ///
  /// On Debian, libsrtp starts NSS with a process's first cipher and shuts it down with the last.
  /// That would cost milliseconds each time that a process's only session is created and freed.
  private static func retainCiphers() {
    let suite = SRTPSuite.aes128CMSHA1_80
    var kept: srtp_t?
    let key = [UInt8](repeating: 0, count: suite.keyLength + suite.saltLength)
    _ = withPolicy(suite, key, []) { policy in
      policy.ssrc.type = ssrc_any_outbound
      return srtp_create(&kept, &policy)
    }
  }

  /// The number of ciphers that OpenSSL computes instead of libsrtp: AES-GCM with 128- and 256-bit
  /// keys.
  static var replacedCiphers: Int { Int(library.replacedCiphers) }

  /// Creates a session from a master key followed by its salt; packets contain `identifier` unless
  /// it is empty (MKI, RFC 3711 section 3.1).
  ///
  /// - Parameter findsIdentifiers: whether the identifier is also found in RTCP if its tag is
  ///   longer than RTP's.
  init(
    _ suite: SRTPSuite, key: [UInt8], ssrcs: srtp_ssrc_type_t, identifier: [UInt8] = [],
    findsIdentifiers: Bool = true
  ) throws(SecureError) {
    guard Self.library.isReady else { throw SecureError(reason: "libsrtp cannot be initialised") }
    let length = suite.keyLength + suite.saltLength
    guard key.count == length else {
      throw SecureError(
        reason: "an SRTP key and salt have \(key.count) bytes instead of \(length)")
    }
    self.suite = suite
    self.key = key
    self.identifier = identifier
    var made: srtp_t?
    let status = Self.withPolicy(suite, key, identifier) { policy in
      policy.ssrc.type = ssrcs
      return srtp_create(&made, &policy)
    }
    guard status == srtp_err_status_ok, let made else {
      throw SecureError(reason: "libsrtp cannot make a session: status \(status.rawValue)")
    }
    handle = made
    let needsControl =
      findsIdentifiers && !identifier.isEmpty && suite.tagLength != suite.controlTagLength
    control = needsControl ? try SRTPSession(suite, key: key, ssrcs: ssrcs) : nil
  }

  deinit { _ = srtp_dealloc(handle) }

  /// Starts a stream at a rollover counter; returns false if libsrtp refuses.
  func begin(ssrc: UInt32, rollover: UInt32) -> Bool {
    let status = Self.withPolicy(suite, key, identifier) { policy in
      policy.ssrc.type = ssrc_specific
      policy.ssrc.value = ssrc
      return srtp_add_stream(handle, &policy)
    }
    guard status == srtp_err_status_ok else { return false }
    return srtp_set_stream_roc(handle, ssrc, rollover) == srtp_err_status_ok
  }

  /// Continues a stream at a rollover counter, whether or not it has sent anything.
  func proceed(ssrc: UInt32, to rollover: UInt32) {
    guard srtp_set_stream_roc(handle, ssrc, rollover) != srtp_err_status_ok else { return }
    _ = begin(ssrc: ssrc, rollover: rollover)
  }

  /// Encrypts a packet in place; after an error its length is unchanged.
  func protect(_ packet: inout [UInt8], isRTCP: Bool) -> srtp_err_status_t {
    let plain = packet.count
    var length = Int32(truncatingIfNeeded: plain)
    packet += [UInt8](repeating: 0, count: SRTPContext.overhead + identifier.count)
    let hasIdentifier: UInt32 = identifier.isEmpty ? 0 : 1
    let status = packet.withUnsafeMutableBytes { bytes in
      isRTCP
        ? srtp_protect_rtcp_mki(handle, bytes.baseAddress, &length, hasIdentifier, 0)
        : srtp_protect_mki(handle, bytes.baseAddress, &length, hasIdentifier, 0)
    }
    packet.removeLast(packet.count - (status == srtp_err_status_ok ? Int(length) : plain))
    return status
  }

  func end(ssrc: UInt32) { _ = srtp_remove_stream(handle, ssrc.bigEndian) }

  @inline(__always)
  func unprotect(_ packet: inout [UInt8], isRTCP: Bool) -> srtp_err_status_t {
    if isRTCP, let control { return unprotect(&packet, with: control) }
    var length = Int32(truncatingIfNeeded: packet.count)
    let status = packet.withUnsafeMutableBytes { bytes in
      if identifier.isEmpty {
        return isRTCP
          ? srtp_unprotect_rtcp(handle, bytes.baseAddress, &length)
          : srtp_unprotect(handle, bytes.baseAddress, &length)
      }
      return isRTCP
        ? srtp_unprotect_rtcp_mki(handle, bytes.baseAddress, &length, 1)
        : srtp_unprotect_mki(handle, bytes.baseAddress, &length, 1)
    }
    if status == srtp_err_status_ok { packet.removeLast(packet.count - Int(length)) }
    return status
  }

  /// Decrypts an RTCP packet after removing the identifier in front of the tag; the tag does not
  /// cover the identifier (RFC 3711 section 3.4).
  private func unprotect(_ packet: inout [UInt8], with control: SRTPSession) -> srtp_err_status_t {
    let end = packet.count - suite.controlTagLength
    let place = max(0, end - identifier.count)..<max(0, end)
    guard packet[place].elementsEqual(identifier) else { return srtp_err_status_bad_mki }
    var bare = packet
    bare.removeSubrange(place)
    let status = control.unprotect(&bare, isRTCP: true)
    if status == srtp_err_status_ok { packet = bare }
    return status
  }

  /// Returns the minimum packet length in bytes.
  func minimum(isRTCP: Bool) -> Int {
    // SRTCP's 4-byte index is before the tag, or after it with AEAD.
    identifier.count + (isRTCP ? 8 + 4 + suite.controlTagLength : 12 + suite.tagLength)
  }

  /// Calls a closure with a policy; libsrtp derives its session keys immediately and keeps no
  /// pointer to the master key.
  private static func withPolicy(
    _ suite: SRTPSuite, _ key: [UInt8], _ identifier: [UInt8],
    _ body: (inout srtp_policy_t) -> srtp_err_status_t
  ) -> srtp_err_status_t {
    var policy = srtp_policy_t()
    suite.fill(&policy)
    policy.window_size = UInt(SRTPContext.replayWindow)
    // A stream without RTX may repeat packets unchanged.
    policy.allow_repeat_tx = 1
    var key = key
    var identifier = identifier
    return key.withUnsafeMutableBufferPointer { key in
      guard !identifier.isEmpty else {
        policy.key = key.baseAddress
        return body(&policy)
      }
      return identifier.withUnsafeMutableBufferPointer { identifier in
        var master = srtp_master_key_t(
          key: key.baseAddress, mki_id: identifier.baseAddress, mki_size: UInt32(identifier.count))
        return withUnsafeMutablePointer(to: &master) { master in
          var masters: UnsafeMutablePointer<srtp_master_key_t>? = master
          return withUnsafeMutablePointer(to: &masters) { masters in
            policy.keys = masters
            policy.num_master_keys = 1
            return body(&policy)
          }
        }
      }
    }
  }
}

extension SRTPSuite {
  fileprivate func fill(_ policy: inout srtp_policy_t) {
    switch self {
    case .aes128CMSHA1_80, .aes128CMSHA1_32:
      srtp_crypto_policy_set_rtp_default(&policy.rtp)
      srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
    case .aes192CMSHA1_80, .aes192CMSHA1_32:
      srtp_crypto_policy_set_aes_cm_192_hmac_sha1_80(&policy.rtp)
      srtp_crypto_policy_set_aes_cm_192_hmac_sha1_80(&policy.rtcp)
    case .aes256CMSHA1_80, .aes256CMSHA1_32:
      srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80(&policy.rtp)
      srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80(&policy.rtcp)
    case .aeadAES128GCM:
      srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
    case .aeadAES256GCM:
      srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp)
    case .aeadAES128GCM8:
      srtp_crypto_policy_set_aes_gcm_128_8_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_128_8_auth(&policy.rtcp)
    case .aeadAES256GCM8:
      srtp_crypto_policy_set_aes_gcm_256_8_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_256_8_auth(&policy.rtcp)
    case .nullSHA1_80, .nullSHA1_32:
      srtp_crypto_policy_set_null_cipher_hmac_sha1_80(&policy.rtp)
      srtp_crypto_policy_set_null_cipher_hmac_sha1_80(&policy.rtcp)
    }
    // Short tags exist only for RTP (RFC 5764 section 4.1.2).
    policy.rtp.auth_tag_len = Int32(tagLength)
  }
}

// MARK: - SRTPSuite

/// The protection of SRTP and SRTCP packets: everything libsrtp2 supports, by SDES name (RFC 4568
/// section 6.2, RFC 6188 section 5, RFC 7714 section 14).
package enum SRTPSuite: String, Hashable, Sendable, CaseIterable {
  case aes128CMSHA1_80 = "AES_CM_128_HMAC_SHA1_80"
  case aes128CMSHA1_32 = "AES_CM_128_HMAC_SHA1_32"
  case aes192CMSHA1_80 = "AES_192_CM_HMAC_SHA1_80"
  case aes192CMSHA1_32 = "AES_192_CM_HMAC_SHA1_32"
  case aes256CMSHA1_80 = "AES_256_CM_HMAC_SHA1_80"
  case aes256CMSHA1_32 = "AES_256_CM_HMAC_SHA1_32"
  case aeadAES128GCM = "AEAD_AES_128_GCM"
  case aeadAES256GCM = "AEAD_AES_256_GCM"
  /// AES-128-GCM with 8-byte tags, defined only in drafts.
  case aeadAES128GCM8 = "AEAD_AES_128_GCM_8"
  case aeadAES256GCM8 = "AEAD_AES_256_GCM_8"
  /// HMAC-SHA1 without encryption: packets are only authenticated.
  case nullSHA1_80 = "NULL_HMAC_SHA1_80"
  case nullSHA1_32 = "NULL_HMAC_SHA1_32"

  /// Creates the suite that DTLS-SRTP negotiated; nil if the profile is not supported.
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

  /// Master key length in bytes.
  package var keyLength: Int {
    switch self {
    case .aes128CMSHA1_80, .aes128CMSHA1_32, .aeadAES128GCM, .aeadAES128GCM8: 16
    // Nothing is encrypted, but the authentication key is derived from this many bytes.
    case .nullSHA1_80, .nullSHA1_32: 16
    case .aes192CMSHA1_80, .aes192CMSHA1_32: 24
    case .aes256CMSHA1_80, .aes256CMSHA1_32, .aeadAES256GCM, .aeadAES256GCM8: 32
    }
  }

  /// Master salt length in bytes (RFC 3711 section 8.2, RFC 7714 section 12).
  package var saltLength: Int { isAEAD ? 12 : 14 }

  /// RTP authentication tag length in bytes.
  package var tagLength: Int {
    switch self {
    case .aes128CMSHA1_80, .aes192CMSHA1_80, .aes256CMSHA1_80, .nullSHA1_80: 10
    case .aes128CMSHA1_32, .aes192CMSHA1_32, .aes256CMSHA1_32, .nullSHA1_32: 4
    case .aeadAES128GCM, .aeadAES256GCM: 16
    case .aeadAES128GCM8, .aeadAES256GCM8: 8
    }
  }

  /// RTCP tag length in bytes, never the short one (RFC 5764 section 4.1.2).
  package var controlTagLength: Int { isAEAD ? tagLength : 10 }

  package var isAEAD: Bool {
    switch self {
    case .aeadAES128GCM, .aeadAES256GCM, .aeadAES128GCM8, .aeadAES256GCM8: true
    default: false
    }
  }
}

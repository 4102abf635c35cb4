import Crypto
import Secure

/// A cipher suite by its number (IANA, TLS Cipher Suites).
package struct CipherSuite: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16
  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// The IANA name; nil for a number that DTLS of calls does not use.
  package var name: String? { Self.names.first { $0.0 == rawValue }?.1 }

  /// The hash of the key schedule of TLS 1.3, and of the pseudorandom function of TLS 1.2.
  var hash: HashFunction { name?.hasSuffix("_SHA384") ?? false ? .sha384 : .sha256 }

  /// How TLS 1.3 protects records; nil for suites of other versions.
  var cipher: AEADCipher? {
    switch rawValue {
    case 0x1301: .aes128GCM
    case 0x1302: .aes256GCM
    case 0x1303: .chaCha20Poly1305
    default: nil
    }
  }

  private static let names: [(UInt16, String)] = [
    (0x1301, "TLS_AES_128_GCM_SHA256"), (0x1302, "TLS_AES_256_GCM_SHA384"),
    (0x1303, "TLS_CHACHA20_POLY1305_SHA256"),
    (0xc02b, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    (0xc02f, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    (0xc02c, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    (0xc030, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    (0xcca9, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0xcca8, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0xc009, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
    (0xc013, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
    (0xc00a, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"),
    (0xc014, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
    (0xc023, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"),
    (0xc027, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"),
    (0xc024, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384"),
    (0xc028, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"),
    (0x009c, "TLS_RSA_WITH_AES_128_GCM_SHA256"), (0x009d, "TLS_RSA_WITH_AES_256_GCM_SHA384"),
    (0x009e, "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256"),
    (0x009f, "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384"),
    (0xccaa, "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0x002f, "TLS_RSA_WITH_AES_128_CBC_SHA"), (0x0035, "TLS_RSA_WITH_AES_256_CBC_SHA"),
    (0x0033, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA"), (0x0039, "TLS_DHE_RSA_WITH_AES_256_CBC_SHA"),
    (0xc0ac, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM"), (0xc0ae, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8"),
  ]
}

/// The key schedule of DTLS 1.3 as far as it begins with logged secrets (RFC 9147 section 5.9, RFC
/// 8446 sections 7.1 and 7.3).
struct KeySchedule {
  let hash: HashFunction

  /// HKDF-Expand-Label with the prefix of DTLS.
  func expand(_ secret: [UInt8], _ label: String, context: [UInt8] = [], count: Int) -> [UInt8] {
    let label = Array("dtls13".utf8) + Array(label.utf8)
    let info =
      [UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
      + [UInt8(label.count)] + label + [UInt8(context.count)] + context
    return hash.expand(secret, info, count: count)
  }

  /// What an exporter gives for a label without a context (RFC 8446 section 7.5).
  func export(_ exporterSecret: [UInt8], _ label: String, count: Int) -> [UInt8] {
    let derived = expand(exporterSecret, label, context: hash.hash([]), count: hash.length)
    return expand(derived, "exporter", context: hash.hash([]), count: count)
  }
}

import Crypto
import Wire

/// Compares the peer's certificate with the fingerprints of its description (RFC 8122 section 5).
final class CertificateVerifier {
  /// The fingerprints from the peer's description.
  var expected: [CertificateFingerprint] = []
  /// The certificate that matched, in DER.
  private(set) var accepted: [UInt8]?
  /// Why the certificate was refused, as a sentence.
  private(set) var refusal: String?

  func forget() {
    accepted = nil
    refusal = nil
  }

  /// Returns whether a certificate in DER matches, and stores it or the reason why it does not.
  ///
  /// Of several hash functions only the strongest supported one counts, so that a weak one cannot
  /// bypass a strong one.
  func accepts(_ certificate: [UInt8]) -> Bool {
    accepted = nil
    let known = expected.filter { Self.strength.contains($0.algorithm) }
    let strongest = known.max { left, right in rank(left) < rank(right) }
    guard let strongest else {
      refusal = "the peer's description has no fingerprint with a known hash function"
      return false
    }
    let actual = CertificateFingerprint(algorithm: strongest.algorithm, certificate: certificate)
    guard let actual, expected.contains(actual) else {
      refusal =
        "the peer's certificate does not match its description: "
        + "\(strongest.algorithm) is \(actual?.value ?? "unknown")"
      return false
    }
    accepted = certificate
    refusal = nil
    return true
  }

  /// The supported hash functions of RFC 8122, weakest first.
  private static let strength = ["sha-1", "sha-224", "sha-256", "sha-384", "sha-512"]

  private func rank(_ fingerprint: CertificateFingerprint) -> Int {
    Self.strength.firstIndex(of: fingerprint.algorithm) ?? -1
  }
}

extension CertificateFingerprint {
  /// Computes the fingerprint of a certificate in DER; nil if the hash function is unknown.
  package init?(algorithm: String, certificate: [UInt8]) {
    guard let hash = certificateHash(algorithm, certificate) else { return nil }
    let digits = Array("0123456789ABCDEF".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(3 * hash.count)
    for byte in hash {
      if !text.isEmpty { text.append(UInt8(ascii: ":")) }
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    self.init(algorithm: algorithm, value: String(decoding: text, as: UTF8.self))
  }
}

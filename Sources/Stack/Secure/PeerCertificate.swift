import Wire

/// The key type of a certificate (W3C generateCertificate).
public enum CertificateAlgorithm: String, Hashable, Sendable, Codable, CaseIterable {
  /// ECDSA on P-256, the default.
  case ecdsaP256 = "ECDSA-P-256"
  /// RSA with 2048 bits; generating such a key takes up to a second.
  case rsa2048 = "RSA-2048"
}

/// A certificate for one or several connections (W3C RTCCertificate).
///
/// Stored as the seed that its key and everything else is derived from, so that a take naming it
/// can be replayed. The same seed gives the same bytes with the same version of OpenSSL.
public struct PeerCertificate: Hashable, Sendable, Codable {
  /// The key type.
  public let algorithm: CertificateAlgorithm
  /// 64 hexadecimal digits; as secret as the key itself.
  let seed: String
  /// When it was created, as Unix time in seconds.
  public let createdUnixSeconds: Int64
  /// When it expires, as Unix time in seconds (W3C expires).
  public let expiresUnixSeconds: Int64

  /// The default lifetime: 30 days, in seconds.
  public static let defaultLifetimeSeconds: Int64 = 30 * 86_400
  /// The longest lifetime: 365 days, in seconds (W3C generateCertificate).
  public static let lifetimeMaximumSeconds: Int64 = 365 * 86_400

  /// Creates a certificate from 32 secret bytes; fewer are padded with zeros.
  package init(
    algorithm: CertificateAlgorithm, seed: [UInt8], createdUnixSeconds: Int64,
    lifetimeSeconds: Int64
  ) {
    self.algorithm = algorithm
    let seed = (seed + [UInt8](repeating: 0, count: Entropy.seedLength)).prefix(Entropy.seedLength)
    self.seed = hexadecimal(seed)
    self.createdUnixSeconds = createdUnixSeconds
    let lifetime = min(max(lifetimeSeconds, 0), PeerCertificate.lifetimeMaximumSeconds)
    expiresUnixSeconds = createdUnixSeconds + lifetime
  }

  /// Whether it has expired at a Unix time in seconds.
  package func hasExpired(atUnixSeconds now: Int64) -> Bool { expiresUnixSeconds <= now }

  /// The random stream that everything in the certificate is drawn from.
  func entropy() throws(SecureError) -> EntropyStream {
    let digits = seed.utf8.compactMap { digit -> UInt8? in
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
      default: nil
      }
    }
    guard digits.count == 2 * Entropy.seedLength, digits.count == seed.utf8.count else {
      throw SecureError(reason: "the seed of a certificate is not 64 hexadecimal digits")
    }
    let bytes = (0..<Entropy.seedLength).map { digits[2 * $0] << 4 | digits[2 * $0 + 1] }
    return switch algorithm {
    case .ecdsaP256: Entropy(seed: bytes).stream("cert-ecdsa")
    case .rsa2048: Entropy(seed: bytes).stream("cert-rsa")
    }
  }

  /// The certificate in DER.
  package func bytes() throws(SecureError) -> [UInt8] {
    let association = try DTLSAssociation(
      entropy: try entropy(), certificates: [self], profiles: SRTPProtection.preferred)
    return association.certificates.first ?? []
  }
}

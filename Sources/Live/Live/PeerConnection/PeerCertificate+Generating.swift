public import Secure
public import Wire

extension PeerCertificate {
  /// Creates a certificate for `PeerConfiguration.certificates` (W3C generateCertificate).
  ///
  /// Connections that use it show the same fingerprints, in this process and in later ones that
  /// keep it. It holds a secret.
  public static func generate(
    _ algorithm: CertificateAlgorithm = .ecdsaP256,
    lifetimeSeconds: Int64 = PeerCertificate.defaultLifetimeSeconds
  ) -> PeerCertificate {
    PeerCertificate(
      algorithm: algorithm, seed: drawSeed(),
      createdUnixSeconds: TakeClock().wallClock.unixNanosecondsAtZero / 1_000_000_000,
      lifetimeSeconds: lifetimeSeconds)
  }

  /// The sha-256 fingerprint that descriptions state (W3C RTCCertificate.getFingerprints); nil when
  /// OpenSSL refuses to make the certificate.
  public var fingerprint: CertificateFingerprint? {
    guard let bytes = try? bytes() else { return nil }
    return CertificateFingerprint(algorithm: "sha-256", certificate: bytes)
  }
}

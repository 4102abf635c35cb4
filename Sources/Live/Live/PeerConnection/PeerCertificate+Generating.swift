public import Secure
public import Wire

extension PeerCertificate {
  /// Creates a certificate for `PeerConfiguration.certificates` (W3C generateCertificate).
  ///
  /// Connections with it have the same fingerprints, in this process and in later ones that store
  /// it. It contains a secret.
  public static func generate(
    _ algorithm: CertificateAlgorithm = .ecdsaP256,
    lifetimeSeconds: Int64 = PeerCertificate.defaultLifetimeSeconds
  ) -> PeerCertificate {
    PeerCertificate(
      algorithm: algorithm, seed: drawSeed(),
      createdUnixSeconds: TakeClock().wallClock.unixNanosecondsAtZero / 1_000_000_000,
      lifetimeSeconds: lifetimeSeconds)
  }

  /// The sha-256 fingerprint in descriptions (W3C RTCCertificate.getFingerprints); nil if OpenSSL
  /// cannot create the certificate.
  public var fingerprint: CertificateFingerprint? {
    guard let bytes = try? bytes() else { return nil }
    return CertificateFingerprint(algorithm: "sha-256", certificate: bytes)
  }
}

/// The hash of a certificate, which descriptions state and the handshake is held to (RFC 8122
/// section 5).
public struct CertificateFingerprint: Hashable, Sendable {
  /// The hash function's name in lower case: `sha-256`, ...
  public var algorithm: String
  /// The hash in upper-case hexadecimal bytes with colons between.
  public var value: String

  /// Creates a fingerprint; the letters of both may have either case.
  public init(algorithm: String, value: String) {
    self.algorithm = algorithm.lowercased()
    self.value = value.uppercased()
  }
}

/// The hash of a certificate, stated in descriptions and verified in the handshake (RFC 8122
/// section 5).
public struct CertificateFingerprint: Hashable, Sendable {
  /// The hash function's name in lower case: `sha-256`, ...
  public var algorithm: String
  /// The hash in upper-case hexadecimal bytes with colons between.
  public var value: String

  /// Creates a fingerprint; both texts are case-insensitive.
  public init(algorithm: String, value: String) {
    self.algorithm = algorithm.lowercased()
    self.value = value.uppercased()
  }
}

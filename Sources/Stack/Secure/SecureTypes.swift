import Crypto
package import Wire

/// A DTLS transport's state (W3C RTCDtlsTransportState).
public enum DTLSTransportState: String, Hashable, Sendable {
  /// The handshake has not begun.
  case new
  /// The handshake is under way.
  case connecting
  /// Keys are established and the peer's certificate matches the signaled fingerprint.
  case connected
  /// One side closed the association.
  case closed
  /// The handshake failed, the fingerprint differs, or the association broke later.
  case failed
}

/// The DTLS role; the client sends the ClientHello (RFC 5763 section 5).
package enum DTLSRole: String, Sendable {
  case client, server
}

/// An SRTP protection profile (RFC 5764 section 4.1.2, RFC 7714 section 14.2).
package struct SRTPProfile: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16
  package init(rawValue: UInt16) { self.rawValue = rawValue }

  package static let aes128CMSHA1_80 = SRTPProfile(rawValue: 0x0001)
  package static let aes128CMSHA1_32 = SRTPProfile(rawValue: 0x0002)
  package static let nullSHA1_80 = SRTPProfile(rawValue: 0x0005)
  package static let nullSHA1_32 = SRTPProfile(rawValue: 0x0006)
  package static let aeadAES128GCM = SRTPProfile(rawValue: 0x0007)
  package static let aeadAES256GCM = SRTPProfile(rawValue: 0x0008)
}

/// A finished handshake's result.
package struct DTLSResult: Sendable {
  /// The protection of SRTP packets; nil if the peers have no common profile or exchange only data.
  package var profile: SRTPProfile?
  /// The SRTP master key of each direction, followed by its salt.
  package var sendKey: [UInt8]
  package var receiveKey: [UInt8]
  /// The protocol version in four hexadecimal digits, `FEFD` for DTLS 1.2.
  package var version: String
  /// The cipher suite's IANA name.
  package var cipherSuite: String
  package var remoteCertificate: [UInt8]
  /// The issuer certificates that the peer sent, each the issuer of the previous one.
  package var remoteIssuers: [[UInt8]] = []
  /// The local certificate that was presented.
  package var localCertificate: [UInt8]
  /// The secrets that the association's keys are derived from.
  package var secrets: DTLSSecrets

  package init(
    profile: SRTPProfile?, sendKey: [UInt8], receiveKey: [UInt8], version: String,
    cipherSuite: String, remoteCertificate: [UInt8], localCertificate: [UInt8],
    secrets: DTLSSecrets
  ) {
    self.profile = profile
    self.sendKey = sendKey
    self.receiveKey = receiveKey
    self.version = version
    self.cipherSuite = cipherSuite
    self.remoteCertificate = remoteCertificate
    self.localCertificate = localCertificate
    self.secrets = secrets
  }
}

/// A failure inside one of the cryptographic libraries.
package struct SecureError: Error, Hashable, Sendable {
  /// The failure as a sentence, with the library's error code if it has one.
  package var reason: String
  package init(reason: String) { self.reason = reason }
}

// MARK: - SecurityFactory

/// A DTLS implementation: OpenSSL's, or a substitute.
package protocol DTLSTransporting: AnyObject {
  /// The local certificates' SHA-256 fingerprints.
  var fingerprints: [CertificateFingerprint] { get }
  /// The local certificates in DER.
  var certificates: [[UInt8]] { get }
  var state: DTLSTransportState { get }
  /// When the transport needs the input `deadline`; nil if it needs none.
  var deadline: Instant? { get }
  /// Creates another transport for the same peer with the same certificates.
  func another(entropy: EntropyStream) throws(SecureError) -> any DTLSTransporting
  /// Applies one input at an instant and appends the outputs.
  func step(
    _ input: DTLSTransport.Input, at now: Instant, into outbox: inout Outbox<DTLSTransport.Output>)
}

extension DTLSTransport: DTLSTransporting {}

/// Creates DTLS transports and SRTP contexts for a peer.
package protocol SecurityFactory {
  func transport(
    entropy: EntropyStream, wallClock: WallClock, certificates: [PeerCertificate],
    profiles: [SRTPProtection]
  ) throws(SecureError) -> any DTLSTransporting

  /// Creates the SRTP context from a DTLS association's keys; nil if no profile was negotiated.
  func protection(_ result: DTLSResult) throws(SecureError) -> SRTPContext?
}

/// The real libraries: OpenSSL and libsrtp2.
package struct LibrarySecurity: SecurityFactory {
  package init() {}

  package func transport(
    entropy: EntropyStream, wallClock: WallClock, certificates: [PeerCertificate],
    profiles: [SRTPProtection]
  ) throws(SecureError) -> any DTLSTransporting {
    try DTLSTransport(
      entropy: entropy, wallClock: wallClock, certificates: certificates, profiles: profiles)
  }

  package func protection(_ result: DTLSResult) throws(SecureError) -> SRTPContext? {
    guard let profile = result.profile else { return nil }
    return try SRTPContext(
      profile: profile, sendKey: result.sendKey, receiveKey: result.receiveKey)
  }
}

// MARK: - PeerCertificate

/// A certificate's key type (W3C generateCertificate).
public enum CertificateAlgorithm: String, Hashable, Sendable, Codable, CaseIterable {
  /// ECDSA on P-256, the default.
  case ecdsaP256 = "ECDSA-P-256"
  /// RSA with 2048 bits; generating such a key takes up to a second.
  case rsa2048 = "RSA-2048"
}

/// A certificate for one or several connections (W3C RTCCertificate).
///
/// Only a seed is stored, from which the key and the rest are derived, so that takes made with the
/// certificate can be replayed. The same seed produces the same bytes with the same OpenSSL
/// version.
public struct PeerCertificate: Hashable, Sendable, Codable {
  /// The type of the certificate's key.
  public let algorithm: CertificateAlgorithm
  /// The seed in 64 hexadecimal digits; as secret as the key itself.
  let seed: String
  /// When the certificate was created, as Unix time in seconds.
  public let createdUnixSeconds: Int64
  /// When the certificate expires, as Unix time in seconds (W3C expires).
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

  package func hasExpired(atUnixSeconds now: Int64) -> Bool { expiresUnixSeconds <= now }

  /// Returns the random stream that the whole certificate is drawn from.
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

  /// Returns the certificate in DER.
  package func bytes() throws(SecureError) -> [UInt8] {
    let association = try DTLSAssociation(
      entropy: try entropy(), certificates: [self], profiles: SRTPProtection.preferred)
    return association.certificates.first ?? []
  }
}

// MARK: - CertificateVerifier

/// Compares the peer's certificate with the fingerprints in its description (RFC 8122 section 5).
final class CertificateVerifier {
  /// The fingerprints from the peer's description.
  var expected: [CertificateFingerprint] = []
  /// The last checked certificate in DER; nil if it did not match, or if none has been checked.
  private(set) var accepted: [UInt8]?
  /// The reason for refusing a certificate, as a sentence; nil if none was refused.
  private(set) var refusal: String?

  func forget() {
    accepted = nil
    refusal = nil
  }

  /// Checks a certificate in DER against the fingerprints; stores the certificate if it matches, or
  /// else the reason for refusing it.
  ///
  /// If the fingerprints use several hash functions, only the strongest supported one is compared,
  /// so that a weak one cannot bypass a strong one.
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

  /// The supported hash functions from RFC 8122, weakest first.
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

import Foundation
import Live
import Secure

/// The certificate that identifies a connection.
///
/// It is generated here and stored as the seed of its key, which a take records too: an imported
/// certificate could not be replayed, so none is accepted.
public final class RTCCertificate: Sendable {
  let native: PeerCertificate

  init(_ native: PeerCertificate) { self.native = native }

  /// Creates a certificate; nil for unsupported parameters.
  /// - Parameter params: `name`, `ECDSA` (the default) or `RSASSA-PKCS1-v1_5`; `expires`, the
  ///   lifetime in seconds, at most a year.
  public static func generate(withParams params: [AnyHashable: Any]) -> RTCCertificate? {
    let algorithm: CertificateAlgorithm
    switch params["name"] as? String ?? "ECDSA" {
    case "ECDSA": algorithm = .ecdsaP256
    case "RSASSA-PKCS1-v1_5": algorithm = .rsa2048
    default: return nil
    }
    var lifetime = PeerCertificate.defaultLifetimeSeconds
    switch params["expires"] {
    case nil: break
    case let seconds as NSNumber: lifetime = seconds.int64Value
    case let seconds as Int: lifetime = Int64(seconds)
    case let seconds as Double: lifetime = Int64(exactly: seconds.rounded()) ?? 0
    default: return nil
    }
    guard lifetime > 0 else { return nil }
    let made = PeerCertificate.generate(algorithm, lifetimeSeconds: lifetime)
    return made.fingerprint == nil ? nil : RTCCertificate(made)
  }

  /// The certificate in PEM (RFC 7468 section 5); empty if OpenSSL fails.
  public var certificate: String {
    guard let bytes = try? native.bytes() else { return "" }
    let text = Data(bytes).base64EncodedString(
      options: [.lineLength64Characters, .endLineWithLineFeed])
    return "-----BEGIN CERTIFICATE-----\n\(text)\n-----END CERTIFICATE-----\n"
  }
}

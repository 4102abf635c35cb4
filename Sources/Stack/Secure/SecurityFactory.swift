package import Wire

/// DTLS as the stack drives it: that of OpenSSL, or one that stands in for it.
package protocol DTLSTransporting: AnyObject {
  /// The fingerprints of the own certificates, sha-256.
  var fingerprints: [CertificateFingerprint] { get }
  /// The own certificates in DER.
  var certificates: [[UInt8]] { get }
  var state: DTLSTransportState { get }
  /// When the transport wants its deadline input.
  var deadline: Instant? { get }
  /// Another transport of the same peer: it shows the same certificates.
  func another(entropy: EntropyStream) throws(SecureError) -> any DTLSTransporting
  /// Applies one input at an instant and appends what follows from it.
  func step(
    _ input: DTLSTransport.Input, at now: Instant, into outbox: inout Outbox<DTLSTransport.Output>)
}

extension DTLSTransport: DTLSTransporting {}

/// What secures the transport of a peer.
package protocol SecurityFactory {
  /// Creates the DTLS transport with its certificates.
  func transport(
    entropy: EntropyStream, wallClock: WallClock, certificates: [PeerCertificate],
    profiles: [SRTPProtection]
  ) throws(SecureError) -> any DTLSTransporting

  /// Creates the protection of media with the keys that DTLS agreed on; nil when it agreed on none.
  func protection(_ result: DTLSResult) throws(SecureError) -> SRTPContext?
}

/// The libraries: OpenSSL and libsrtp2.
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

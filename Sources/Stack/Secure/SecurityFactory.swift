package import Wire

/// A DTLS implementation: OpenSSL's, or a substitute.
package protocol DTLSTransporting: AnyObject {
  /// The fingerprints of the local certificates, sha-256.
  var fingerprints: [CertificateFingerprint] { get }
  /// The local certificates in DER.
  var certificates: [[UInt8]] { get }
  var state: DTLSTransportState { get }
  /// When the transport wants its deadline input.
  var deadline: Instant? { get }
  /// Creates another transport of the same peer with the same certificates.
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

  /// Creates the SRTP context with the keys of a DTLS association; nil if it negotiated none.
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

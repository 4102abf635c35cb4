/// W3C RTCDtlsTransportState.
public enum DTLSTransportState: String, Hashable, Sendable {
  /// The handshake has not begun.
  case new
  /// The handshake is under way.
  case connecting
  /// Keys are established and the peer's certificate matches the signaled fingerprint.
  case connected
  /// One side closed the association.
  case closed
  /// The handshake failed, or the fingerprint differs.
  case failed
}

/// Which side sends the ClientHello (RFC 5763 section 5).
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

/// The result of a finished handshake.
package struct DTLSResult: Sendable {
  /// How SRTP packets are protected; nil if the peers have no profile in common or exchange only
  /// data.
  package var profile: SRTPProfile?
  /// The keys and salts for sending and receiving.
  package var sendKey: [UInt8]
  package var receiveKey: [UInt8]
  /// Four hexadecimal digits, `FEFD` for DTLS 1.2.
  package var version: String
  /// The IANA name of the cipher suite.
  package var cipherSuite: String
  package var remoteCertificate: [UInt8]
  /// What the peer showed behind it, each the issuer of the one before.
  package var remoteIssuers: [[UInt8]] = []
  /// The own certificate that was shown.
  package var localCertificate: [UInt8]
  /// The secrets from which the association's keys are derived.
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

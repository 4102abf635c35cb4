/// W3C RTCDtlsTransportState.
public enum DTLSTransportState: String, Hashable, Sendable {
  /// The handshake has not begun.
  case new
  /// The handshake is under way.
  case connecting
  /// Keys were agreed and the peer's certificate has the signaled fingerprint.
  case connected
  /// The peer or this side closed the association.
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

/// What a finished handshake established.
package struct DTLSResult: Sendable {
  /// How SRTP packets are protected; nil when the two sides have no profile in common, or want none
  /// because all they exchange is data.
  package var profile: SRTPProfile?
  /// The key and salt for what this side sends, and for what it receives.
  package var sendKey: [UInt8]
  package var receiveKey: [UInt8]
  /// Four hexadecimal digits, `FEFD` for DTLS 1.2.
  package var version: String
  /// The IANA name of the cipher suite.
  package var cipherSuite: String
  /// The peer's certificate.
  package var remoteCertificate: [UInt8]
  /// The local certificate that was shown.
  package var localCertificate: [UInt8]
  /// What the keys of the association derive from.
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

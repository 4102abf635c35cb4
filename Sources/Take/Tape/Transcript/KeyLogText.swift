import FoundationEssentials
package import Peer
import Secure
import Wire

/// The secrets of a DTLS association as the detail of a `keylog` event.
///
/// Randoms and the master secret are hexadecimal, as in the key logs that other tools read;
/// certificates are base64, as in stats.
package struct KeyLogText: Codable {
  private var transport: Int?
  private var clientRandom: String
  private var serverRandom: String
  private var masterSecret: String
  private var localCertificate: Data
  private var remoteCertificate: Data
  /// nil where the peer showed its certificate alone.
  private var remoteIssuers: [Data]?

  init(_ log: KeyLog) {
    transport = log.transport == 0 ? nil : log.transport
    clientRandom = hexadecimal(log.secrets.clientRandom)
    serverRandom = hexadecimal(log.secrets.serverRandom)
    masterSecret = hexadecimal(log.secrets.masterSecret)
    localCertificate = Data(log.localCertificate)
    remoteCertificate = Data(log.remoteCertificate)
    remoteIssuers = log.remoteIssuers.isEmpty ? nil : log.remoteIssuers.map { Data($0) }
  }

  /// The log that the text tells; nil when a number in it is none.
  package var log: KeyLog? {
    guard let client = [UInt8](hexadecimal: clientRandom),
      let server = [UInt8](hexadecimal: serverRandom),
      let master = [UInt8](hexadecimal: masterSecret)
    else { return nil }
    return KeyLog(
      transport: transport ?? 0,
      secrets: DTLSSecrets(clientRandom: client, serverRandom: server, masterSecret: master),
      localCertificate: [UInt8](localCertificate), remoteCertificate: [UInt8](remoteCertificate),
      remoteIssuers: (remoteIssuers ?? []).map { [UInt8]($0) })
  }
}

/// A local certificate as the detail of a `certificate` event.
package struct CertificateText: Codable {
  private var certificate: Data

  init(_ bytes: [UInt8]) { certificate = Data(bytes) }

  /// The certificate in DER.
  package var bytes: [UInt8] { [UInt8](certificate) }
}

/// What a `secured` event tells.
package struct SecuredText: Codable {
  package var version: String
  package var cipherSuite: String
  package var profile: String
  package var role: String
}

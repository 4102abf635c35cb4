import CDTLS
import COpenSSL
import Testing
import Wire

@testable import Secure

/// Tests the certificates that a peer sends after its own.
struct DTLSIssuerTests {
  private func association(_ seed: UInt8) throws -> DTLSAssociation {
    let association = try DTLSAssociation(
      entropy: Entropy(seed: [seed]).stream("dtls"), unixSeconds: 1_800_000_000)
    association.acceptsCertificate = { _ in true }
    return association
  }

  /// Makes an association send more certificates after its own; returns them in DER.
  private func chain(_ count: UInt8, to association: DTLSAssociation) throws -> [[UInt8]] {
    let connection = try #require(cdtls_connection(association.handle))
    return try (0..<count).map { index in
      let issuer = try self.association(100 + index).certificates[0]
      var bytes: UnsafePointer<UInt8>?
      let x509 = issuer.withUnsafeBufferPointer { buffer in
        bytes = buffer.baseAddress
        return d2i_X509(nil, &bytes, buffer.count)
      }
      let certificate = try #require(x509)
      // SSL_add0_chain_cert, which is a macro: the connection now owns the certificate.
      try #require(SSL_ctrl(connection, 89, 0, UnsafeMutableRawPointer(certificate)) == 1)
      return issuer
    }
  }

  /// Tests a server's chain, in which OpenSSL includes the server's own certificate, and a client's
  /// chain, in which the client's own certificate is missing.
  @Test(arguments: [UInt8(0), 1, 2]) func aChainIsReadInOrder(count: UInt8) throws {
    let (client, server) = (try association(1), try association(2))
    try #require(client.start(.client) && server.start(.server))
    let shownByServer = try chain(count, to: server)
    let shownByClient = try chain(count, to: client)
    var progress = [client.handshake(), server.handshake()]
    for _ in 0..<20 where progress != [.finished, .finished] {
      client.drainSent { progress[1] = server.handshake($0) }
      server.drainSent { progress[0] = client.handshake($0) }
    }
    try #require(progress == [.finished, .finished])
    #expect(client.result(role: .client, remoteCertificate: [])?.remoteIssuers == shownByServer)
    #expect(server.result(role: .server, remoteCertificate: [])?.remoteIssuers == shownByClient)
  }
}

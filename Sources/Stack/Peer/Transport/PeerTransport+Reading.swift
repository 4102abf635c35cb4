import ICE
package import JSEP
package import Secure
package import Wire

// What descriptions, stats and whoever looks into a call read of the transport.
extension PeerTransport {
  /// Why the transport cannot work at all, in words.
  package var failure: String? { keys.failure }

  /// Whether a datagram is a check of ICE by somebody who knows the credentials of this side.
  package func recognizes(_ bytes: [UInt8]) -> Bool { agent.recognizes(bytes) }

  /// The path in use.
  package var path: (local: SocketAddress, remote: SocketAddress)? { currentPath.inUse }

  /// What went over the transport.
  package var counters: TransportCounters { traffic.total }

  /// The peer's present generation of ICE credentials.
  package var remoteUsernameFragment: String? { peer.usernameFragment }

  /// The deadline of each layer.
  package var deadlines: (ice: Instant?, dtls: Instant?) { (agent.deadline, keys.deadline) }

  // MARK: Descriptions

  /// This side as new descriptions state it: the next generation's, once one is wanted.
  package var localParameters: LocalTransport {
    guard let next = generation.next else { return presentParameters }
    return LocalTransport(
      number: number, usernameFragment: next.usernameFragment, password: next.password,
      fingerprints: keys.fingerprints)
  }

  /// This side as it is now, with what was gathered.
  package var presentParameters: LocalTransport {
    LocalTransport(
      number: number, usernameFragment: agent.localCredentials.usernameFragment,
      password: agent.localCredentials.password, fingerprints: keys.fingerprints,
      candidates: gathering.candidates, gatheringIsComplete: gathering.isComplete,
      defaultAddress: gathering.defaultAddress)
  }

  // MARK: Keys

  /// The state of the DTLS association.
  package var dtlsState: DTLSTransportState { keys.state }

  /// The role in the DTLS association under way, or in the last one.
  package var dtlsRole: DTLSRole? { keys.role }

  /// What the last handshake established.
  package var secured: DTLSResult? { keys.secured }

  /// Whether packets can be protected.
  package var isSecured: Bool { keys.hasProtection }

  /// The own certificates in DER.
  package var certificates: [[UInt8]] { keys.certificates }

  /// The certificate that the peer was shown, or else the first that it may be shown, in DER.
  package var localCertificate: [UInt8]? { keys.secured?.localCertificate ?? certificates.first }
}

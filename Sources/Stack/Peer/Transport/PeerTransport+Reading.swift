import ICE
package import JSEP
package import Secure
package import Wire

// Read by descriptions, stats and debugging.
extension PeerTransport {
  /// Why the transport cannot work at all, as a sentence.
  package var failure: String? { keys.failure }

  /// Whether a datagram is an ICE check with this side's credentials.
  package func recognizes(_ bytes: [UInt8]) -> Bool { agent.recognizes(bytes) }

  /// The selected path.
  package var path: (local: SocketAddress, remote: SocketAddress)? { currentPath.inUse }

  /// The traffic counters.
  package var counters: TransportCounters { traffic.total }

  /// The peer's current ICE username fragment.
  package var remoteUsernameFragment: String? { peer.usernameFragment }

  /// The deadline of each layer.
  package var deadlines: (ice: Instant?, dtls: Instant?) { (agent.deadline, keys.deadline) }

  // MARK: Descriptions

  /// The local parameters for new descriptions: those of the next generation, once requested.
  package var localParameters: LocalTransport {
    guard let next = generation.next else { return presentParameters }
    return LocalTransport(
      number: number, usernameFragment: next.usernameFragment, password: next.password,
      fingerprints: keys.fingerprints)
  }

  /// The current local parameters with the gathered candidates.
  package var presentParameters: LocalTransport {
    LocalTransport(
      number: number, usernameFragment: agent.localCredentials.usernameFragment,
      password: agent.localCredentials.password, fingerprints: keys.fingerprints,
      candidates: gathering.candidates, gatheringIsComplete: gathering.isComplete,
      defaultAddress: gathering.defaultAddress)
  }

  // MARK: Keys

  package var dtlsState: DTLSTransportState { keys.state }

  /// The role in the current or last DTLS association.
  package var dtlsRole: DTLSRole? { keys.role }

  /// The result of the last handshake.
  package var secured: DTLSResult? { keys.secured }

  /// Whether packets can be protected.
  package var isSecured: Bool { keys.hasProtection }

  /// The local certificates in DER.
  package var certificates: [[UInt8]] { keys.certificates }

  /// The certificate shown to the peer, or else the first one, in DER.
  package var localCertificate: [UInt8]? { keys.secured?.localCertificate ?? certificates.first }
}

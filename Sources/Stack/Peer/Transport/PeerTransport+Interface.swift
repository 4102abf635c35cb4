package import ICE
package import JSEP
package import Secure
package import Wire

extension PeerTransport {
  /// What can happen to a transport.
  package enum Input {
    /// A packet in the clear to send with a code point (RFC 2474); dropped while there are no keys.
    case rtp([UInt8], codePoint: UInt8 = 0)
    case rtcp([UInt8], codePoint: UInt8 = 0)
    /// An SCTP packet to send.
    case data([UInt8], codePoint: UInt8 = 0)

    /// A datagram and when the kernel received it.
    case datagram(Datagram, arrival: Instant)
    /// The deadline was reached.
    case deadline
    /// The addresses to gather on.
    case interfaces([IPAddress])
    /// An answer of the system to ICE.
    case answer(SystemAnswer)
    case sendFailed(local: SocketAddress, remote: SocketAddress, packets: Int = 0, bytes: Int = 0)

    /// The servers and the policy for the next gathering.
    case use([ICEServer], relayOnly: Bool)
    /// Start gathering; candidates are reported once a local description requires them.
    case fillPool
    /// A local description is set: gather and report candidates.
    case gather
    /// The ICE role according to the exchange.
    case role(ICERole)
    /// The next offer starts another ICE generation.
    case restart
    /// An offer is about to be created.
    case offering
    /// This offer became the local description.
    case offered(String)
    /// The parameters in the peer's description; nil if it was rolled back.
    case remote(RemoteTransport?, answersLocalOffer: Bool)
    /// The peer signaled a candidate; also as text.
    case remoteCandidate(String, ICECandidate)
    /// The peer withdrew a candidate; also as text.
    case removedRemoteCandidate(String, ICECandidate)
    case remoteEndOfCandidates
    /// Closes all parts.
    case close
  }

  /// A request or event of a transport.
  package enum Output {
    case datagram(Datagram)
    /// A request of ICE to the system.
    case request(SystemRequest)

    /// A packet of the peer in the clear, with the kernel's receive time and the ECN mark that it
    /// came with, where that is known.
    case rtp([UInt8], arrival: Instant, ecn: ECNMark?)
    case rtcp([UInt8], arrival: Instant)
    /// A received SCTP packet.
    case data([UInt8])

    case gatheringState(ICEGatheringState)
    case iceState(ICEConnectionState)
    case dtlsState(DTLSTransportState)
    /// A local candidate to signal; nil if there are no more.
    case localCandidate(ICECandidate?)
    /// A local candidate that is used without being signaled.
    case unsignaledCandidate(ICECandidate)
    case remoteCandidate(ICECandidate)
    /// Local candidates became invalid.
    case candidatesRemoved([ICECandidate])
    /// A server provided no candidate.
    case gatheringFailed(ICEServerFailure)
    /// A pair was added or changed.
    indirect case pair(ICEPairReport)
    /// The handshake is finished, and packets can be protected.
    case secured(DTLSResult, DTLSRole)
    /// Something was refused: by which layer, and why.
    case refused(layer: StaticString, String)
  }
}

package import ICE
package import JSEP
package import Secure
package import Wire

extension PeerTransport {
  /// What can happen to a transport.
  package enum Input {
    /// A packet in the clear for the peer with its code point (RFC 2474); dropped while there are
    /// no keys.
    case rtp([UInt8], codePoint: UInt8 = 0)
    case rtcp([UInt8], codePoint: UInt8 = 0)
    /// An SCTP packet for the peer.
    case data([UInt8], codePoint: UInt8 = 0)

    /// A datagram and the kernel's receive time.
    case datagram(Datagram, arrival: Instant)
    /// The deadline was reached.
    case deadline
    /// The addresses that may be gathered on.
    case interfaces([IPAddress])
    /// The system answers a request of ICE.
    case answer(SystemAnswer)
    case sendFailed(local: SocketAddress, remote: SocketAddress, packets: Int = 0, bytes: Int = 0)

    /// Uses these servers, and perhaps nothing else, from the next gathering on.
    case use([ICEServer], relayOnly: Bool)
    /// Candidates are gathered from now on and told when a local description asks for them.
    case fillPool
    /// A local description is set: candidates may be gathered, and are told.
    case gather
    /// Who chooses the pair, as the exchange has it.
    case role(ICERole)
    /// The next offer shall begin another generation of ICE.
    case restart
    /// An offer is about to be written.
    case offering
    /// This offer became the local description.
    case offered(String)
    /// The peer's description has these parameters now; nil when it was taken back.
    case remote(RemoteTransport?, answersOwnOffer: Bool)
    /// The peer signaled a candidate, also as text.
    case remoteCandidate(String, ICECandidate)
    /// The peer took a candidate back that it had signaled, also as text.
    case removedRemoteCandidate(String, ICECandidate)
    case remoteEndOfCandidates
    /// Says goodbye and stops everything.
    case close
  }

  /// What a transport wants done or tells.
  package enum Output {
    case datagram(Datagram)
    /// ICE asks the system for something.
    case request(SystemRequest)

    /// A packet of the peer in the clear, with the kernel's receive time.
    case rtp([UInt8], arrival: Instant)
    case rtcp([UInt8], arrival: Instant)
    /// An SCTP packet of the peer.
    case data([UInt8])

    case gatheringState(ICEGatheringState)
    case iceState(ICEConnectionState)
    case dtlsState(DTLSTransportState)
    /// A local candidate to be signaled; nil when there are no more.
    case localCandidate(ICECandidate?)
    /// A local candidate that is used without being signaled.
    case unsignaledCandidate(ICECandidate)
    case remoteCandidate(ICECandidate)
    /// Local candidates are gone.
    case candidatesRemoved([ICECandidate])
    /// A server gave no candidate.
    case gatheringFailed(ICEServerFailure)
    /// A pair was made or changed.
    indirect case pair(ICEPairReport)
    /// The handshake is finished and packets can be protected.
    case secured(DTLSResult, DTLSRole)
    /// Something was refused: by which layer, and why.
    case refused(layer: StaticString, String)
  }
}

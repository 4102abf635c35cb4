package import ICE
package import JSEP
package import Secure
package import Wire

extension PeerTransport {
  package enum Input {
    /// A packet in the clear to send with a code point (RFC 2474); dropped unless there are keys
    /// and a path.
    case rtp([UInt8], codePoint: UInt8 = 0)
    case rtcp([UInt8], codePoint: UInt8 = 0)
    /// An SCTP packet to send.
    case data([UInt8], codePoint: UInt8 = 0)

    /// A datagram and the kernel's receive time.
    case datagram(Datagram, arrival: Instant)
    /// The deadline that the transport last returned was reached.
    case deadline
    /// The addresses to gather on.
    case interfaces([IPAddress])
    /// The system's reply to ICE.
    case answer(SystemAnswer)
    case sendFailed(local: SocketAddress, remote: SocketAddress, packets: Int = 0, bytes: Int = 0)

    /// Sets the servers and the policy for the next gathering.
    case use([ICEServer], relayOnly: Bool)
    /// Starts gathering; candidates are reported once a local description requires them.
    case fillPool
    /// A local description was set: gather and report candidates.
    case gather
    /// The ICE role determined by the exchange.
    case role(ICERole)
    /// Requests that the next offer start a new ICE generation.
    case restart
    /// An offer is about to be created.
    case offering
    /// The given offer became the local description.
    case offered(String)
    /// The parameters in the remote peer's description; nil if it was rolled back.
    case remote(RemoteTransport?, answersLocalOffer: Bool)
    /// A candidate that the remote peer signaled, as text and in parsed form.
    case remoteCandidate(String, ICECandidate)
    /// A candidate that the remote peer withdrew, as text and in parsed form.
    case removedRemoteCandidate(String, ICECandidate)
    case remoteEndOfCandidates
    case close
  }

  /// A request or event from a transport.
  package enum Output {
    case datagram(Datagram)
    /// A request by ICE, such as to open a socket.
    case request(SystemRequest)

    /// The remote peer's packet in the clear, with the kernel's receive time and the packet's ECN
    /// mark, if known.
    case rtp([UInt8], arrival: Instant, ecn: ECNMark?)
    case rtcp([UInt8], arrival: Instant)
    /// A received SCTP packet.
    case data([UInt8])

    case gatheringState(ICEGatheringState)
    case iceState(ICEConnectionState)
    case dtlsState(DTLSTransportState)
    /// A local candidate to signal, or nil after the last one.
    case localCandidate(ICECandidate?)
    /// A local candidate that is used without being signaled.
    case unsignaledCandidate(ICECandidate)
    case remoteCandidate(ICECandidate)
    /// Local candidates became invalid.
    case candidatesRemoved([ICECandidate])
    /// A server did not provide a candidate.
    case gatheringFailed(ICEServerFailure)
    /// A pair was added or changed.
    indirect case pair(ICEPairReport)
    /// The handshake is complete; packets can be protected if it negotiated an SRTP profile.
    case secured(DTLSResult, DTLSRole)
    /// A layer refused an input, for the given reason.
    case refused(layer: StaticString, String)
  }
}

// MARK: - TransportKeys

/// The DTLS association and its keys: the role, the remote peer's fingerprints (RFC 8842
/// section 4), and SRTP with these keys (RFC 5764).
struct TransportKeys: ~Copyable {
  /// The reason that there are no certificates, as a sentence; nil if there are certificates.
  let failure: String?
  /// The role in the current or last association.
  private(set) var role: DTLSRole?
  /// The result of the last handshake.
  private(set) var secured: DTLSResult?

  private let dtls: (any DTLSTransporting)?
  private let security: any SecurityFactory
  private var srtp: SRTPContext?
  /// The remote peer's expected fingerprints.
  private var remoteFingerprints: [CertificateFingerprint] = []
  private var outputs = Outbox<DTLSTransport.Output>()

  /// Creates the keys of a peer's first transport, and a certificate unless `certificates` contains
  /// any.
  init(
    entropy: EntropyStream, wallClock: WallClock, certificates: [PeerCertificate],
    profiles: [SRTPProtection], security: any SecurityFactory
  ) {
    self.security = security
    do throws(SecureError) {
      dtls = try security.transport(
        entropy: entropy, wallClock: wallClock, certificates: certificates, profiles: profiles)
      failure = nil
    } catch {
      dtls = nil
      failure = error.reason
    }
  }

  /// Creates the keys of another transport of the same peer, with the same certificates.
  init(beside first: borrowing TransportKeys, entropy: EntropyStream) {
    security = first.security
    do throws(SecureError) {
      dtls = try first.dtls?.another(entropy: entropy)
      failure = first.failure
    } catch {
      dtls = nil
      failure = error.reason
    }
  }

  var state: DTLSTransportState { dtls?.state ?? .new }
  var deadline: Instant? { dtls?.deadline }
  var certificates: [[UInt8]] { dtls?.certificates ?? [] }
  var fingerprints: [CertificateFingerprint] { dtls?.fingerprints ?? [] }
  var hasProtection: Bool { srtp != nil }

  // MARK: Association

  /// Returns the input that starts an association, or starts a new one for different fingerprints;
  /// returns nil while the roles are undecided or if there is nothing to start.
  /// - Parameter pathIsOld: whether the path may still lead to the previous peer.
  mutating func begin(with peer: RemoteTransport, pathIsOld: Bool) -> DTLSTransport.Input? {
    guard let dtls, let isClient = peer.localIsDTLSClient else { return nil }
    let isFirst = dtls.state == .new
    guard isFirst || peer.fingerprints != remoteFingerprints && !pathIsOld else { return nil }
    let role: DTLSRole = isClient ? .client : .server
    self.role = role
    remoteFingerprints = peer.fingerprints
    return isFirst
      ? .start(role, remoteFingerprints: peer.fingerprints)
      : .restart(role, remoteFingerprints: peer.fingerprints)
  }

  /// Passes an input to the association.
  /// - Returns: whether to process its outputs; false if an outer call already does.
  mutating func step(_ input: DTLSTransport.Input, at now: Instant) -> Bool {
    guard let dtls else { return false }
    let isOutermost = outputs.isEmpty
    dtls.step(input, at: now, into: &outputs)
    return isOutermost
  }

  /// Returns the association's next output; nil after the last one.
  mutating func next() -> DTLSTransport.Output? { outputs.next() }

  // MARK: Protection

  /// Sets up SRTP with the keys that a complete handshake exported (RFC 5764 section 4.2).
  mutating func secure(_ result: DTLSResult) throws(SecureError) {
    srtp = try security.protection(result)
    secured = result
  }

  /// Protects a packet in place, if there are keys.
  mutating func protect(_ packet: inout [UInt8], isRTCP: Bool) throws(SRTPContext.Refusal) {
    if isRTCP { try srtp?.protectRTCP(&packet) } else { try srtp?.protectRTP(&packet) }
  }

  /// Decrypts a packet in place, if there are keys.
  mutating func unprotect(_ packet: inout [UInt8], isRTCP: Bool) throws(SRTPContext.Refusal) {
    if isRTCP { try srtp?.unprotectRTCP(&packet) } else { try srtp?.unprotectRTP(&packet) }
  }
}

/// A packet before a transport protects it, or after decryption.
package struct ClearPacket: Sendable {
  /// The protocol of a packet in the clear.
  package enum Kind: Sendable {
    case rtp, rtcp, sctp
  }

  package var kind: Kind
  package var isInbound: Bool
  package var local: SocketAddress
  package var remote: SocketAddress
  package var bytes: [UInt8]
  /// The instant at which the packet was created, or at which the kernel received it.
  package var at: Instant
}

extension SRTPContext.Refusal {
  /// The reason in words, for the take.
  var reason: String {
    switch self {
    case .authentication: "authentication failed"
    case .replayed: "replayed packet"
    case .malformed(let status): "malformed packet (status \(status))"
    }
  }
}

package import ICE
import JSEP
package import Secure
package import Wire

/// A transport under media and data of a peer, under all of it when everything is bundled: ICE
/// finds a path, DTLS agrees on keys over it, and SRTP and DTLS protect what goes there.
///
///     descriptions ──▶ credentials, candidates, fingerprints
///     datagrams ◀──▶ ICE agent ── path ──▶ DTLS ── keys ──▶ SRTP ◀──▶ RTP, RTCP
///                                          DTLS ◀──▶ SCTP packets
///
/// The extensions hold one concern each: packets, path, keys, descriptions.
package struct PeerTransport: Machine, ~Copyable {
  /// Tells it from the other transports of the peer, of which the first is 0.
  package let number: Int
  package internal(set) var agent: ICEAgent
  let dtls: (any DTLSTransporting)?
  let security: any SecurityFactory
  var srtp: SRTPContext?
  let entropy: EntropyStream

  /// Why the transport cannot work at all, in words.
  package let failure: String?
  /// The path in use.
  package internal(set) var path: (local: SocketAddress, remote: SocketAddress)?
  /// Whether that path begins at a TURN server.
  var pathIsRelayed = false
  /// Whether ICE was restarted and has not selected a path since.
  var pathIsOld = false
  /// DTLS datagrams made before there was a path.
  var waitingForPath: [[UInt8]] = []

  /// The role in the DTLS association under way, or in the last one.
  package internal(set) var dtlsRole: DTLSRole?
  /// What that association expects of the peer's certificate.
  var remoteFingerprints: [CertificateFingerprint] = []
  /// What the last handshake established.
  package internal(set) var secured: DTLSResult?

  /// Whether the part in ICE was settled by a description.
  package internal(set) var hasRole = false
  var remote: RemoteTransport?
  /// The peer's present generation of ICE credentials.
  package internal(set) var remoteUsernameFragment: String?
  var knownRemoteCandidates: [String] = []
  /// The local candidates of the present generation, as text for descriptions.
  var candidates: [String] = []
  var gatheringIsComplete = false
  var defaultAddress: SocketAddress?
  var interfaces: [IPAddress]?
  var wantsGathering = false
  /// An ICE restart was asked for and not yet offered.
  var restartIsWanted = false
  /// New credentials that an offer with an ICE restart already states.
  var nextCredentials: ICECredentials?

  /// What went over the transport.
  package internal(set) var counters = TransportCounters()
  /// What went over each pair.
  package internal(set) var traffic = TrafficLedger()
  /// When the agent was last told of traffic, to tell it rarely.
  var lastReceivedTold = Instant(nanoseconds: .min)
  var lastSentTold = Instant(nanoseconds: .min)
  var isClosed = false

  /// Sees every packet in the clear; changes nothing of what happens.
  package var onlooker: ((ClearPacket) -> Void)?

  var agentOutputs = Outbox<ICEAgent.Output>()
  var dtlsOutputs = Outbox<DTLSTransport.Output>()
  /// The outputs of the step under way.
  var outbox = Outbox<Output>()
  /// The instant of the step under way.
  var now = Instant.zero
  /// The kernel's receive time of the datagram under way, and where it came.
  var arrival = Instant.zero
  var receivingPath: (local: SocketAddress, remote: SocketAddress)?

  /// Draws the certificate that identifies the peer, unless some are given.
  ///
  /// When there can be none, `failure` says why and no description can be made.
  package init(
    entropy: Entropy, wallClock: WallClock, ice: ICESettings, certificates: [PeerCertificate],
    profiles: [SRTPProtection], security: any SecurityFactory
  ) {
    number = 0
    self.security = security
    self.entropy = entropy.stream("ice")
    agent = ICEAgent(ice, entropy: self.entropy)
    do throws(SecureError) {
      dtls = try security.transport(
        entropy: entropy.stream("dtls"), wallClock: wallClock, certificates: certificates,
        profiles: profiles)
      failure = nil
    } catch {
      dtls = nil
      failure = error.reason
    }
  }

  /// Makes another transport of the same peer, which identifies it with the same certificates.
  package init(_ number: Int, beside first: borrowing PeerTransport, entropy: Entropy) {
    self.number = number
    security = first.security
    onlooker = first.onlooker
    self.entropy = entropy.stream("ice", number: number)
    agent = ICEAgent(first.agent.settings, entropy: self.entropy, ordinal: number)
    do throws(SecureError) {
      dtls = try first.dtls?.another(entropy: entropy.stream("dtls", number: number))
      failure = first.failure
    } catch {
      dtls = nil
      failure = error.reason
    }
  }

  package mutating func step(
    _ input: consuming Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    self.now = now
    swap(&self.outbox, &outbox)
    apply(input)
    swap(&self.outbox, &outbox)
  }

  private mutating func apply(_ input: consuming Input) {
    switch consume input {
    case .rtp(let packet): sendProtected(packet, isRTCP: false)
    case .rtcp(let packet): sendProtected(packet, isRTCP: true)
    case .data(let packet):
      show(.sctp, sent: packet)
      drive(DTLSTransport.Input.send(packet))
    case .datagram(let datagram, let arrival): receive(datagram, arrival: arrival)
    case .deadline: reachDeadline()
    case .socketBound(let id, let address): drive(.socketBound(id: id, address))
    case .socketFailed(let id): drive(.socketFailed(id: id))
    case .streamAccepted(let local, let remote):
      drive(.streamAccepted(local: local, remote: remote))
    case .nameResolved(let id, let addresses): drive(.nameResolved(id: id, addresses))
    case .sendFailed(let local, let remote, let packets, let bytes):
      traffic.countDiscarded(packets: packets, bytes: bytes, local, remote)
      drive(.sendFailed(local: local, remote: remote))
    case .interfaces(let addresses): learn(addresses)
    case .gather: gather()
    case .role(let role): take(role)
    case .restart:
      // What was never offered has nothing to restart (RFC 9429 section 5.2.3.1).
      if agent.gatheringState != .new { restartIsWanted = true }
    case .offering: prepareGeneration()
    case .offered(let text): begin(offered: text)
    case .remote(let parameters, let answersOwnOffer):
      take(parameters, answersOwnOffer: answersOwnOffer)
    case .remoteCandidate(let text, let candidate): learn(candidate, text)
    case .remoteEndOfCandidates: drive(ICEAgent.Input.remoteEndOfCandidates)
    case .close: close()
    }
  }

  package var deadline: Instant? { earliest(agent.deadline, dtls?.deadline) }

  private mutating func reachDeadline() {
    if let due = agent.deadline, due <= now { drive(ICEAgent.Input.deadline) }
    if let due = dtls?.deadline, due <= now { drive(DTLSTransport.Input.deadline) }
  }

  private mutating func close() {
    drive(DTLSTransport.Input.close)
    drive(ICEAgent.Input.close)
    isClosed = true
  }

  mutating func emit(_ output: consuming Output) { outbox.append(output) }

  /// The deadline of each layer.
  package var deadlines: (ice: Instant?, dtls: Instant?) { (agent.deadline, dtls?.deadline) }
}

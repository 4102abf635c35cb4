package import ICE
package import JSEP
import RTP
package import Secure
package import Wire

/// A transport for a peer's media and data, or for part of them if not everything is bundled: ICE
/// finds a path, DTLS agrees on keys over it, and SRTP and DTLS protect the packets.
///
///     descriptions ──▶ credentials, candidates, fingerprints
///     datagrams ◀──▶ ICE agent ── path ──▶ DTLS ── keys ──▶ SRTP ◀──▶ RTP, RTCP
///                                          DTLS ◀──▶ SCTP packets
///
/// It passes data between its parts, each of which owns its state.
package struct PeerTransport: Machine, ~Copyable {
  /// The transport's number within its peer; the first is 0.
  package let number: Int
  package private(set) var agent: ICEAgent
  private(set) var keys: TransportKeys
  private(set) var currentPath = TransportPath()
  private(set) var gathering = LocalGathering()
  private var pool = CandidatePool()
  private(set) var generation: LocalRestart
  private(set) var peer = PeerParameters()
  package private(set) var traffic = TrafficLedger()
  /// Whether a description has determined the ICE role.
  package private(set) var hasRole = false
  private var isClosed = false

  /// Called with each packet in the clear; must not change anything.
  package var onlooker: ((ClearPacket) -> Void)?

  /// The current step's instant and outputs.
  private struct Step {
    var now = Instant.zero
    var outbox = Outbox<Output>()
  }

  private var current = Step()
  /// The DSCP for the packet being sent (RFC 2474).
  private var codePoint: UInt8 = 0
  /// The kernel's receive time for the last datagram, its addresses, and its ECN mark.
  private var arrival: (at: Instant, local: SocketAddress, remote: SocketAddress, ecn: ECNMark?)?
  private var agentOutputs = Outbox<ICEAgent.Output>()

  /// Creates a peer's first transport, and a certificate unless `certificates` contains any.
  ///
  /// On failure, `failure` states the reason, and descriptions cannot be created.
  package init(
    entropy: Entropy, wallClock: WallClock, ice: ICESettings, certificates: [PeerCertificate],
    profiles: [SRTPProtection], security: any SecurityFactory
  ) {
    number = 0
    let stream = entropy.stream("ice")
    generation = LocalRestart(stream)
    agent = ICEAgent(ice, entropy: stream)
    keys = TransportKeys(
      entropy: entropy.stream("dtls"), wallClock: wallClock, certificates: certificates,
      profiles: profiles, security: security)
  }

  /// Creates another transport for the same peer, with the same certificates.
  package init(_ number: Int, beside first: borrowing PeerTransport, entropy: Entropy) {
    self.number = number
    onlooker = first.onlooker
    let stream = entropy.stream("ice", number: number)
    generation = LocalRestart(stream)
    agent = ICEAgent(first.agent.nextSettings, entropy: stream, ordinal: number)
    keys = TransportKeys(
      beside: first.keys, entropy: entropy.stream("dtls", number: number))
  }

  package mutating func step(
    _ input: consuming Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    current.now = now
    swap(&current.outbox, &outbox)
    apply(input)
    swap(&current.outbox, &outbox)
    assert(traffic.isConsistent, "sums are not those of their parts")
  }

  private mutating func apply(_ input: consuming Input) {
    switch consume input {
    case .rtp(let packet, let mark): sendProtected(packet, isRTCP: false, mark)
    case .rtcp(let packet, let mark): sendProtected(packet, isRTCP: true, mark)
    case .data(let packet, let mark):
      show(.sctp, sent: packet)
      codePoint = mark
      drive(DTLSTransport.Input.send(packet))
      codePoint = 0
    case .datagram(let datagram, let arrival): receive(datagram, arrival: arrival)
    case .deadline: reachDeadline()
    case .answer(let answer): drive(ICEAgent.Input.answer(answer))
    case .sendFailed(let local, let remote, let packets, let bytes):
      traffic.countDiscarded(packets: packets, bytes: bytes, local, remote)
      drive(.sendFailed(local: local, remote: remote))
    case .interfaces(let addresses): follow(gathering.learn(addresses, agent.gatheringState))
    case .use(let servers, let relayOnly): drive(.use(servers, relayOnly: relayOnly))
    case .fillPool:
      pool.fill()
      follow(gathering.begin(agent.gatheringState))
    case .gather:
      for output in pool.empty() { handle(output) }
      follow(gathering.begin(agent.gatheringState))
    case .role(let role):
      hasRole = true
      drive(.role(role))
    case .restart: generation.want(agent.gatheringState)
    case .offering: generation.prepare()
    case .offered(let text):
      guard let credentials = generation.begin(offered: text) else { return }
      peer.restart()
      beginGeneration(with: credentials)
    case .remote(let parameters, let answersLocalOffer):
      apply(parameters, answersLocalOffer: answersLocalOffer)
    case .remoteCandidate(let text, let candidate):
      if peer.signal(text) { drive(.remoteCandidate(candidate)) }
    case .removedRemoteCandidate(let text, let candidate):
      peer.forget(text)
      drive(.removedRemoteCandidate(candidate))
    case .remoteEndOfCandidates: drive(ICEAgent.Input.remoteEndOfCandidates)
    case .close:
      drive(DTLSTransport.Input.close)
      drive(ICEAgent.Input.close)
      isClosed = true
    }
  }

  package var deadline: Instant? { earliest(agent.deadline, keys.deadline) }

  private mutating func reachDeadline() {
    if let due = agent.deadline, due <= now { drive(ICEAgent.Input.deadline) }
    if let due = keys.deadline, due <= now { drive(DTLSTransport.Input.deadline) }
  }

  private var now: Instant { current.now }

  private mutating func emit(_ output: consuming Output) { current.outbox.append(output) }

  // MARK: - Descriptions

  /// Passes the remote peer's parameters to the agent; changed credentials are an ICE restart.
  private mutating func apply(_ parameters: RemoteTransport?, answersLocalOffer: Bool) {
    let taking = peer.apply(parameters, answersLocalOffer: answersLocalOffer)
    guard let remote = parameters else { return }
    if taking == .restart { beginGeneration(with: generation.answer()) }
    if taking != .sameGeneration {
      let credentials = ICECredentials(
        usernameFragment: remote.usernameFragment, password: remote.password)
      drive(.remoteCredentials(credentials, lite: remote.isLite))
    }
    for line in remote.candidates where peer.describe(line) {
      do throws(ICECandidateError) {
        drive(.remoteCandidate(try ICECandidate(attribute: line)))
      } catch {
        emit(.refused(layer: "ice", error.description))
      }
    }
    if remote.endOfCandidates { drive(.remoteEndOfCandidates) }
    startDTLSIfReady()
  }

  /// Sets fresh credentials and discards the candidates of the previous generation.
  private mutating func beginGeneration(with credentials: ICECredentials) {
    currentPath.restart()
    gathering.restart()
    pool.restart()
    drive(.restart(credentials))
  }

  // MARK: - ICE

  private mutating func follow(_ input: ICEAgent.Input?) {
    if let input { drive(input) }
  }

  private mutating func drive(_ input: ICEAgent.Input) {
    let isOutermost = agentOutputs.isEmpty
    agent.step(input, at: now, into: &agentOutputs)
    guard isOutermost else { return }
    while let output = agentOutputs.next() { handle(output) }
  }

  private mutating func handle(_ output: ICEAgent.Output) {
    guard !pool.holdsBack(output) else { return }
    switch output {
    case .request(let request): emit(.request(request))
    case .datagram(let local, let remote, let bytes):
      emit(
        .datagram(Datagram(local: local, remote: remote, bytes: bytes, codePoint: codePoint)))
    case .relayed(let local, let remote, let bytes):
      // A relay copies the mark of the packet that it received (RFC 8656 section 13).
      receive(
        Datagram(local: local, remote: remote, bytes: bytes, ecn: arrival?.ecn ?? nil),
        arrival: arrival?.at ?? .zero)
    case .serverFailed(let server, let code, let reason):
      emit(.refused(layer: "turn", "\(server): \(code == 0 ? reason : "\(code) \(reason)")"))
    case .candidatesRemoved(let candidates): emit(.candidatesRemoved(candidates))
    case .gatheringFailed(let failure): emit(.gatheringFailed(failure))
    case .gatheringState(let state): emit(.gatheringState(state))
    case .connectionState(let state): emit(.iceState(state))
    case .localCandidate(let candidate):
      gathering.store(candidate)
      emit(.localCandidate(candidate))
    case .unsignaledCandidate(let candidate): emit(.unsignaledCandidate(candidate))
    case .remoteCandidate(let candidate): emit(.remoteCandidate(candidate))
    case .pair(let pair):
      if let remote = pair.remote.address { traffic.begin(pair.id, pair.base, remote) }
      emit(.pair(pair))
    case .selected(let local, let remote): select(local, remote)
    case .role: break
    }
  }

  private mutating func select(_ local: SocketAddress, _ remote: SocketAddress) {
    currentPath.select(local, remote, isRelayed: agent.isRelayed(local))
    traffic.countSelection()
    startDTLSIfReady()
    for bytes in currentPath.removeHeld() { send(bytes) }
  }

  // MARK: - DTLS

  /// Starts the handshake and its time limit, once the roles are settled and there is a path.
  ///
  /// Different fingerprints mean a new association (RFC 8842 section 4) with the peer at the other
  /// end of the path that ICE finds. Until ICE has found that path, media continues with the
  /// previous keys.
  private mutating func startDTLSIfReady() {
    guard path != nil, let remote = peer.described,
      let input = keys.begin(with: remote, pathIsOld: currentPath.isOld)
    else { return }
    _ = currentPath.removeHeld()
    drive(input)
  }

  private mutating func drive(_ input: DTLSTransport.Input) {
    guard keys.step(input, at: now) else { return }
    while let output = keys.next() { handle(output) }
  }

  private mutating func handle(_ output: DTLSTransport.Output) {
    switch output {
    case .datagram(let bytes): if path != nil { send(bytes) } else { currentPath.hold(bytes) }
    case .state(let state): emit(.dtlsState(state))
    case .established(let result): secure(result)
    case .data(let packet):
      show(.sctp, received: packet)
      emit(.data(packet))
    case .failure(let reason): emit(.refused(layer: "dtls", reason))
    }
  }

  private mutating func secure(_ result: DTLSResult) {
    do throws(SecureError) {
      try keys.secure(result)
    } catch {
      emit(.refused(layer: "srtp", error.reason))
      return
    }
    emit(.secured(result, keys.role ?? .client))
  }

  // MARK: - Received packets

  /// Dispatches a datagram by its first byte (RFC 7983 section 7).
  private mutating func receive(_ datagram: Datagram, arrival: Instant) {
    guard !isClosed else { return }
    self.arrival = (arrival, datagram.local, datagram.remote, datagram.ecn)
    switch DatagramClass(datagram.bytes.span.bytes) {
    case .stun, .channelData:
      drive(
        .datagram(local: datagram.local, remote: datagram.remote, bytes: datagram.bytes))
    case .dtls:
      count(received: datagram)
      drive(DTLSTransport.Input.datagram(datagram.bytes))
    case .rtp: receiveProtected(datagram, isRTCP: false, arrival: arrival)
    case .rtcp: receiveProtected(datagram, isRTCP: true, arrival: arrival)
    default: emit(.refused(layer: "transport", "datagram of unknown kind"))
    }
  }

  private mutating func receiveProtected(_ datagram: Datagram, isRTCP: Bool, arrival: Instant) {
    guard keys.hasProtection else {
      emit(.refused(layer: "srtp", "packet before the keys are known"))
      return
    }
    var packet = datagram.bytes
    do throws(SRTPContext.Refusal) {
      try keys.unprotect(&packet, isRTCP: isRTCP)
    } catch {
      emit(.refused(layer: "srtp", error.reason))
      return
    }
    count(received: datagram)
    if traffic.reportsReceived(at: now) {
      drive(.trafficReceived(local: datagram.local, remote: datagram.remote))
    }
    show(isRTCP ? .rtcp : .rtp, received: packet)
    emit(
      isRTCP
        ? .rtcp(packet, arrival: arrival) : .rtp(packet, arrival: arrival, ecn: datagram.ecn))
  }

  private mutating func count(received datagram: Datagram) {
    traffic.count(
      datagram.bytes.count, isInbound: true, datagram.local, datagram.remote, at: now)
  }

  // MARK: - Sent packets

  private mutating func send(_ bytes: consuming [UInt8]) {
    guard let path else { return }
    traffic.count(bytes.count, isInbound: false, path.local, path.remote, at: now)
    if currentPath.isRelayed {
      drive(ICEAgent.Input.relay(local: path.local, remote: path.remote, bytes: bytes))
    } else {
      emit(
        .datagram(
          Datagram(
            local: path.local, remote: path.remote, bytes: bytes, codePoint: codePoint)))
    }
    if traffic.reportsSent(at: now) { drive(ICEAgent.Input.trafficSent) }
  }

  private mutating func sendProtected(
    _ packet: consuming [UInt8], isRTCP: Bool, _ mark: UInt8
  ) {
    guard keys.hasProtection, path != nil else { return }
    show(isRTCP ? .rtcp : .rtp, sent: packet)
    do throws(SRTPContext.Refusal) {
      try keys.protect(&packet, isRTCP: isRTCP)
    } catch {
      emit(.refused(layer: "srtp", "own packet: \(error.reason)"))
      return
    }
    codePoint = mark
    send(packet)
    codePoint = 0
  }

  // MARK: - Onlooker

  private func show(_ kind: ClearPacket.Kind, sent bytes: borrowing [UInt8]) {
    guard let onlooker, let path else { return }
    onlooker(
      ClearPacket(
        kind: kind, isInbound: false, local: path.local, remote: path.remote, bytes: copy bytes,
        at: now))
  }

  private func show(_ kind: ClearPacket.Kind, received bytes: [UInt8]) {
    guard let onlooker, let arrival else { return }
    onlooker(
      ClearPacket(
        kind: kind, isInbound: true, local: arrival.local, remote: arrival.remote, bytes: bytes,
        at: arrival.at))
  }
}

// MARK: - Read access

// Members that descriptions, stats and debugging read.
extension PeerTransport {
  /// The reason that the transport cannot be used at all, as a sentence; nil if it can be used.
  package var failure: String? { keys.failure }

  /// Returns whether a datagram is an ICE check with the local credentials.
  package func recognizes(_ bytes: [UInt8]) -> Bool { agent.recognizes(bytes) }

  /// The selected path; nil until ICE has selected one.
  package var path: (local: SocketAddress, remote: SocketAddress)? { currentPath.inUse }

  package var counters: TransportCounters { traffic.total }

  /// The remote peer's current ICE username fragment; nil until it is known.
  package var remoteUsernameFragment: String? { peer.usernameFragment }

  /// The deadlines of ICE and DTLS; nil for a layer that waits for nothing.
  package var deadlines: (ice: Instant?, dtls: Instant?) { (agent.deadline, keys.deadline) }

  // MARK: Descriptions

  /// The local parameters for new descriptions, with the next generation's credentials if a restart
  /// was requested.
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

  /// Whether there are SRTP keys, in which case packets can be protected.
  package var isSecured: Bool { keys.hasProtection }

  /// The local certificates in DER.
  package var certificates: [[UInt8]] { keys.certificates }

  /// The certificate that was sent to the remote peer, or else the first one, in DER; nil if there
  /// are no certificates.
  package var localCertificate: [UInt8]? { keys.secured?.localCertificate ?? certificates.first }
}

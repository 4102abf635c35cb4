import Flow
import ICE
import JSEP
import SCTP
import SDP
import Secure
import Wire

// Creates and removes bundles, and routes inputs to them.
extension PeerStack {
  /// The local transports for new descriptions; a requested ICE restart gives them new credentials.
  var localTransports: [LocalTransport] { bundles.all.map { $0.transport.localParameters } }

  /// The local transports with the ICE credentials that are in use.
  var presentTransports: [LocalTransport] { bundles.all.map { $0.transport.presentParameters } }

  /// Creates the missing bundles among the given numbers.
  func prepareBundles(_ numbers: [Int]) {
    for number in numbers where bundles[number] == nil {
      let transport = PeerTransport(number, beside: bundles.first.transport, entropy: entropy)
      let bundle = Bundle(
        transport: transport,
        flow: MediaFlow(
          entropy: entropy.stream("rtp", number: number), wallClock: genesis.wallClock,
          cname: negotiation.cname,
          reportsWithDemands: genesis.configuration.reportsWithKeyframeDemands ?? false,
          countsProbes: genesis.configuration.hasCompleteStatistics ?? false))
      bundles.add(bundle)
      begin(bundle)
      if let interfaces = bundles.interfaces { drive(bundle, .interfaces(interfaces)) }
    }
  }

  /// Sets a new bundle's bit rate limits, and fills its candidate pool if there is one; for the
  /// first bundle, reports the certificates, which all bundles share.
  func begin(_ bundle: Bundle) {
    if let failure = bundle.transport.failure { refuse(layer: "dtls", failure) }
    if bundle.number == 0 {
      for certificate in bundle.transport.certificates { emit(.certificate(certificate)) }
    }
    limitBitrate(of: bundle)
    if bundle.number < Int(genesis.configuration.iceCandidatePoolSize ?? 0) {
      drive(bundle, .fillPool)
    }
  }

  /// Closes the bundles that no section uses any more, because their sections joined another bundle
  /// (RFC 9143 section 7.4), were rejected, or were rolled back.
  func closeUnusedBundles() {
    // A pending local offer or provisional answer may still need its bundles; a remote offer
    // replaces the bundles created for local offers.
    guard [.stable, .haveRemoteOffer].contains(negotiation.signalingState) else { return }
    let unused = bundles.removeAll(besides: negotiation.transportNumbers)
    guard !unused.isEmpty else { return }
    for bundle in unused { drive(bundle, PeerTransport.Input.close) }
    // The connection may have waited for these bundles' candidates.
    if unused.contains(where: { !$0.hasAllCandidates }),
      bundles.all.allSatisfy(\.hasAllCandidates)
    {
      emit(.localCandidate(nil))
    }
    emit(states.move(to: bundles.iceGatheringState))
    emit(states.move(to: bundles.iceConnectionState))
  }

  /// Sets a bundle's share of the video bit rate.
  func limitBitrate(of bundle: Bundle) {
    let configuration = genesis.configuration
    let limits = bundles.bitrateLimits
    drive(
      bundle,
      .bitrateLimits(
        start: configuration.videoBitrateStart / bundle.bitrateShare,
        maximum: (limits.maximum ?? configuration.videoBitrateMaximum) / bundle.bitrateShare,
        minimum: limits.minimum.map { $0 / bundle.bitrateShare }))
  }

  /// Sets the limits for all video and the capacity assumed for the path, in bit/s; nil leaves a
  /// value unchanged.
  func limitBitrate(minimum: UInt64?, current: UInt64?, maximum: UInt64?) throws(PeerError) {
    var limits = bundles.bitrateLimits
    limits.minimum = minimum ?? limits.minimum
    limits.maximum = maximum ?? limits.maximum
    let most = limits.maximum ?? genesis.configuration.videoBitrateMaximum
    guard limits.minimum ?? 0 <= current ?? most, current ?? 0 <= most else {
      throw PeerError(
        name: "RangeError",
        message: "the bit rates are not in order: minimum, current, maximum")
    }
    bundles.limitBitrate(minimum: limits.minimum, maximum: limits.maximum)
    for bundle in bundles.all {
      limitBitrate(of: bundle)
      if let current { drive(bundle, .estimate(current / bundle.bitrateShare)) }
    }
  }

  /// Sets the ICE servers and the policy for the next gathering.
  func use(_ servers: [ICEServerConfiguration], _ policy: ICETransportPolicy) throws(PeerError) {
    var configuration = genesis.configuration
    configuration.iceServers = servers
    configuration.iceTransportPolicy = policy
    if let uri = configuration.firstUnusableICEServer {
      throw PeerError(name: "SyntaxError", message: "the server \(uri) cannot be used")
    }
    let settings = configuration.iceSettings
    driveAll(.use(settings.servers, relayOnly: settings.relayOnly))
  }

  // MARK: Inputs

  func driveAll(_ input: PeerTransport.Input) {
    for bundle in bundles.all { drive(bundle, input) }
  }

  func learn(_ all: [IPAddress], _ types: [NetworkType]) {
    for (address, type) in zip(all, types) { bundles.learn(type, of: address) }
    let usesIPv6 = genesis.configuration.usesIPv6 ?? true
    let addresses = usesIPv6 ? all : all.filter(\.isIPv4)
    bundles.learn(addresses)
    driveAll(.interfaces(addresses))
  }

  /// Passes the system's reply to the bundle that it concerns, if that bundle still exists.
  func handle(_ answer: SystemAnswer) {
    switch answer {
    case .streamAccepted(let local, _): drive(bundles.bound(to: local), .answer(answer))
    case .socketBound(let id, let address):
      // If the bundle that made the request is gone, the socket is not needed.
      guard let bundle = bundles.asking(id) else {
        return emit(.request(.closeSocket(address)))
      }
      bundle.bind(address)
      drive(bundle, .answer(answer))
    case .socketFailed(let id, _), .nameResolved(let id, _):
      if let bundle = bundles.asking(id) { drive(bundle, .answer(answer)) }
    }
  }

  func reachTransportDeadlines() {
    for bundle in bundles.all {
      if let due = bundle.transport.deadline, due <= now {
        drive(bundle, PeerTransport.Input.deadline)
      }
    }
  }

  func reachFlowDeadlines() {
    for bundle in bundles.all {
      if let due = bundle.flow.deadline, due <= now { drive(bundle, MediaFlow.Input.deadline) }
    }
  }
}

// MARK: - Path

// Emits notices about candidates and pairs, in addition to their rows in the take.
extension PeerStack {
  /// Follows a transport's selected pair and reports changes.
  func follow(_ pair: ICEPairReport, of bundle: Bundle) {
    guard let reason = bundle.follow(pair) else { return }
    notify(
      .selectedPair,
      .selectedPair(
        SelectedPairChange(
          transport: bundle.number, local: pair.local.description,
          remote: pair.remote.description, reason: reason,
          lastReceivedMilliseconds: lastReceived(over: pair, of: bundle))))
  }

  /// Returns the time in milliseconds since media or data was received over a pair; nil if none
  /// was.
  private func lastReceived(over pair: ICEPairReport, of bundle: Bundle) -> Int64? {
    guard let remote = pair.remote.address,
      let last = bundle.transport.traffic.traffic(of: pair.id, pair.base, remote)?.received.last
    else { return nil }
    return (now - last).nanoseconds / 1_000_000
  }

  /// Reports local candidates that became invalid, unless they were never signaled.
  func reportRemoved(_ candidates: [ICECandidate], of bundle: Bundle) {
    let signaled = candidates.filter { $0.kind != .peerReflexive }
    guard !signaled.isEmpty else { return }
    notify(
      .removedCandidates,
      .candidatesRemoved(
        signaled.map { candidate in
          CandidateInit(
            candidate: candidate.description,
            sdpMid: place(of: bundle).mid, sdpMLineIndex: place(of: bundle).index,
            usernameFragment: candidate.usernameFragment)
        }))
  }

  /// Records an ICE state that ends or revives the connection.
  func recordEnd(_ state: ICEConnectionState) {
    if state == .failed { end(.iceFailed) }
    if state == .connected { life.revoke(.iceFailed) }
  }

  /// Reports why the connection ended, unless this was the last reason reported or the application
  /// has already closed it.
  func end(_ reason: ConnectionEnd) {
    guard life.end(reason) else { return }
    notify(.connectionEnd, .connectionEnded(reason))
  }
}

extension GatheringError {
  init(_ failure: ICEServerFailure) {
    self.init(
      url: failure.server?.url ?? "",
      errorCode: failure.code == 0 ? GatheringError.unreachable : failure.code,
      errorText: failure.reason, address: failure.base?.ip.description, port: failure.base?.port)
  }
}

extension ICECandidate {
  var usernameFragment: String? { extensions.first { $0.name == "ufrag" }?.value }
}

// MARK: - Transport

// Passes inputs to the bundles' transports and handles the outputs.
extension PeerStack {
  func drive(_ bundle: Bundle, _ input: consuming PeerTransport.Input) {
    guard bundle.step(input, at: now) else { return }
    while let output = bundle.nextTransportOutput() { handle(output, of: bundle) }
  }

  private func handle(_ output: consuming PeerTransport.Output, of bundle: Bundle) {
    switch consume output {
    case .datagram(let datagram): emit(.datagram(datagram))
    case .request(let request):
      if case .closeSocket(let address) = request { bundle.unbind(address) }
      emit(.request(request))
    case .rtp(let packet, let arrival, let ecn):
      if forward(.rtp, packet, of: bundle) { return }
      drive(bundle, MediaFlow.Input.rtp(packet, arrival: arrival, ecn: ecn))
    case .rtcp(let packet, let arrival):
      if forward(.rtcp, packet, of: bundle) { return }
      drive(bundle, MediaFlow.Input.rtcp(packet, arrival: arrival))
    case .data(let packet):
      if !forward(.sctp, packet, of: bundle) { receiveData(packet, over: bundle) }
    case .gatheringState(let state):
      bundle.follow(state)
      emit(states.move(to: bundles.iceGatheringState))
    case .iceState(let state):
      bundle.follow(state)
      emit(states.move(to: bundles.iceConnectionState))
      recordEnd(state)
    case .dtlsState(let state): follow(state, of: bundle)
    case .localCandidate(let candidate): signal(candidate, of: bundle)
    case .unsignaledCandidate(let candidate): emit(.candidate(isLocal: true, candidate))
    case .remoteCandidate(let candidate): emit(.candidate(isLocal: false, candidate))
    case .candidatesRemoved(let candidates): reportRemoved(candidates, of: bundle)
    case .gatheringFailed(let failure):
      notify(.gatheringErrors, .gatheringError(GatheringError(failure)))
    case .pair(let pair):
      emit(.candidatePair(pair))
      follow(pair, of: bundle)
    case .secured(let result, let role): secure(bundle, result, role)
    case .refused(let layer, let reason): refuse(layer: layer, reason)
    }
  }

  private func signal(_ candidate: ICECandidate?, of bundle: Bundle) {
    bundle.record(candidate)
    guard let candidate else {
      if bundles.all.allSatisfy(\.hasAllCandidates) { emit(.localCandidate(nil)) }
      return
    }
    emit(.candidate(isLocal: true, candidate))
    emit(
      .localCandidate(
        CandidateInit(
          candidate: candidate.description,
          sdpMid: place(of: bundle).mid, sdpMLineIndex: place(of: bundle).index,
          usernameFragment: bundle.transport.agent.localCredentials.usernameFragment)))
  }

  /// Returns the MID and index of the section to name in a bundle's candidates.
  private func place(of bundle: Bundle) -> (mid: String?, index: Int?) {
    if let relay { return relay.place(of: bundle.number).map { ($0.mid, $0.index) } ?? (nil, nil) }
    return (
      negotiation.mid(ofTransport: bundle.number),
      negotiation.mLineIndex(ofTransport: bundle.number)
    )
  }

  /// Reports a state of a DTLS association, and informs the data channels if it carries them.
  func follow(_ state: DTLSTransportState, of bundle: Bundle) {
    if let transition = bundle.follow(state) {
      emit(transition)
      // A bundle whose sections joined another one was removed before it was closed.
      let isUnused = bundles[bundle.number] !== bundle
      if !(isUnused && genesis.configuration.ignoresUnusedTransports == true) {
        if state == .closed { end(.peer) }
        if state == .failed { end(.dtlsFailed) }
      }
    }
    guard bundle === dataBundle else { return }
    switch state {
    case .connected: settleData()
    case .closed, .failed: drive(.carrierLost)
    case .connecting: drive(.carrierRenewed)
    case .new: break
    }
  }

  /// Reports a finished handshake, and enables media if SRTP was negotiated.
  private func secure(_ bundle: Bundle, _ result: DTLSResult, _ role: DTLSRole) {
    emit(
      .secured(
        SecuredTransport(
          transport: bundle.number, version: result.version, cipherSuite: result.cipherSuite,
          profile: result.profile?.description ?? "", role: role.rawValue,
          remoteFingerprint: certificateFingerprint(result.remoteCertificate).value)))
    emit(
      .keyLog(
        KeyLog(
          transport: bundle.number, secrets: result.secrets,
          localCertificate: result.localCertificate,
          remoteCertificate: result.remoteCertificate,
          remoteIssuers: genesis.configuration.hasCompleteStatistics == true
            ? result.remoteIssuers : [])))
    guard result.profile != nil else {
      if !negotiation.sections.isEmpty {
        refuse(layer: "srtp", "the peer supports none of our SRTP profiles")
      }
      return
    }
    drive(bundle, MediaFlow.Input.writable(true))
    updateCaptures()
  }
}

/// Returns the SHA-256 fingerprint of a certificate in DER.
func certificateFingerprint(_ certificate: [UInt8]) -> CertificateFingerprint {
  // The result is nil only for an unknown hash function.
  CertificateFingerprint(algorithm: "sha-256", certificate: certificate)
    ?? CertificateFingerprint(algorithm: "sha-256", value: "")
}

extension SRTPProfile {
  /// The profile's IANA name, as in W3C stats.
  var description: String {
    SRTPProtection(self)?.rawValue ?? "profile \(rawValue)"
  }
}

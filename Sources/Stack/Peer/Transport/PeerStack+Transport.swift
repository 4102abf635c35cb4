import Flow
import ICE
import JSEP
import SCTP
import SDP
import Secure
import Wire

// The transports below media and data.
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
      drive(bundle, MediaFlow.Input.rtp(packet, arrival: arrival, ecn: ecn))
    case .rtcp(let packet, let arrival):
      drive(bundle, MediaFlow.Input.rtcp(packet, arrival: arrival))
    case .data(let packet): receiveData(packet, over: bundle)
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
          sdpMid: negotiation.mid(ofTransport: bundle.number),
          sdpMLineIndex: negotiation.mLineIndex(ofTransport: bundle.number),
          usernameFragment: bundle.transport.agent.localCredentials.usernameFragment)))
  }

  /// Reports a state of a DTLS association; data channels depend on theirs.
  func follow(_ state: DTLSTransportState, of bundle: Bundle) {
    if let transition = bundle.follow(state) {
      emit(transition)
      if state == .closed { end(.peer) }
      if state == .failed { end(.dtlsFailed) }
    }
    guard bundle === dataBundle else { return }
    switch state {
    case .connected: settleData()
    case .closed, .failed: drive(.carrierLost)
    case .connecting: drive(.carrierRenewed)
    case .new: break
    }
  }

  /// Lets media flow, if SRTP was negotiated.
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

/// The sha-256 fingerprint of a certificate in DER.
func certificateFingerprint(_ certificate: [UInt8]) -> CertificateFingerprint {
  // Nil only for an unknown hash function.
  CertificateFingerprint(algorithm: "sha-256", certificate: certificate)
    ?? CertificateFingerprint(algorithm: "sha-256", value: "")
}

extension SRTPProfile {
  /// The profile's IANA name, as in W3C stats.
  var description: String {
    SRTPProtection(self)?.rawValue ?? "profile \(rawValue)"
  }
}

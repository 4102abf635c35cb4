import Flow
import ICE
import JSEP
import SCTP
import Secure
import Transport
import Wire

// The transport below media and data.
extension PeerStack {
  func drive(_ input: consuming PeerTransport.Input) {
    let isOutermost = transportOutputs.isEmpty
    transport.step(input, at: now, into: &transportOutputs)
    guard isOutermost else { return }
    while let output = transportOutputs.next() { handle(output) }
  }

  private func handle(_ output: consuming PeerTransport.Output) {
    switch consume output {
    case .datagram(let datagram): emit(.datagram(datagram))
    case .bindSocket(let id, let address): emit(.bindSocket(id: id, address))
    case .openStream(let id, let target): emit(.openStream(id: id, target))
    case .listen(let id, let address): emit(.listen(id: id, address))
    case .closeSocket(let address): emit(.closeSocket(address))
    case .closeStream(let local, let remote): emit(.closeStream(local: local, remote: remote))
    case .resolveName(let id, let name): emit(.resolveName(id: id, name))
    case .publishName(let name, let address): emit(.publishName(name, address))
    case .rtp(let packet, let arrival): drive(.rtp(packet, arrival: arrival))
    case .rtcp(let packet, let arrival): drive(.rtcp(packet, arrival: arrival))
    case .data(let packet): receiveData(packet)
    case .gatheringState(let state): change(.iceGathering, to: state.rawValue)
    case .iceState(let state): change(.iceConnection, to: state.rawValue)
    case .dtlsState(let state): follow(state)
    case .localCandidate(let candidate): signal(candidate)
    case .unsignaledCandidate(let candidate): tell(.candidate(isLocal: true, candidate))
    case .remoteCandidate(let candidate): tell(.candidate(isLocal: false, candidate))
    case .pair(let pair): tell(.candidatePair(pair))
    case .secured(let result, let role): secure(result, role)
    case .refused(let layer, let reason): refuse(layer: layer, reason)
    }
  }

  private func signal(_ candidate: ICECandidate?) {
    guard let candidate else {
      tell(.localCandidate(nil))
      return
    }
    tell(.candidate(isLocal: true, candidate))
    tell(
      .localCandidate(
        CandidateInit(
          candidate: candidate.description, sdpMid: negotiation.transportMID,
          sdpMLineIndex: negotiation.transportMLineIndex,
          usernameFragment: transport.agent.localCredentials.usernameFragment)))
  }

  private func follow(_ state: DTLSState) {
    change(.dtls, to: state.rawValue)
    switch state {
    case .connected: startDataIfReady()
    case .closed, .failed: drive(SCTPAssociation.Input.abort)
    // Another DTLS association than before, with another SCTP association.
    case .connecting: endAssociation()
    case .new: break
    }
  }

  /// Lets media flow, unless the two sides protect none.
  private func secure(_ result: DTLSResult, _ role: DTLSRole) {
    tell(
      .secured(
        SecuredTransport(
          version: result.version, cipherSuite: result.cipherSuite,
          profile: result.profile?.description ?? "", role: role.rawValue,
          remoteFingerprint: certificateFingerprint(result.remoteCertificate).value)))
    tell(
      .keyLog(
        KeyLog(
          secrets: result.secrets, localCertificate: result.localCertificate,
          remoteCertificate: result.remoteCertificate)))
    guard result.profile != nil else {
      if !negotiation.sections.isEmpty {
        refuse(layer: "srtp", "the peer supports none of our SRTP profiles")
      }
      return
    }
    drive(MediaFlow.Input.writable(true))
    updateCaptures()
  }
}

/// The sha-256 fingerprint of a certificate in DER.
func certificateFingerprint(_ certificate: [UInt8]) -> Fingerprint {
  // Nil only for an unknown hash function.
  Fingerprint(algorithm: "sha-256", certificate: certificate)
    ?? Fingerprint(algorithm: "sha-256", value: "")
}

extension SRTPProfile {
  /// The profile's IANA name, as W3C stats show it.
  var description: String {
    switch self {
    case .aes128CMSHA1_80: "SRTP_AES128_CM_HMAC_SHA1_80"
    case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
    case .aeadAES256GCM: "SRTP_AEAD_AES_256_GCM"
    default: "profile \(rawValue)"
    }
  }
}

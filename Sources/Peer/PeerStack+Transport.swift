import Flow
import ICE
import JSEP
import RTP
import SCTP
import Secure
import Wire

/// Where media goes, what the transport was told, and what it counted.
struct TransportState {
  /// The path in use.
  var path: (local: SocketAddress, remote: SocketAddress)?
  /// Whether that path begins at a TURN server.
  var pathIsRelayed = false
  /// The kernel's receive time of the datagram under way.
  var arrival = Instant.zero
  /// DTLS datagrams made before there was a path.
  var waitingForPath: [[UInt8]] = []
  /// Why the transport cannot work at all.
  var failure: String?
  var dtlsRole: DTLSRole?
  /// What the association under way, or the last one, expects of the peer's certificate.
  var remoteFingerprints: [Fingerprint] = []
  /// Whether ICE was restarted and has not selected a path since.
  var pathIsOld = false
  var secured: DTLSResult?
  var hasRole = false
  var remoteUsernameFragment: String?
  var knownRemoteCandidates: [String] = []
  var interfaces: [IPAddress]?
  var wantsGathering = false
  /// An ICE restart was asked for and not yet offered.
  var restartIsWanted = false
  /// New credentials that an offer with an ICE restart already states.
  var nextCredentials: ICECredentials?
  /// When the agent was last told of traffic, to tell it rarely.
  var lastReceivedTold = Instant(nanoseconds: .min)
  var lastSentTold = Instant(nanoseconds: .min)

  var packetsSent: UInt64 = 0
  var packetsReceived: UInt64 = 0
  var bytesSent: UInt64 = 0
  var bytesReceived: UInt64 = 0
  var selectedPairChanges: UInt64 = 0
  var traffic = TrafficLedger()

  static let waitingMaximum = 16
  static let tellInterval = Interval.milliseconds(500)
}

/// The local candidates of the present generation, as text for descriptions.
struct LocalCandidates {
  var lines: [String] = []
  var isComplete = false
  var defaultAddress: SocketAddress?
}

// ICE below, DTLS and SRTP on the path that it selects.
extension PeerStack {
  // MARK: Datagrams in

  /// Sorts a datagram by its first byte (RFC 7983 section 7).
  func receive(_ datagram: Datagram, arrival: Instant) {
    guard !isClosed else { return }
    transport.arrival = arrival
    switch DatagramClass(datagram.bytes.span.bytes) {
    case .stun, .channelData:
      drive(
        .datagram(local: datagram.local, remote: datagram.remote, bytes: datagram.bytes))
    case .dtls:
      count(received: datagram)
      drive(DTLSTransport.Input.datagram(datagram.bytes))
    case .rtp: receiveProtected(datagram, arrival: arrival, isRTCP: false)
    case .rtcp: receiveProtected(datagram, arrival: arrival, isRTCP: true)
    default: refuse(layer: "transport", "datagram of unknown kind")
    }
  }

  private func receiveProtected(_ datagram: Datagram, arrival: Instant, isRTCP: Bool) {
    guard srtp != nil else {
      refuse(layer: "srtp", "packet before the keys are known")
      return
    }
    var packet = datagram.bytes
    do throws(SRTPContext.Refusal) {
      if isRTCP {
        try srtp?.unprotectRTCP(&packet)
      } else {
        try srtp?.unprotectRTP(&packet)
      }
    } catch {
      refuse(layer: "srtp", error.reason)
      return
    }
    count(received: datagram)
    tellTrafficReceived(datagram)
    drive(isRTCP ? .rtcp(packet, arrival: arrival) : .rtp(packet, arrival: arrival))
  }

  private func count(received datagram: Datagram) {
    transport.packetsReceived += 1
    transport.bytesReceived += UInt64(datagram.bytes.count)
    transport.traffic.received(
      datagram.bytes.count, at: datagram.local, from: datagram.remote, at: now)
  }

  private func tellTrafficReceived(_ datagram: Datagram) {
    guard now - TransportState.tellInterval >= transport.lastReceivedTold else { return }
    transport.lastReceivedTold = now
    drive(.trafficReceived(local: datagram.local, remote: datagram.remote))
  }

  // MARK: Datagrams out

  private func send(_ bytes: consuming [UInt8]) {
    guard let path = transport.path else { return }
    transport.packetsSent += 1
    transport.bytesSent += UInt64(bytes.count)
    transport.traffic.sent(bytes.count, from: path.local, to: path.remote, at: now)
    if transport.pathIsRelayed {
      drive(ICEAgent.Input.relay(local: path.local, remote: path.remote, bytes: bytes))
    } else {
      emit(.datagram(Datagram(local: path.local, remote: path.remote, bytes: bytes)))
    }
    guard now - TransportState.tellInterval >= transport.lastSentTold else { return }
    transport.lastSentTold = now
    drive(ICEAgent.Input.trafficSent)
  }

  private func sendHandshake(_ bytes: [UInt8]) {
    if transport.path != nil {
      send(bytes)
    } else if transport.waitingForPath.count < TransportState.waitingMaximum {
      transport.waitingForPath.append(bytes)
    }
  }

  func sendProtected(_ packet: consuming [UInt8], isRTCP: Bool) {
    guard srtp != nil, transport.path != nil else { return }
    do throws(SRTPContext.Refusal) {
      if isRTCP {
        try srtp?.protectRTCP(&packet)
      } else {
        try srtp?.protectRTP(&packet)
      }
    } catch {
      refuse(layer: "srtp", "own packet: \(error.reason)")
      return
    }
    send(packet)
  }

  // MARK: ICE

  func drive(_ input: ICEAgent.Input) {
    let isOutermost = agentOutputs.isEmpty
    agent.step(input, at: now, into: &agentOutputs)
    guard isOutermost else { return }
    while let output = agentOutputs.next() { handle(output) }
  }

  private func handle(_ output: ICEAgent.Output) {
    switch output {
    case .bindSocket(let id, let address): emit(.bindSocket(id: id, address))
    case .openStream(let id, let local, let server, let remote):
      emit(
        .openStream(
          id: id,
          StreamTarget(
            local: local, remote: remote, isSecure: server.transport == .tls,
            name: server.host.description)))
    case .closeSocket(let address): emit(.closeSocket(address))
    case .resolveName(let id, let name): emit(.resolveName(id: id, name))
    case .datagram(let local, let remote, let bytes):
      emit(.datagram(Datagram(local: local, remote: remote, bytes: bytes)))
    case .relayed(let local, let remote, let bytes):
      receive(
        Datagram(local: local, remote: remote, bytes: bytes), arrival: transport.arrival)
    case .serverFailed(let server, let code, let reason):
      refuse(layer: "turn", "\(server): \(code == 0 ? reason : "\(code) \(reason)")")
    case .gatheringState(let state): change(.iceGathering, to: state.rawValue)
    case .connectionState(let state): change(.iceConnection, to: state.rawValue)
    case .localCandidate(let candidate): signal(candidate)
    case .remoteCandidate(let candidate): tell(.candidate(isLocal: false, candidate))
    case .pair(let pair):
      if let remote = pair.remote.address { transport.traffic.begin(pair.id, pair.base, remote) }
      tell(.candidatePair(pair))
    case .selected(let local, let remote): select(local, remote)
    case .role: break
    }
  }

  /// Keeps a candidate for descriptions and hands it to the application's signaling.
  private func signal(_ candidate: ICECandidate?) {
    guard let candidate else {
      candidates.isComplete = true
      tell(.localCandidate(nil))
      return
    }
    candidates.lines.append(candidate.description)
    if candidates.defaultAddress == nil { candidates.defaultAddress = candidate.address }
    tell(.candidate(isLocal: true, candidate))
    tell(
      .localCandidate(
        CandidateInit(
          candidate: candidate.description, sdpMid: negotiation.transportMID,
          sdpMLineIndex: negotiation.transportMLineIndex,
          usernameFragment: agent.localCredentials.usernameFragment)))
  }

  private func select(_ local: SocketAddress, _ remote: SocketAddress) {
    transport.path = (local, remote)
    transport.pathIsOld = false
    transport.pathIsRelayed = agent.isRelayed(local)
    transport.selectedPairChanges += 1
    startDTLSIfReady()
    let waiting = transport.waitingForPath
    transport.waitingForPath = []
    for bytes in waiting { send(bytes) }
  }

  func learnInterfaces(_ addresses: [IPAddress]) {
    transport.interfaces = addresses
    if transport.wantsGathering { gather() }
  }

  /// Begins gathering once a local description is set and the interfaces are known.
  func gather() {
    guard let interfaces = transport.interfaces else {
      transport.wantsGathering = true
      return
    }
    guard !candidates.isComplete, states.iceGathering == "new" || transport.wantsGathering else {
      return
    }
    transport.wantsGathering = false
    drive(.gather(interfaces))
  }

  /// Gives the agent fresh credentials and forgets the old generation's candidates.
  func restartICE(with credentials: ICECredentials) {
    transport.nextCredentials = nil
    transport.pathIsOld = true
    transport.remoteUsernameFragment = nil
    transport.knownRemoteCandidates = []
    candidates = LocalCandidates()
    transport.wantsGathering = true
    drive(.restart(credentials))
  }

  // MARK: DTLS

  func drive(_ input: DTLSTransport.Input) {
    guard let dtls else { return }
    let isOutermost = dtlsOutputs.isEmpty
    dtls.step(input, at: now, into: &dtlsOutputs)
    guard isOutermost else { return }
    while let output = dtlsOutputs.next() { handle(output) }
  }

  private func handle(_ output: DTLSTransport.Output) {
    switch output {
    case .datagram(let bytes): sendHandshake(bytes)
    case .state(let state):
      change(.dtls, to: state.rawValue)
      switch state {
      case .connected: startDataIfReady()
      case .closed, .failed: drive(SCTPAssociation.Input.abort)
      case .new, .connecting: break
      }
    case .established(let result): secure(result)
    case .data(let packet): receiveData(packet)
    case .failure(let reason): refuse(layer: "dtls", reason)
    }
  }

  /// Starts the handshake once the roles are agreed and there is a path: its time limit runs from
  /// here.
  ///
  /// Other fingerprints mean another association (RFC 8842 section 4), with whoever is at the end
  /// of the path that ICE finds; media goes on with the keys of the former one until then.
  func startDTLSIfReady() {
    guard let dtls, transport.path != nil, let remote = negotiation.remoteTransport,
      let isClient = remote.localIsDTLSClient
    else { return }
    let fingerprints = remote.fingerprints.map {
      Fingerprint(algorithm: $0.algorithm, value: $0.value)
    }
    let isFirst = dtls.state == .new
    guard isFirst || fingerprints != transport.remoteFingerprints && !transport.pathIsOld else {
      return
    }
    let role: DTLSRole = isClient ? .client : .server
    transport.dtlsRole = role
    transport.remoteFingerprints = fingerprints
    transport.waitingForPath = []
    drive(
      isFirst
        ? DTLSTransport.Input.start(role, remoteFingerprints: fingerprints)
        : .restart(role, remoteFingerprints: fingerprints))
  }

  private func secure(_ result: DTLSResult) {
    do throws(SecureError) {
      srtp = try security.protection(result)
    } catch {
      refuse(layer: "srtp", error.reason)
      return
    }
    transport.secured = result
    tell(
      .secured(
        SecuredTransport(
          version: result.version, cipherSuite: result.cipherSuite,
          profile: result.profile.description, role: transport.dtlsRole?.rawValue ?? "",
          remoteFingerprint: certificateFingerprint(result.remoteCertificate).value)))
    tell(
      .keyLog(
        KeyLog(
          secrets: result.secrets, localCertificate: result.localCertificate,
          remoteCertificate: result.remoteCertificate)))
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

extension SRTPContext.Refusal {
  /// The refusal in words.
  var reason: String {
    switch self {
    case .authentication: "authentication failed"
    case .replayed: "replayed packet"
    case .malformed(let status): "malformed packet (status \(status))"
    }
  }
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

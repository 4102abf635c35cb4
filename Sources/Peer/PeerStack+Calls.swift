import Flow
import ICE
import JSEP
import Media
import SCTP
import SDP
import Secure
import Transport
import Wire

// The application programming interface as inputs and replies.
extension PeerStack {
  func perform(_ call: PeerCall) -> PeerReply {
    if isClosed, !call.worksAfterClose {
      return .failure(PeerError(name: "InvalidStateError", message: "the connection is closed"))
    }
    do throws(PeerError) {
      return try result(of: call)
    } catch {
      return .failure(error)
    }
  }

  private func result(of call: PeerCall) throws(PeerError) -> PeerReply {
    switch call {
    case .createOffer(let iceRestart):
      if iceRestart { driveAll(.restart) }
      return .description(try offer())
    case .createAnswer: return .description(try answer())
    case .setLocalDescription(let description): try setLocal(description)
    case .setRemoteDescription(let description): try setRemote(description)
    case .addICECandidate(let candidate): try addRemote(candidate)
    case .addTrack(let kind, let streamIDs, let source, let trackID):
      return .transceiver(try addTrack(kind, streamIDs, source, trackID))
    case .addTransceiver(let kind, let direction, let streamIDs, let source, let encodings):
      for encoding in encodings ?? [] { try check(encoding) }
      let id = try mapped { () throws(JSEPError) in
        try negotiation.addTransceiver(
          kind: kind, direction: direction, streamIDs: streamIDs, byAddTrack: false)
      }
      setFirstEncoding(encodings ?? [], of: id, kind)
      setSource(source, of: id, kind)
      return .transceiver(try info(id))
    case .removeTrack(let id): try removeTrack(id)
    case .setDirection(let id, let direction):
      try mapped { () throws(JSEPError) in try negotiation.setDirection(direction, of: id) }
    case .replaceSource(let id, let source): setSource(source, of: id, try info(id).kind)
    case .stopTransceiver(let id):
      try mapped { () throws(JSEPError) in try negotiation.stop(transceiver: id) }
      if let index = tracks.sendingIndex(of: id) { stopCapture(at: index) }
    case .restartICE:
      driveAll(.restart)
      states.negotiationWasNeeded = true
      tell(.negotiationNeeded)
    case .localDescription:
      guard let description = negotiation.localDescription(localTransports) else {
        return .done
      }
      return .description(description)
    case .setStreams, .setCodecPreferences, .getParameters, .setParameters, .addStream,
      .removeStream, .streams, .readDescription, .sources, .observeLoudest, .limitAudioSlots:
      return try laterResult(of: call)
    case .transceivers: return .transceivers(negotiation.transceivers.map(TransceiverInfo.init))
    case .createDataChannel(let options): return .dataChannel(try createDataChannel(options))
    case .closeDataChannel(let number): drive(.close(try data.known(number)))
    case .setBufferedAmountLowThreshold(let number, let threshold):
      drive(.setBufferedAmountLowThreshold(try data.known(number), threshold))
    case .dataChannels: return .dataChannels(data.infos)
    case .getStats(let selector, let times):
      return .stats(try stats(codecTimes: times ?? []).report(of: selector))
    case .close: close()
    }
    return .done
  }

  /// The calls about senders, streams, descriptions and speakers.
  private func laterResult(of call: PeerCall) throws(PeerError) -> PeerReply {
    switch call {
    case .setStreams(let id, let streamIDs):
      try mapped { () throws(JSEPError) in try negotiation.setStreams(streamIDs, of: id) }
    case .setCodecPreferences(let id, let codecs):
      try mapped { () throws(JSEPError) in
        try negotiation.setCodecPreferences(codecs, of: id)
      }
    case .getParameters(let id): return .parameters(try parameters(of: id))
    case .setParameters(let id, let parameters): try setParameters(parameters, of: id)
    case .addStream(let stream): return .streams(try addStream(stream))
    case .removeStream(let id): try removeStream(id)
    case .streams: return .streams(streams())
    case .readDescription(let slot):
      guard let description = negotiation.description(slot, localTransports) else {
        return .done
      }
      return .description(description)
    case .sources(let id): return .sources(try sources(of: id))
    case .observeLoudest(let settings): speakers.observeLoudest(settings)
    case .limitAudioSlots(let count):
      for event in speakers.limitSlots(count) { tell(event) }
    default: break
    }
    return .done
  }

  func mapped<Value>(_ body: () throws(JSEPError) -> Value) throws(PeerError) -> Value {
    do throws(JSEPError) {
      return try body()
    } catch {
      throw PeerError(name: error.kind.rawValue, message: error.reason)
    }
  }

  // MARK: Descriptions

  /// Refuses descriptions that could state no certificate.
  private func checkCertificate() throws(PeerError) {
    guard let failure = bundles.all.lazy.compactMap({ $0.transport.failure }).first else { return }
    throw PeerError(name: "InvalidAccessError", message: "no DTLS transport: \(failure)")
  }

  private func offer() throws(PeerError) -> SessionDescription {
    prepareBundles(negotiation.offeredTransportNumbers)
    try checkCertificate()
    driveAll(.offering)
    return try mapped { () throws(JSEPError) in
      try negotiation.createOffer(localTransports)
    }
  }

  private func answer() throws(PeerError) -> SessionDescription {
    try checkCertificate()
    return try mapped { () throws(JSEPError) in
      try negotiation.createAnswer(localTransports)
    }
  }

  private func setLocal(_ given: SessionDescription?) throws(PeerError) {
    var description: SessionDescription
    if let given, given.type == .rollback || !given.sdp.isEmpty {
      description = given
    } else if let given {
      // W3C: an empty text stands for what was created, here also for what can be created.
      description = given.type == .offer ? try offer() : try answer()
      description.type = given.type
    } else if negotiation.signalingState == .haveRemoteOffer
      || negotiation.signalingState == .haveLocalPranswer
    {
      description = try answer()
    } else {
      description = try offer()
    }
    let changes = try mapped { () throws(JSEPError) in try negotiation.setLocal(description) }
    if description.type == .offer {
      for bundle in bundles.all {
        if !bundle.transport.hasRole { drive(bundle, .role(.controlling)) }
        drive(bundle, .offered(description.sdp))
      }
    }
    apply(changes)
  }

  private func setRemote(_ description: SessionDescription) throws(PeerError) {
    let wasOfferer = negotiation.signalingState == .haveLocalOffer
    let changes = try mapped { () throws(JSEPError) in try negotiation.setRemote(description) }
    prepareBundles(negotiation.transportNumbers)
    // An own first offer that crossed the peer's was taken back, and with it the role.
    for bundle in bundles.all where description.type == .offer {
      guard !bundle.transport.hasRole || negotiation.currentLocal == nil else { continue }
      drive(bundle, .role(.controlled))
    }
    apply(changes, isAnswerToOwnOffer: wasOfferer)
    // An own restart that was taken back for a crossing offer has begun all the same: the agent
    // goes on with the peer's credentials, which did not change.
    for bundle in bundles.all where description.type != .rollback {
      guard bundle.transport.remoteUsernameFragment == nil else { continue }
      drive(
        bundle,
        .remote(negotiation.remoteTransport(bundle.number), answersOwnOffer: wasOfferer))
    }
  }

  private func apply(_ changes: [Negotiation.Change], isAnswerToOwnOffer: Bool = false) {
    tracks.senders.endTransactions()
    for change in changes {
      switch change {
      case .signalingState(_, let to): self.change(.signaling, to: to.rawValue)
      case .localDescriptionSet:
        for number in negotiation.transportNumbers {
          if let bundle = bundles[number] { drive(bundle, .gather) }
        }
      case .remoteTransport(let number):
        guard let bundle = bundles[number] else { break }
        drive(
          bundle,
          .remote(negotiation.remoteTransport(number), answersOwnOffer: isAnswerToOwnOffer))
      case .sectionsAgreed: applySections()
      case .trackAdded(let id, _):
        if let info = try? info(id) { tell(.track(info)) }
      case .trackRemoved(let id): tell(.trackEnded(transceiver: id))
      case .transceiverAdded: break
      case .transceiverStopped(let id):
        tell(.trackEnded(transceiver: id))
        if let index = tracks.sendingIndex(of: id) { stopCapture(at: index) }
      }
    }
    tellStreams()
    closeUnusedBundles()
  }

  // MARK: Candidates

  private func addRemote(_ candidate: CandidateInit?) throws(PeerError) {
    guard !negotiation.remoteTransports.isEmpty else {
      throw PeerError(name: "InvalidStateError", message: "there is no remote description")
    }
    guard let candidate, !candidate.candidate.isEmpty else {
      let number = candidate?.sdpMid.flatMap { negotiation.transportNumber(ofMID: $0) }
      for bundle in bundles.all where number == nil || bundle.number == number {
        drive(bundle, .remoteEndOfCandidates)
      }
      return
    }
    if let mid = candidate.sdpMid, negotiation.remoteMLineIndex(ofMID: mid) == nil {
      throw PeerError(name: "OperationError", message: "no m-section has the mid \(mid)")
    }
    let parsed: ICECandidate
    do throws(ICECandidateError) {
      parsed = try ICECandidate(attribute: candidate.candidate)
    } catch {
      throw PeerError(name: "OperationError", message: error.description)
    }
    // Sections after a bundle's first one gather of their own until they are bundled.
    guard let bundle = bundle(of: candidate) else { return }
    let known = bundle.transport.remoteUsernameFragment
    if let fragment = candidate.usernameFragment, fragment != known { return }
    drive(bundle, .remoteCandidate(candidate.candidate, parsed))
  }

  /// The bundle that a candidate is for; nil when its section goes along with another one.
  private func bundle(of candidate: CandidateInit) -> Bundle? {
    let mid = candidate.sdpMid ?? candidate.sdpMLineIndex.flatMap(negotiation.mid(atMLine:))
    guard let mid, candidate.sdpMid != nil || bundles.all.count > 1 else { return bundles.first }
    return negotiation.transportNumber(ofMID: mid).flatMap { bundles[$0] }
  }

  // MARK: Tracks

  private func addTrack(
    _ kind: MediaKind, _ streamIDs: [String], _ source: MediaSource, _ trackID: String?
  ) throws(PeerError) -> TransceiverInfo {
    let id = try mapped { () throws(JSEPError) in
      try negotiation.addTransceiver(
        kind: kind, direction: .sendrecv, streamIDs: streamIDs, byAddTrack: true,
        trackID: trackID)
    }
    setSource(source, of: id, kind)
    return try info(id)
  }

  func removeTrack(_ id: UInt32) throws(PeerError) {
    try mapped { () throws(JSEPError) in try negotiation.removeTrack(from: id) }
    setSource(nil, of: id, try info(id).kind)
  }

  func setSource(_ source: MediaSource?, of id: UInt32, _ kind: MediaKind) {
    if let index = tracks.sendingIndex(of: id) {
      guard tracks.sending[index].source != source else { return }
      stopCapture(at: index)
      tracks.sending[index].source = source
      tracks.sending[index].attachment += 1
      tracks.sending[index].audioCounters = AudioCaptureCounters()
      tracks.sending[index].videoCounters = VideoCaptureCounters()
    } else if let source {
      tracks.sending.append(SendingTrack(transceiver: id, kind: kind, source: source))
    }
    updateCaptures()
  }

  func info(_ id: UInt32) throws(PeerError) -> TransceiverInfo {
    guard let transceiver = negotiation.transceivers.first(where: { $0.id == id }) else {
      throw PeerError(name: "InvalidAccessError", message: "there is no transceiver \(id)")
    }
    return TransceiverInfo(transceiver)
  }

  // MARK: Closing

  private func close() {
    guard !isClosed else { return }
    for index in tracks.sending.indices { stopCapture(at: index) }
    for bundle in bundles.all { drive(bundle, MediaFlow.Input.close) }
    drive(.carrierLost)
    driveAll(.close)
    isClosed = true
    apply(negotiation.close())
    change(.signaling, to: "closed")
    for bundle in bundles.all { follow(.closed, of: bundle) }
    change(.iceConnection, to: "closed")
    for track in tracks.receiving where track.kind == .audio {
      forgetSpeaker(track.transceiver, isInbound: true)
    }
    tracks.receiving = []
  }
}

extension PeerCall {
  /// Whether the call has a meaning on a closed connection.
  var worksAfterClose: Bool {
    switch self {
    case .getStats, .close, .localDescription, .transceivers, .streams, .readDescription,
      .dataChannels:
      true
    default: false
    }
  }
}

extension TransceiverInfo {
  init(_ transceiver: Transceiver) {
    self.init(
      id: transceiver.id, kind: transceiver.kind, mid: transceiver.mid,
      direction: transceiver.direction, currentDirection: transceiver.currentDirection,
      remoteStreamIDs: transceiver.remoteStreamIDs)
  }
}

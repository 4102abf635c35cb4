import Flow
import ICE
import JSEP
import Media
import SDP
import Secure
import Wire

// Performs the application's calls and returns their replies.
extension PeerStack {
  func perform(_ call: PeerCall) -> PeerReply {
    if life.isClosed, !call.worksAfterClose {
      return .failure(PeerError(name: "InvalidStateError", message: "the connection is closed"))
    }
    do throws(PeerError) {
      return try result(of: call)
    } catch {
      return .failure(error)
    }
  }

  private func result(of call: PeerCall) throws(PeerError) -> PeerReply {
    if let reply = try relayReply(to: call) { return reply }
    switch call {
    case .createOffer(let iceRestart):
      if iceRestart { driveAll(.restart) }
      return .description(try offer())
    case .createAnswer: return .description(try answer())
    case .setLocalDescription(let description): try setLocal(description)
    case .setRemoteDescription(let description): try setRemote(description)
    case .addICECandidate(let candidate): try addRemote(candidate)
    case .addTrack(let kind, let streamIDs, let source, let trackID, let isEnabled):
      return .transceiver(
        try addTrack(kind, streamIDs, source, trackID, isEnabled: isEnabled ?? true))
    case .addTransceiver(
      let kind, let direction, let streamIDs, let source, let encodings, let isEnabled):
      return .transceiver(
        try addTransceiver(
          kind, direction, streamIDs, source, encodings ?? [], isEnabled: isEnabled ?? true))
    case .removeTrack(let id): try removeTrack(id)
    case .setDirection(let id, let direction):
      try mapped { () throws(JSEPError) in try negotiation.setDirection(direction, of: id) }
    case .replaceSource(let id, let source, let isEnabled):
      try replaceSource(of: id, source, isEnabled: isEnabled ?? true)
    case .stopTransceiver(let id): try stop(id)
    case .setStreams(let id, let streamIDs):
      try mapped { () throws(JSEPError) in try negotiation.setStreams(streamIDs, of: id) }
    case .setCodecPreferences(let id, let codecs):
      try mapped { () throws(JSEPError) in
        try negotiation.setCodecPreferences(codecs, of: id)
      }
    case .getParameters(let id): return .parameters(try parameters(of: id))
    case .setParameters(let id, let parameters): try setParameters(parameters, of: id)
    case .setContentHint(let id, let hint): try setContentHint(hint, of: id)
    case .noteCapture(let id, let note): try recordCapture(note, of: id)
    case .addStream(let stream): return .streams(try addStream(stream))
    case .removeStream(let id): try removeStream(id)
    case .streams: return .streams(streams())
    case .setEnabled(let id, let isInbound, let isEnabled):
      try setEnabled(isEnabled, of: id, isInbound: isInbound)
    case .setVolume(let id, let volume): try setVolume(volume, of: id)
    case .insertDTMF(let id, let tones, let duration, let gap):
      try insertTones(tones, duration: duration, gap: gap, into: id)
    case .trackState(let id, let isInbound):
      return .trackState(try trackState(of: id, isInbound: isInbound))
    case .removeICECandidates(let candidates):
      for candidate in candidates { try removeRemote(candidate) }
    case .setConfiguration(let servers, let policy): try use(servers, policy)
    case .limitBitrate(let minimum, let current, let maximum):
      try limitBitrate(minimum: minimum, current: current, maximum: maximum)
    case .restartICE: restartICE()
    case .localDescription: return reply(negotiation.localDescription(presentTransports))
    case .readDescription(let slot):
      return reply(negotiation.description(slot, presentTransports))
    case .transceivers: return .transceivers(negotiation.transceivers.map(TransceiverInfo.init))
    case .createDataChannel(let options): return .dataChannel(try createDataChannel(options))
    case .closeDataChannel(let number): drive(.close(try data.known(number)))
    case .setBufferedAmountLowThreshold(let number, let threshold):
      drive(.setBufferedAmountLowThreshold(try data.known(number), threshold))
    case .dataChannels: return .dataChannels(data.infos)
    case .getStats(let selector, let times):
      return .stats(try stats(codecTimes: times ?? []).report(of: selector))
    case .sources(let id): return .sources(try sources(of: id))
    case .observeLoudest(let settings): speakers.observeLoudest(settings)
    case .limitAudioSlots(let count): for event in speakers.limitSlots(count) { emit(event) }
    case .exemptFromAudioSlots(let transceiver, let isExempt):
      for event in speakers.exempt(transceiver, isExempt) { emit(event) }
    case .close: close()
    }
    return .done
  }

  /// Returns a reply with the description, or `.done` if there is none.
  private func reply(_ description: SessionDescription?) -> PeerReply {
    description.map { .description($0) } ?? .done
  }

  private func restartICE() {
    driveAll(.restart)
    negotiation.wantRestart()
  }

  // MARK: Transceivers

  private func addTransceiver(
    _ kind: MediaKind, _ direction: TransceiverDirection, _ streamIDs: [String],
    _ source: MediaSource?, _ encodings: [RTPEncoding], isEnabled: Bool
  ) throws(PeerError) -> TransceiverInfo {
    let encodings = try RTPEncoding.suited(encodings, to: kind)
    let rids = encodings.compactMap(\.rid)
    let id = try mapped { () throws(JSEPError) in
      try negotiation.addTransceiver(
        kind: kind, direction: direction, streamIDs: streamIDs, byAddTrack: false,
        hasTrack: source != nil, rids: rids)
    }
    tracks.senders.begin(id, kind, with: encodings)
    setSource(source, of: id, kind, isEnabled: isEnabled)
    return try info(id)
  }

  private func replaceSource(
    of id: UInt32, _ source: MediaSource?, isEnabled: Bool
  ) throws(PeerError) {
    try mapped { () throws(JSEPError) in
      try negotiation.replaceTrack(of: id, hasTrack: source != nil)
    }
    setSource(source, of: id, try info(id).kind, isEnabled: isEnabled)
  }

  private func stop(_ id: UInt32) throws(PeerError) {
    try mapped { () throws(JSEPError) in try negotiation.stop(transceiver: id) }
    stopCapture(of: id)
  }

  private func setContentHint(_ hint: ContentHint, of id: UInt32) throws(PeerError) {
    tracks.senders.setContentHint(hint, of: id, try info(id).kind)
    updateCaptures()
  }

  private func recordCapture(_ note: CaptureNote, of id: UInt32) throws(PeerError) {
    tracks.senders.setScreencast(note.isScreencast, of: id, try info(id).kind)
    updateCaptures()
  }

  func mapped<Value>(_ body: () throws(JSEPError) -> Value) throws(PeerError) -> Value {
    do throws(JSEPError) {
      return try body()
    } catch {
      throw PeerError(name: error.kind.rawValue, message: error.reason)
    }
  }

  // MARK: Tracks

  private func addTrack(
    _ kind: MediaKind, _ streamIDs: [String], _ source: MediaSource, _ trackID: String?,
    isEnabled: Bool
  ) throws(PeerError) -> TransceiverInfo {
    let id = try mapped { () throws(JSEPError) in
      try negotiation.addTransceiver(
        kind: kind, direction: .sendrecv, streamIDs: streamIDs, byAddTrack: true,
        trackID: trackID)
    }
    setSource(source, of: id, kind, isEnabled: isEnabled)
    return try info(id)
  }

  func removeTrack(_ id: UInt32) throws(PeerError) {
    try mapped { () throws(JSEPError) in try negotiation.removeTrack(from: id) }
    setSource(nil, of: id, try info(id).kind)
  }

  func info(_ id: UInt32) throws(PeerError) -> TransceiverInfo {
    guard let transceiver = negotiation.transceivers.first(where: { $0.id == id }) else {
      throw PeerError(name: "InvalidAccessError", message: "there is no transceiver \(id)")
    }
    return TransceiverInfo(transceiver)
  }

  // MARK: Sender parameters

  private func parameters(of id: UInt32) throws(PeerError) -> RTPSendParameters {
    tracks.senders.parameters(
      of: try info(id), negotiation.sections.first { $0.transceiverID == id },
      cname: negotiation.cname, transaction: entropy.stream("parameters").iceString(16))
  }

  private func setParameters(_ parameters: RTPSendParameters, of id: UInt32) throws(PeerError) {
    try tracks.senders.set(parameters, of: try info(id))
    updateCaptures()
  }

  // MARK: Closing

  private func close() {
    guard !life.isClosed else { return }
    end(.application)
    for index in tracks.sending.indices { drive(sending: index, .stop) }
    for bundle in bundles.all { drive(bundle, MediaFlow.Input.close) }
    drive(.carrierLost)
    driveAll(.close)
    life.close()
    apply(negotiation.close())
    emit(states.move(to: SignalingState.closed))
    for bundle in bundles.all { follow(.closed, of: bundle) }
    emit(states.move(to: ICEConnectionState.closed))
    endPlayouts(besides: [])
    for id in tracks.receivers.live { endReceiving(id, .closed) }
  }
}

extension PeerCall {
  /// Whether a closed connection still performs the call; other calls throw `InvalidStateError`.
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
      remoteStreamIDs: transceiver.remoteStreamIDs, remoteTrackID: transceiver.remoteTrackID)
  }
}

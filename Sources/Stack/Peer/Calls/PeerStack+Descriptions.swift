import Flow
import ICE
import JSEP
import RTP
import SDP
import Wire

// Creates, sets and reads descriptions, and applies the results.
extension PeerStack {
  /// Throws if a transport has no certificate, because a description must state its fingerprint.
  private func checkCertificate() throws(PeerError) {
    guard let failure = bundles.all.lazy.compactMap({ $0.transport.failure }).first else { return }
    throw PeerError(name: "InvalidAccessError", message: "no DTLS transport: \(failure)")
  }

  func offer() throws(PeerError) -> SessionDescription {
    prepareBundles(negotiation.offeredTransportNumbers)
    try checkCertificate()
    driveAll(.offering)
    return try mapped { () throws(JSEPError) in
      try negotiation.createOffer(localTransports)
    }
  }

  func answer() throws(PeerError) -> SessionDescription {
    try checkCertificate()
    return try mapped { () throws(JSEPError) in
      try negotiation.createAnswer(localTransports)
    }
  }

  func setLocal(_ given: SessionDescription?) throws(PeerError) {
    var description: SessionDescription
    if let given, given.type == .rollback || !given.sdp.isEmpty {
      description = given
    } else if let given {
      // W3C: empty text stands for the description that createOffer or createAnswer would return.
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

  func setRemote(_ description: SessionDescription) throws(PeerError) {
    let wasOfferer = negotiation.signalingState == .haveLocalOffer
    let changes = try mapped { () throws(JSEPError) in try negotiation.setRemote(description) }
    prepareBundles(negotiation.transportNumbers)
    // A remote offer makes this end controlled, unless a completed negotiation has settled the
    // role. A first local offer that collided and was rolled back does not settle it.
    for bundle in bundles.all where description.type == .offer {
      guard !bundle.transport.hasRole || negotiation.currentLocal == nil else { continue }
      drive(bundle, .role(.controlled))
    }
    apply(changes, isAnswerToOwnOffer: wasOfferer)
    // Rolling back a local offer after a collision does not undo its ICE restart; the agent
    // continues with the remote peer's unchanged credentials.
    for bundle in bundles.all where description.type != .rollback {
      guard bundle.transport.remoteUsernameFragment == nil else { continue }
      drive(
        bundle,
        .remote(negotiation.remoteTransport(bundle.number), answersLocalOffer: wasOfferer))
    }
  }

  func apply(_ changes: [Negotiation.Change], isAnswerToOwnOffer: Bool = false) {
    tracks.senders.endTransactions()
    followLayers()
    for change in changes {
      switch change {
      case .signalingState(_, let to): emit(states.move(to: to))
      case .localDescriptionSet:
        for number in negotiation.transportNumbers {
          if let bundle = bundles[number] { drive(bundle, .gather) }
        }
      case .remoteTransport(let number):
        guard let bundle = bundles[number] else { break }
        drive(
          bundle,
          .remote(negotiation.remoteTransport(number), answersLocalOffer: isAnswerToOwnOffer))
      case .sectionsAgreed: applySections()
      case .trackAdded(let id, _):
        if let info = try? info(id) { emit(.track(info)) }
        beginReceiving(id)
      case .trackRemoved(let id):
        emit(.trackEnded(transceiver: id))
        recordMuted(true, of: id, .removed)
      case .transceiverAdded: break
      case .transceiverStopped(let id):
        emit(.trackEnded(transceiver: id))
        stopCapture(of: id)
        endReceiving(id, .stopped)
      }
    }
    reportStreams()
    closeUnusedBundles()
  }
}

// MARK: - Sections

// Applies the result of an offer/answer exchange to the lower layers.
extension PeerStack {
  func applySections() {
    settleLayers()
    configureFlows()
    let changed = tracks.announce(negotiation.sections, of: negotiation.transceivers)
    for record in changed { emit(.trackNegotiated(record)) }
    endPlayouts(besides: negotiation.sections)
    settleData()
    updateCaptures()
  }

  /// Adapts the senders' encodings to their transceivers' layers after a remote offer has requested
  /// simulcast or has been rolled back.
  func followLayers() {
    for transceiver in negotiation.transceivers {
      let rids = transceiver.layers.map(\.rid)
      guard tracks.senders.follow(rids, of: transceiver.id, transceiver.kind) else { continue }
      let indices = tracks.sendingIndices(of: transceiver.id)
      guard let first = indices.first, let source = tracks.sending[first].source else { continue }
      let isEnabled = tracks.sending[first].isEnabled
      for index in indices { drive(sending: index, .stop) }
      tracks.removeSending(of: transceiver.id)
      addTracks(source, of: transceiver.id, transceiver.kind, isEnabled: isEnabled)
    }
  }

  /// Drops the layers that the remote peer refused.
  private func settleLayers() {
    for transceiver in negotiation.transceivers where !transceiver.layers.isEmpty {
      let rids = transceiver.layers.map(\.rid)
      tracks.senders.restrictLayers(rids, of: transceiver.id)
      for index in tracks.sendingIndices(of: transceiver.id) {
        guard let rid = tracks.sending[index].rid, !rids.contains(rid) else { continue }
        drive(sending: index, .stop)
      }
      tracks.restrictLayers(rids, of: transceiver.id)
    }
  }

  private func configureFlows() {
    for bundle in bundles.all {
      bundle.carry(
        negotiation.sections.filter { $0.transport == bundle.number }.map(\.mid))
    }
    let senders = bundles.all.filter { bundle in
      negotiation.sections.contains {
        $0.transport == bundle.number && $0.kind == .video && $0.direction.sends
      }
    }
    for bundle in bundles.all {
      if bundle.share(among: UInt64(max(senders.count, 1))) { limitBitrate(of: bundle) }
      let sections = negotiation.sections.filter { $0.transport == bundle.number }
      drive(bundle, .configure(sections.map(flowSection)))
    }
  }

  private func flowSection(_ section: NegotiatedSection) -> FlowSection {
    let codecs = section.codecs.map { FlowSection.Codec($0) }
    let transceiver = negotiation.transceivers.first { $0.id == section.transceiverID }
    var sending: FlowSection.Sending?
    if section.direction.sends, let codec = section.sentCodec.map({ FlowSection.Codec($0) }),
      let transceiver
    {
      sending = FlowSection.Sending(
        transceiver.sources(in: section).map { source in
          FlowSection.Sending.Source(
            rid: source.rid, ssrc: source.ssrc,
            rtxSSRC: codec.rtxPayloadType == nil ? nil : source.rtxSSRC)
        }, codec: codec, events: section.sentEvents.map { FlowSection.Codec($0) })
    }
    var receiving: FlowSection.Receiving?
    if section.direction.receives {
      receiving = FlowSection.Receiving(
        codecs: codecs + section.unansweredCodecs.map { FlowSection.Codec($0) },
        ssrcs: section.remoteSSRCs, rtxSSRCs: section.remoteRTXSSRCs)
    }
    return FlowSection(
      mid: section.mid, kind: section.kind, sending: sending, receiving: receiving,
      extensions: section.extensions.map { .init(uri: $0.uri, id: $0.id) },
      reducedSizeRTCP: section.reducedSizeRTCP)
  }
}

extension Transceiver {
  /// Returns the negotiated streams to send in a section.
  func sources(in section: NegotiatedSection) -> [(rid: String?, ssrc: UInt32, rtxSSRC: UInt32)] {
    let agreed = layers.filter { layer in section.sentLayers.contains { $0.rid == layer.rid } }
    guard agreed.isEmpty else { return agreed.map { ($0.rid, $0.ssrc, $0.rtxSSRC) } }
    return [(nil, onlySource.ssrc, onlySource.rtxSSRC)]
  }
}

extension FlowSection.Codec {
  fileprivate init(_ codec: NegotiatedCodec) {
    self.init(
      payloadType: codec.payloadType, name: CodecName(rawValue: codec.name),
      clockRate: codec.clockRate, rtxPayloadType: codec.rtxPayloadType, feedback: codec.feedback,
      fragments: codec.format?.acceptsFragments ?? true)
  }
}

// MARK: - Candidates

// Remote candidates (W3C addIceCandidate).
extension PeerStack {
  func addRemote(_ candidate: CandidateInit?) throws(PeerError) {
    let text = candidate?.candidate ?? ""
    guard text.isEmpty || candidate?.sdpMid != nil || candidate?.sdpMLineIndex != nil else {
      throw PeerError(name: "TypeError", message: "the candidate names no m-section")
    }
    guard negotiation.hasRemoteDescription else {
      throw PeerError(name: "InvalidStateError", message: "there is no remote description")
    }
    var index: Int?
    if let candidate { index = try mLineIndex(of: candidate) }
    let mid = index.flatMap(negotiation.mid(atMLine:))
    let number = mid.flatMap { negotiation.transportNumber(ofMID: $0) }
    if let index, negotiation.isOff(mLine: index) { return }
    if let fragment = candidate?.usernameFragment,
      !negotiation.remoteUsernameFragments(atMLine: index).contains(fragment)
    {
      throw PeerError(
        name: "OperationError",
        message: "no remote description has the username fragment \(fragment) there")
    }
    guard !text.isEmpty else {
      for bundle in bundles.all where index == nil || bundle.number == number {
        if bundle.isOfPresentGeneration(candidate) { drive(bundle, .remoteEndOfCandidates) }
      }
      return
    }
    let parsed: ICECandidate
    do throws(ICECandidateError) {
      parsed = try ICECandidate(attribute: text)
    } catch {
      throw PeerError(name: "OperationError", message: error.description)
    }
    // Candidates of a section that shares another section's transport are ignored.
    guard let index, let bundle = number.flatMap({ bundles[$0] }),
      bundle.isOfPresentGeneration(candidate)
    else { return }
    if let fragment = bundle.transport.remoteUsernameFragment {
      negotiation.add(remoteCandidate: text, atMLine: index, of: fragment)
    }
    drive(bundle, .remoteCandidate(text, parsed))
  }

  /// Removes a withdrawn candidate; candidates from earlier generations are already gone.
  func removeRemote(_ candidate: CandidateInit) throws(PeerError) {
    guard let index = try mLineIndex(of: candidate) else {
      throw PeerError(name: "TypeError", message: "the candidate names no m-section")
    }
    let parsed: ICECandidate
    do throws(ICECandidateError) {
      parsed = try ICECandidate(attribute: candidate.candidate)
    } catch {
      throw PeerError(name: "OperationError", message: error.description)
    }
    negotiation.remove(remoteCandidate: candidate.candidate, atMLine: index)
    guard
      let number = negotiation.mid(atMLine: index).flatMap({
        negotiation.transportNumber(ofMID: $0)
      }), let bundle = bundles[number], bundle.isOfPresentGeneration(candidate)
    else { return }
    drive(bundle, .removedRemoteCandidate(candidate.candidate, parsed))
  }

  /// Returns the index of the m-line that a candidate names, by MID if present; returns nil if it
  /// names none.
  private func mLineIndex(of candidate: CandidateInit) throws(PeerError) -> Int? {
    if let mid = candidate.sdpMid {
      guard let index = negotiation.remoteMLineIndex(ofMID: mid) else {
        throw PeerError(name: "OperationError", message: "no m-section has the mid \(mid)")
      }
      return index
    }
    guard let index = candidate.sdpMLineIndex else { return nil }
    let count = negotiation.remoteSectionCount
    guard (0..<count).contains(index) else {
      throw PeerError(
        name: "OperationError", message: "there is no m-section \(index), only \(count)")
    }
    return index
  }
}

extension Bundle {
  /// Returns whether a candidate belongs to the remote peer's current ICE generation.
  fileprivate func isOfPresentGeneration(_ candidate: CandidateInit?) -> Bool {
    candidate?.usernameFragment.map { $0 == transport.remoteUsernameFragment } ?? true
  }
}

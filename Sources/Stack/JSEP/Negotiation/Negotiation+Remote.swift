package import SDP
import Wire

extension Negotiation {
  /// Applies a remote description; if its text is faulty, the error names the line.
  ///
  /// A remote offer that collides with a local one rolls the local one back (W3C implicit
  /// rollback).
  package mutating func setRemote(_ description: SessionDescription) throws(JSEPError) -> [Change] {
    try checkNotClosed()
    var next = self
    let changes =
      switch description.type {
      case .rollback: try next.rollBack()
      case .offer: try next.apply(remoteOffer: description)
      case .answer, .pranswer: try next.apply(remoteAnswer: description)
      }
    self = next
    return changes
  }

  private func parse(_ description: SessionDescription) throws(JSEPError) -> SDPDocument {
    do {
      return try SDPDocument(parsing: description.sdp)
    } catch {
      throw JSEPError(.syntax, error.description)
    }
  }

  // MARK: Offers

  private mutating func apply(remoteOffer description: SessionDescription) throws(JSEPError)
    -> [Change]
  {
    var changes: [Change] = []
    if signalingState == .haveLocalOffer { changes = try rollBack() }
    guard signalingState == .stable || signalingState == .haveRemoteOffer else {
      throw wrongState("setRemoteDescription(offer)")
    }
    let offer = try parse(description)
    let reading = try OfferReading(offer, bundling.policy, capabilities)
    let before = stableState?.slots ?? sectionTable.slots
    let mids = try names(of: offer, before)
    changes += enter(.haveRemoteOffer)
    leaveStable()
    created.overtake()
    descriptions.pend(remote: description, offer)
    let numbers = bundling.numbers(of: reading.groups.map(\.members), before: before)
    var transports: [Change] = []
    for (number, group) in zip(numbers, reading.groups) {
      let role = remoteSides[number]?.establishedRole(for: group.transport)
      transports += remoteSides.adopt(
        RemoteTransport(group.transport, number: number, localIsDTLSClient: role))
    }
    let (made, tracks) = associate(offer, reading, mids, numbers)
    return changes + returnOrphans() + made + transports + tracks
  }

  /// Finds or creates the transceiver for each section (RFC 9429 section 5.10).
  private mutating func associate(
    _ offer: SDPDocument, _ reading: OfferReading, _ mids: [String], _ numbers: [Int]
  ) -> (made: [Change], tracks: [Change]) {
    var made: [Change] = []
    var tracks: [Change] = []
    var slots: [SectionSlot] = []
    for (index, section) in offer.sections.enumerated() {
      let mid = mids[index]
      let isAccepted = reading.media[index] != nil
      let direction = section.direction ?? offer.direction ?? .sendrecv
      var id: UInt32?
      if let (place, isNew) = transceiverTable.serve(
        section, mid: mid, isAccepted: isAccepted, direction)
      {
        let transceiver = transceivers[place]
        id = transceiver.id
        if isNew { made.append(.transceiverAdded(id: transceiver.id)) }
        let sends = isAccepted && direction.sends && !transceiver.isStopping
        tracks += transceiverTable.change(place) {
          $0.associate(mid, index)
          return $0.applyRemote(section, sends: sends)
        }
        if capabilities.acceptsOfferedLayers, isAccepted, direction.receives {
          transceiverTable.applyLayers(of: section, place)
        }
      }
      slots.append(
        SectionSlot(
          kind: section.kind, mid: mid, midIsSignaled: section.mid != nil, transceiverID: id,
          isData: reading.data == index,
          transportNumber: reading.group(of: index).map { numbers[$0] } ?? bundling.shared,
          transport: section.transport, formats: section.formats))
    }
    sectionTable.apply(slots)
    return (made, tracks)
  }

  /// Returns the MIDs of an offer's sections, generating missing ones.
  ///
  /// Sections keep their index and MID; only a disabled section may be reused (RFC 3264 section 8).
  private func names(of offer: SDPDocument, _ before: [SectionSlot]) throws(JSEPError) -> [String] {
    guard offer.sections.count >= before.count else {
      throw JSEPError(
        .invalidAccess,
        "line \(offer.line(ofSection: offer.sections.count)): the offer has"
          + " \(offer.sections.count) m-sections where the session has \(before.count)")
    }
    var mids: [String] = []
    var taken = Set(offer.sections.compactMap(\.mid))
    for (index, section) in offer.sections.enumerated() {
      guard index < before.count, !before[index].isDead else {
        let mid = section.mid ?? sectionTable.freeMID(besides: taken)
        taken.insert(mid)
        mids.append(mid)
        continue
      }
      let slot = before[index]
      guard section.kind == slot.kind, section.mid == (slot.midIsSignaled ? slot.mid : nil) else {
        throw JSEPError(
          .invalidAccess,
          "\(JSEPError.place(in: offer, at: index)) was \(slot.kind.rawValue), mid \(slot.mid)")
      }
      mids.append(slot.mid)
    }
    // A generated MID may clash with a MID that the peer assigns later.
    for index in offer.sections.indices where mids[..<index].contains(mids[index]) {
      throw JSEPError(
        .invalidAccess,
        "\(JSEPError.place(in: offer, at: index)) has the mid \(mids[index]) of another m-section")
    }
    return mids
  }

  // MARK: Answers

  private mutating func apply(remoteAnswer description: SessionDescription) throws(JSEPError)
    -> [Change]
  {
    guard signalingState == .haveLocalOffer || signalingState == .haveRemotePranswer,
      let offer = descriptions.pendingLocal?.document
    else { throw wrongState("setRemoteDescription(\(description.type.rawValue))") }
    let answer = try parse(description)
    let reading = try AnswerReading(answer, to: offer, sectionTable.slots, capabilities)
    let isFinal = description.type == .answer
    var changes = enter(isFinal ? .stable : .haveRemotePranswer)
    created.overtake()
    for (index, number) in reading.numbers.enumerated() {
      if let number { sectionTable.move(index, to: number) }
    }
    for (number, transport) in reading.transports {
      let isClient =
        remoteSides[number]?.establishedRole(for: transport) ?? (transport.setup == .passive)
      changes += remoteSides.adopt(
        RemoteTransport(transport, number: number, localIsDTLSClient: isClient))
    }
    guard isFinal else {
      descriptions.pend(remote: description, answer)
      return changes + agreeProvisionally(offer: offer, answer: answer, peerAnswered: true)
    }
    descriptions.complete(remote: description, answer)
    return changes + complete(offer: offer, answer: answer, peerAnswered: true)
  }
}

// MARK: - Completion

extension Negotiation {
  /// Applies the outcome of an offer and its final answer.
  mutating func complete(offer: SDPDocument, answer: SDPDocument, peerAnswered: Bool) -> [Change] {
    endExchange()
    wishes.recordAgreed(descriptions.localUsernameFragments)
    var sections: [NegotiatedSection] = []
    var data: NegotiatedData?
    var stopped: [Change] = []
    var tracks: [Change] = []
    for (index, slot) in sectionTable.slots.enumerated() {
      let offered = offer.sections[index]
      let answered = answer.sections[index]
      if slot.isData {
        guard answered.port != 0, !offered.isRejected, answered.carriesData else {
          sectionTable.end(index)
          wishes.dropData()
          continue
        }
        data = (peerAnswered ? answered : offered).agreedData(slot)
        continue
      }
      guard let place = transceiverTable.index(of: slot.transceiverID) else {
        sectionTable.end(index)
        // If the peer rejected data channels, opening another channel requests them again.
        if slot.kind == .application { wishes.dropData() }
        continue
      }
      transceiverTable.change(place) { $0.recordCompletion() }
      if answered.port == 0 || offered.isRejected {
        let gone = transceiverTable.remove(place)
        tracks += gone.track
        stopped.append(gone.stopped)
        sectionTable.end(index)
        continue
      }
      let section = agreement(index, offer, answer, transceivers[place], peerAnswered)
      sections.append(section)
      numbers.learn(section)
      tracks += transceiverTable.change(place) {
        if peerAnswered, section.direction.sends { $0.restrictLayers(section.sentLayers) }
        if !peerAnswered { $0.settleOfferedLayers(section.sentLayers) }
        return $0.settle(section.direction, peerAnswered ? answered : nil)
      }
    }
    agreed = AgreedSession(sections, data: data)
    bundling.settle(sectionTable.slots, answer)
    remoteSides.removeAll(besides: transportNumbers)
    stopped += transceiverTable.removeStopped()
    return stopped + [.sectionsAgreed] + tracks
  }

  /// Applies the outcome of an offer and a provisional answer, so that media can flow before the
  /// final one; nothing is stopped yet (RFC 9429 section 4.1.10.1).
  mutating func agreeProvisionally(offer: SDPDocument, answer: SDPDocument, peerAnswered: Bool)
    -> [Change]
  {
    var sections: [NegotiatedSection] = []
    var tracks: [Change] = []
    for (index, slot) in sectionTable.slots.enumerated() {
      let answered = answer.sections[index]
      guard answered.port != 0, !offer.sections[index].isRejected,
        let place = transceiverTable.index(of: slot.transceiverID)
      else { continue }
      let section = agreement(index, offer, answer, transceivers[place], peerAnswered)
      sections.append(section)
      tracks += transceiverTable.change(place) {
        $0.settle(section.direction, peerAnswered ? answered : nil)
      }
    }
    agreed = AgreedSession(sections, data: agreed.data)
    return [.sectionsAgreed] + tracks
  }

  private func agreement(
    _ index: Int, _ offer: SDPDocument, _ answer: SDPDocument, _ transceiver: Transceiver,
    _ peerAnswered: Bool
  ) -> NegotiatedSection {
    let (offered, answered) = (offer.sections[index], answer.sections[index])
    let kind = transceiver.kind
    let offeredMedia = SectionMedia(reading: offered, kind: kind, capabilities)
    let media = SectionMedia.agreed(
      offer: offeredMedia, answer: SectionMedia(reading: answered, kind: kind, capabilities),
      peerAnswered: peerAnswered)
    // The directions are intersected from the offerer's point of view, then converted to the local
    // peer's.
    let common = (offered.direction ?? offer.direction ?? .sendrecv)
      .intersected(with: (answered.direction ?? answer.direction ?? .sendrecv).reversed)
    let direction = peerAnswered ? common : common.reversed
    let peers = peerAnswered ? answered : offered
    let own = peerAnswered ? offered : answered
    let sources = RemoteSources(direction.receives ? peers : nil)
    var section = NegotiatedSection(
      mid: sectionTable.slots[index].mid, transceiverID: transceiver.id,
      transport: sectionTable.slots[index].transportNumber, kind: kind,
      direction: TransceiverDirection(direction), codecs: media.codecs,
      extensions: media.extensions, remoteSSRCs: sources.ssrcs,
      remoteRTXSSRCs: sources.rtxSSRCs,
      reducedSizeRTCP: offered.reducesRTCPSize && answered.reducesRTCPSize,
      sendBitrateLimit: direction.sends ? peers.receiveBitrateLimit : nil,
      sentLayers: direction.sends && transceiver.offersSimulcast
        ? NegotiatedLayer.agreed(sender: own, receiver: peers) : [])
    if peerAnswered, direction.receives, capabilities.receivesAllOffered {
      section.unansweredCodecs = media.unanswered(of: offeredMedia)
    }
    return section
  }
}

/// The media SSRCs a section announces, each with its RTX SSRC.
private struct RemoteSources {
  /// The maximum number of SSRCs stored for a section.
  static let limit = 64

  var ssrcs: [UInt32] = []
  var rtxSSRCs: [UInt32?] = []

  init(_ section: SDPSection?) {
    guard let section else { return }
    let groups = section.ssrcGroups
    var secondary: Set<UInt32> = []
    var retransmission: [UInt32: UInt32] = [:]
    for group in groups where group.semantics == "FID" || group.semantics == "FEC-FR" {
      secondary.formUnion(group.ssrcs.dropFirst())
      guard group.semantics == "FID", group.ssrcs.count == 2 else { continue }
      retransmission[group.ssrcs[0]] = group.ssrcs[1]
    }
    var seen: Set<UInt32> = []
    for ssrc in section.ssrcs.map(\.ssrc) {
      guard !secondary.contains(ssrc), seen.insert(ssrc).inserted,
        ssrcs.count < RemoteSources.limit
      else { continue }
      ssrcs.append(ssrc)
      rtxSSRCs.append(retransmission[ssrc])
    }
  }
}

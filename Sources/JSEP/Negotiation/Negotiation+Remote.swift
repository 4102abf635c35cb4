package import SDP
import Wire

extension Negotiation {
  /// Applies the peer's description; the text is refused with the line that is wrong.
  ///
  /// An offer that crosses an own one takes the own one back (W3C implicit rollback).
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
    let before = stableState?.slots ?? slots
    let mids = try names(of: offer, before)
    changes += enter(.haveRemoteOffer)
    leaveStable()
    created = nil
    pendingRemote = description
    documents.pendingRemote = offer
    let numbers = bundling.numbers(of: reading.groups.map(\.members), before: before)
    var transports: [Change] = []
    for (number, group) in zip(numbers, reading.groups) {
      let role = remoteTransport(number)?.establishedRole(for: group.transport)
      transports += adopt(group.transport, number, role: role)
    }
    let (made, tracks) = associate(offer, reading, mids, numbers)
    return changes + returnOrphans() + made + transports + tracks
  }

  /// Finds or makes the transceiver of every section (RFC 9429 section 5.10).
  private mutating func associate(
    _ offer: SDPDocument, _ reading: OfferReading, _ mids: [String], _ numbers: [Int]
  ) -> (made: [Change], tracks: [Change]) {
    var made: [Change] = []
    var tracks: [Change] = []
    slots = []
    for (index, section) in offer.sections.enumerated() {
      let mid = mids[index]
      remember(mid)
      let isAccepted = reading.media[index] != nil
      let direction = section.direction ?? offer.direction ?? .sendrecv
      var place = transceivers.firstIndex {
        $0.mid == mid && SectionKind($0.kind) == section.kind
      }
      if place == nil, isAccepted, let kind = section.kind.mediaKind {
        place = transceivers.firstIndex { $0.mayServe(direction, kind) }
        if place == nil {
          var transceiver = makeTransceiver(kind: kind, direction: .recvonly, streamIDs: [])
          transceiver.wasMadeForRemoteOffer = true
          transceivers.append(transceiver)
          place = transceivers.count - 1
          made.append(.transceiverAdded(id: transceiver.id))
        }
      }
      if let place {
        transceivers[place].mid = mid
        transceivers[place].mLineIndex = index
        tracks += transceivers[place].hear(
          section, sends: isAccepted && direction.sends && !transceivers[place].isStopping)
      }
      slots.append(
        SectionSlot(
          kind: section.kind, mid: mid, midIsSignaled: section.mid != nil,
          transceiverID: place.map { transceivers[$0].id }, isData: reading.data == index,
          transportNumber: reading.group(of: index).map { numbers[$0] } ?? bundling.shared,
          transport: section.transport, formats: section.formats))
    }
    return (made, tracks)
  }

  /// The mids of an offer's sections, made up where the peer gives none.
  ///
  /// Sections keep their places and names for good; only a dead one may become another (RFC 3264
  /// section 8).
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
        let mid = section.mid ?? freeMID(besides: taken)
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
    // A name that was made up may clash with one that the peer gives later.
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
      let offer = documents.pendingLocal
    else { throw wrongState("setRemoteDescription(\(description.type.rawValue))") }
    let answer = try parse(description)
    let reading = try AnswerReading(answer, to: offer, slots, capabilities)
    let isFinal = description.type == .answer
    var changes = enter(isFinal ? .stable : .haveRemotePranswer)
    created = nil
    for (index, number) in reading.numbers.enumerated() {
      if let number { slots[index].transportNumber = number }
    }
    for (number, transport) in reading.transports {
      let isClient =
        remoteTransport(number)?.establishedRole(for: transport) ?? (transport.setup == .passive)
      changes += adopt(transport, number, role: isClient)
    }
    guard isFinal else {
      pendingRemote = description
      documents.pendingRemote = answer
      return changes + agreeProvisionally(offer: offer, answer: answer, peerAnswered: true)
    }
    currentLocal = pendingLocal
    currentRemote = description
    documents.currentLocal = offer
    documents.currentRemote = answer
    return changes + complete(offer: offer, answer: answer, peerAnswered: true)
  }
}

extension Transceiver {
  /// Whether a new section of a remote offer may take the transceiver: one that addTrack made,
  /// not yet negotiated, when the peer wants to receive (RFC 9429 section 5.10).
  func mayServe(_ direction: MediaDirection, _ kind: MediaKind) -> Bool {
    self.kind == kind && direction.receives && mid == nil && wasMadeByAddTrack && !isStopping
  }

  /// Takes over what the peer's section says about its track.
  mutating func hear(_ section: SDPSection, sends: Bool) -> [Negotiation.Change] {
    let wasLive = remoteTrackIsLive
    remoteTrackIsLive = sends
    guard sends else {
      remoteStreamIDs = []
      return wasLive ? [.trackRemoved(transceiver: id)] : []
    }
    let (streamIDs, trackID) = section.announcedTrack
    // A track that joins another stream is told of again (W3C, processing remote tracks).
    let joins = streamIDs.contains { !remoteStreamIDs.contains($0) }
    remoteStreamIDs = streamIDs
    remoteTrackID = trackID
    return wasLive && !joins ? [] : [.trackAdded(transceiver: id, streamIDs: streamIDs)]
  }
}

extension SDPSection {
  /// The streams and the track of the section's sender: from msid lines, or from the attributes of
  /// its first source as older peers give them.
  var announcedTrack: (streamIDs: [String], trackID: String?) {
    var msids = msids
    if msids.isEmpty, let legacy = ssrcs.first(where: { $0.name == "msid" })?.value {
      msids = [MSID(legacy)].compactMap(\.self)
    }
    var streamIDs: [String] = []
    // A track belongs to a few streams at most, whatever a description claims.
    for msid in msids.prefix(64) where msid.streamID != "-" && !streamIDs.contains(msid.streamID) {
      streamIDs.append(msid.streamID)
    }
    return (streamIDs, msids.lazy.compactMap(\.trackID).first)
  }
}

package import SDP
import Wire

extension Negotiation {
  /// Applies a remote description; the error names the line that is wrong.
  ///
  /// An offer that collides with a local one rolls the local one back (W3C implicit rollback).
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

  /// Finds or creates the transceiver of every section (RFC 9429 section 5.10).
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

  /// Returns the MIDs of an offer's sections, generating those that are missing.
  ///
  /// Sections keep their index and MID; only one that is off may be reused (RFC 3264 section 8).
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
    // A generated MID may clash with one that the peer assigns later.
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

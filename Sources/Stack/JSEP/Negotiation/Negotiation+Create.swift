package import SDP
import Wire

extension Negotiation {
  /// Creates an offer from the transceivers without changing the state (RFC 9429 section 5.2).
  /// - Parameter transports: the local transports, including all in `offeredTransportNumbers`.
  package mutating func createOffer(_ transports: [LocalTransport]) throws(JSEPError)
    -> SessionDescription
  {
    guard signalingState == .stable || signalingState == .haveLocalOffer else {
      throw wrongState("createOffer")
    }
    let plan = offerPlan
    var kinds: [SectionKind] = []
    var numbers = numbers
    let foreign = RemoteNumbers(descriptions.currentRemote?.document)
    var document = created.blank
    for slot in plan.slots {
      let transport = transports.of(slot)
      if slot.isData, !slot.isDead {
        let isLeft = agreed.data == nil && bundling.policy.leavesToBundle(slot.kind, after: kinds)
        kinds.append(slot.kind)
        document.sections.append(
          DataSection.section(
            mid: slot.mid, profile: slot.transport, formats: slot.formats, transport: transport,
            setup: .actpass, isLeftToBundle: isLeft))
        continue
      }
      guard let transceiver = transceiverTable.live(in: slot) else {
        document.sections.append(LocalSection.rejected(slot, transport, .actpass))
        continue
      }
      let former = agreed.section(slot.mid)
      let media = numbers.offer(
        kind: transceiver.kind, capabilities, agreed: former, foreign: foreign,
        hasLayers: transceiver.offersSimulcast)
      // Negotiated codecs keep the order of the last answer (RFC 9429 section 5.2.2).
      let isOrdered = former != nil && transceiver.codecPreferences.isEmpty
      var section = LocalSection(
        kind: transceiver.kind, mid: slot.mid, transport: slot.transport,
        media: isOrdered ? media : media.preferring(transceiver.codecPreferences),
        direction: transceiver.direction.media, setup: .actpass, demandsMultiplexing: former == nil,
        reducedSizeRTCP: former?.reducedSizeRTCP ?? true, measuresReceiverRoundTrip: true)
      section.layers = transceiver.offersSimulcast ? transceiver.layers.map(\.rid) : []
      section.isLeftToBundle =
        former == nil && bundling.policy.leavesToBundle(slot.kind, after: kinds)
      kinds.append(slot.kind)
      document.sections.append(section.section(transceiver, cname: cname, transport: transport))
    }
    let mids = document.sections.filter { !$0.isRejected }.compactMap(\.mid)
    let groups = [SectionGroup.bundle(mids)] + document.commonStreams.map(SectionGroup.lipSync)
    complete(&document, groups, allowsMixed: false)
    return created.store(document, plan.slots, plan.bundling, .offer, transports)
  }

  /// Creates an answer to the pending remote offer without changing the state (RFC 9429 section
  /// 5.3).
  /// - Parameter transports: the local transports, including all in `transportNumbers`.
  package mutating func createAnswer(_ transports: [LocalTransport]) throws(JSEPError)
    -> SessionDescription
  {
    guard signalingState == .haveRemoteOffer || signalingState == .haveLocalPranswer,
      let offer = descriptions.pendingRemote?.document
    else { throw wrongState("createAnswer") }
    var transports = transports
    if !offer.trickles {
      for index in transports.indices { transports[index].iceOptions.removeAll { $0 == "trickle" } }
    }
    let reading = try OfferReading(offer, bundling.policy, capabilities)
    var document = created.blank
    for (index, slot) in sectionTable.slots.enumerated() {
      let offered = offer.sections[index]
      let transport = transports.of(slot)
      let group = reading.group(of: index).map { reading.groups[$0] } ?? reading.groups.first
      let setup = answeredSetup(group?.transport, slot.transportNumber)
      if reading.data == index {
        document.sections.append(
          DataSection.section(
            mid: slot.midIsSignaled ? slot.mid : nil, profile: offered.transport,
            formats: offered.formats, transport: transport, setup: setup))
        continue
      }
      guard let transceiver = transceiverTable.live(in: slot),
        let media = reading.media[index]?.preferring(transceiver.codecPreferences),
        media.carriesMedia
      else {
        document.sections.append(LocalSection.rejected(slot, transport, setup))
        continue
      }
      let direction = (offered.direction ?? offer.direction ?? .sendrecv).reversed
        .intersected(with: transceiver.direction.media)
      var section = LocalSection(
        kind: transceiver.kind, mid: slot.midIsSignaled ? slot.mid : nil,
        transport: offered.transport, media: media, direction: direction, setup: setup,
        demandsMultiplexing: false, reducedSizeRTCP: offered.reducesRTCPSize,
        measuresReceiverRoundTrip: offered.measuresReceiverRoundTrip)
      if transceiver.offersSimulcast { section.layers = transceiver.layers(takenBy: offered) }
      document.sections.append(section.section(transceiver, cname: cname, transport: transport))
    }
    let bundles = reading.groups.filter(\.isBundled).map { group in
      group.members.filter { !document.sections[$0].isRejected }
        .compactMap { document.sections[$0].mid }
    }
    let groups = bundles.map(SectionGroup.bundle) + document.lipSync(answering: offer)
    complete(&document, groups, allowsMixed: offer.allowsMixedExtensions)
    return created.store(document, sectionTable.slots, bundling, .answer, transports)
  }

  private var offerPlan: OfferPlan {
    OfferPlan(
      sectionTable, transceiverTable, bundling, capabilities, needsData: wishes.hasData)
  }

  /// The numbers of the transports that the next offer needs.
  package var offeredTransportNumbers: [Int] {
    offerPlan.slots.filter { !$0.isDead }.map(\.transportNumber).distinct(after: [])
  }

  /// Returns the DTLS role for the answer: the role in the existing association, or else a role
  /// that the offer allows.
  ///
  /// For `actpass` the local peer becomes the server unless configured otherwise.
  private func answeredSetup(_ reading: TransportReading?, _ number: Int) -> SetupRole {
    guard let reading else { return .passive }
    if let isClient = remoteSides[number]?.establishedRole(for: reading) {
      return isClient ? .active : .passive
    }
    switch reading.setup {
    case .passive: return .active
    case .active: return .passive
    default: return answersAsDTLSClient ? .active : .passive
    }
  }

  /// Adds the session-level lines to a description.
  private func complete(
    _ document: inout SDPDocument, _ groups: [SectionGroup], allowsMixed: Bool
  ) {
    for group in groups where !group.mids.isEmpty { document.append(group) }
    if allowsMixed { document.append(.extensionMapAllowMixed) }
    document.append(SDPLine(.msidSemantic, "WMS *"))
  }
}

extension [LocalTransport] {
  /// Returns a section's transport, or the first transport for a disabled section, which has none.
  fileprivate func of(_ slot: SectionSlot) -> LocalTransport {
    first { $0.number == slot.transportNumber } ?? self[0]
  }
}

// MARK: - OfferPlan

/// The next offer's m-sections: existing ones, then new ones, which reuse disabled sections if
/// possible (RFC 9429 section 5.2.2).
struct OfferPlan {
  private(set) var slots: [SectionSlot]
  private(set) var bundling: Bundling
  private let sections: SectionTable
  private let transceivers: TransceiverTable
  /// MIDs of the new sections.
  private var new: [String] = []

  /// Plans the sections of the next offer.
  ///
  /// - Parameter needsData: whether an SCTP association is needed.
  init(
    _ sections: SectionTable, _ transceivers: TransceiverTable, _ bundling: Bundling,
    _ capabilities: Capabilities, needsData: Bool
  ) {
    slots = sections.slots
    self.sections = sections
    self.transceivers = transceivers
    self.bundling = bundling
    let wantsData = needsData && !sections.carryData
    addMedia(capabilities, wantsData: wantsData)
    if wantsData { addData() }
    assignTransports()
  }

  private mutating func addMedia(_ capabilities: Capabilities, wantsData: Bool) {
    var waiting = transceivers.all.filter { $0.mid == nil && !$0.isStopping }
    while !waiting.isEmpty {
      let transceiver = waiting.removeFirst()
      let kind = SectionKind(transceiver.kind)
      let mid = sections.freeMID(besides: Set(new))
      new.append(mid)
      let slot = SectionSlot(
        kind: kind, mid: mid, transceiverID: transceiver.id, transport: LocalSection.profile,
        formats: capabilities.codecs(transceiver.kind).map { String($0.payloadType) })
      // Any disabled section may be reused (RFC 9429 section 5.2.2), preferably one of the same
      // kind. A disabled section of another kind stays free if a section of its kind is still to be
      // added.
      let wanted = waiting.map { SectionKind($0.kind) } + (wantsData ? [.application] : [])
      place(slot) { !wanted.contains($0) }
    }
  }

  private mutating func addData() {
    let mid = sections.freeMID(besides: Set(new))
    new.append(mid)
    var slot = SectionSlot(
      kind: .application, mid: mid, transport: DataSection.profile,
      formats: [DataSection.format])
    slot.isData = true
    place(slot) { _ in true }
  }

  /// Places a section at the index of a disabled section of the same kind, or else of a kind that
  /// may be replaced; appends the section if there is no such index.
  private mutating func place(_ slot: SectionSlot, where mayTake: (SectionKind) -> Bool) {
    if let place = slots.firstIndex(where: { $0.isDead && $0.kind == slot.kind })
      ?? slots.firstIndex(where: { $0.isDead && mayTake($0.kind) })
    {
      slots[place] = slot
    } else {
      slots.append(slot)
    }
  }

  private mutating func assignTransports() {
    var kinds: [SectionKind] = []
    for index in slots.indices where !slots[index].isDead {
      if new.contains(slots[index].mid) {
        let taken = slots.filter { !$0.isDead && !new.contains($0.mid) }.map(\.transportNumber)
        slots[index].transportNumber = bundling.offered(
          slots[index].kind, after: kinds, beside: taken)
        new.removeAll { $0 == slots[index].mid }
      }
      // A section that the offer itself rejects cannot carry the bundle's transport.
      if slots[index].isData || transceivers.live(in: slots[index]) != nil {
        kinds.append(slots[index].kind)
      }
    }
  }
}

// MARK: - Local

extension Negotiation {
  /// Applies a local description.
  ///
  /// The text must be empty or equal the last created offer or answer.
  package mutating func setLocal(_ description: SessionDescription) throws(JSEPError) -> [Change] {
    try checkNotClosed()
    if description.type == .rollback { return try rollBack() }
    let made = try created.created(for: description, signalingState)
    let applied = SessionDescription(type: description.type, sdp: made.description.sdp)
    switch description.type {
    case .offer: return apply(localOffer: applied, made)
    case .pranswer: return apply(localPranswer: applied, made)
    case .answer, .rollback: return apply(localAnswer: applied, made)
    }
  }

  private mutating func apply(
    localOffer offer: SessionDescription, _ made: CreatedDescriptions.Created
  ) -> [Change] {
    var changes = enter(.haveLocalOffer)
    leaveStable()
    sectionTable.apply(made.slots)
    bundling.commit(made.bundling)
    changes += returnOrphans()
    transceiverTable.associate(made.slots)
    descriptions.pend(local: offer, made.document)
    return changes + [.localDescriptionSet]
  }

  private mutating func apply(
    localPranswer answer: SessionDescription, _ made: CreatedDescriptions.Created
  ) -> [Change] {
    var changes = enter(.haveLocalPranswer)
    descriptions.pend(local: answer, made.document)
    changes += remoteSides.settleRoles(bySetupOf: made.document, sectionTable.slots)
    if let offer = descriptions.pendingRemote?.document {
      changes += agreeProvisionally(offer: offer, answer: made.document, peerAnswered: false)
    }
    return changes + [.localDescriptionSet]
  }

  private mutating func apply(
    localAnswer answer: SessionDescription, _ made: CreatedDescriptions.Created
  ) -> [Change] {
    guard let offer = descriptions.pendingRemote?.document else { return [] }
    var changes = enter(.stable)
    descriptions.complete(local: answer, made.document)
    changes += remoteSides.settleRoles(bySetupOf: made.document, sectionTable.slots)
    changes += complete(offer: offer, answer: made.document, peerAnswered: false)
    return changes + [.localDescriptionSet]
  }
}

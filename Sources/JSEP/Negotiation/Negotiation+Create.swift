package import SDP
import Wire

extension Negotiation {
  /// Makes an offer from the transceivers; the state does not change (RFC 9429 section 5.2).
  ///
  /// - Parameter transports: among them those that `offeredTransportNumbers` names.
  package mutating func createOffer(_ transports: [LocalTransport]) throws(JSEPError)
    -> SessionDescription
  {
    guard signalingState == .stable || signalingState == .haveLocalOffer else {
      throw wrongState("createOffer")
    }
    let (slots, bundling) = plannedSlots()
    var kinds: [SectionKind] = []
    var numbers = numbers
    let foreign = ForeignNumbers(documents.currentRemote)
    var document = SDPDocument(origin: Origin(sessionID: sessionID, sessionVersion: 0))
    for slot in slots {
      let transport = transports.of(slot)
      if slot.isData, !slot.isDead {
        let isLeft = data == nil && bundling.policy.leavesToBundle(slot.kind, after: kinds)
        kinds.append(slot.kind)
        document.sections.append(
          DataSection.section(
            mid: slot.mid, profile: slot.transport, transport: transport, setup: .actpass,
            isLeftToBundle: isLeft))
        continue
      }
      guard let transceiver = liveTransceiver(slot) else {
        document.sections.append(LocalSection.rejected(slot, transport, .actpass))
        continue
      }
      let agreed = sections.first { $0.mid == slot.mid }
      let media = numbers.offer(
        kind: transceiver.kind, capabilities, agreed: agreed, foreign: foreign)
      // What was agreed stays in the order of the last answer (RFC 9429 section 5.2.2).
      let isOrdered = agreed != nil && transceiver.codecPreferences.isEmpty
      var section = LocalSection(
        kind: transceiver.kind, mid: slot.mid, transport: slot.transport,
        media: isOrdered ? media : media.preferring(transceiver.codecPreferences),
        direction: transceiver.direction.media, setup: .actpass, demandsMultiplexing: agreed == nil,
        reducedSizeRTCP: agreed?.reducedSizeRTCP ?? true, measuresReceiverRoundTrip: true)
      section.isLeftToBundle =
        agreed == nil && bundling.policy.leavesToBundle(slot.kind, after: kinds)
      kinds.append(slot.kind)
      document.sections.append(section.section(transceiver, cname: cname, transport: transport))
    }
    let mids = document.sections.filter { !$0.isRejected }.compactMap(\.mid)
    let groups = [SectionGroup.bundle(mids)] + document.commonStreams.map(SectionGroup.lipSync)
    return keep(document, slots, bundling, .offer, transports, groups, allowsMixed: false)
  }

  /// Makes an answer to the pending remote offer; the state does not change (RFC 9429 section 5.3).
  ///
  /// - Parameter transports: among them those that `transportNumbers` names.
  package mutating func createAnswer(_ transports: [LocalTransport]) throws(JSEPError)
    -> SessionDescription
  {
    guard signalingState == .haveRemoteOffer || signalingState == .haveLocalPranswer,
      let offer = documents.pendingRemote
    else { throw wrongState("createAnswer") }
    var transports = transports
    if !offer.trickles {
      for index in transports.indices { transports[index].iceOptions.removeAll { $0 == "trickle" } }
    }
    let reading = try OfferReading(offer, bundling.policy, capabilities)
    var document = SDPDocument(origin: Origin(sessionID: sessionID, sessionVersion: 0))
    for (index, slot) in slots.enumerated() {
      let offered = offer.sections[index]
      let transport = transports.of(slot)
      let group = reading.group(of: index).map { reading.groups[$0] } ?? reading.groups.first
      let setup = answeredSetup(group?.transport, slot.transportNumber)
      if reading.data == index {
        document.sections.append(
          DataSection.section(
            mid: slot.midIsSignaled ? slot.mid : nil, profile: offered.transport,
            transport: transport, setup: setup))
        continue
      }
      guard let transceiver = liveTransceiver(slot),
        let media = reading.media[index]?.preferring(transceiver.codecPreferences),
        !media.codecs.isEmpty
      else {
        document.sections.append(LocalSection.rejected(slot, transport, setup))
        continue
      }
      let direction = (offered.direction ?? offer.direction ?? .sendrecv).reversed
        .intersected(with: transceiver.direction.media)
      let section = LocalSection(
        kind: transceiver.kind, mid: slot.midIsSignaled ? slot.mid : nil,
        transport: offered.transport, media: media, direction: direction, setup: setup,
        demandsMultiplexing: false, reducedSizeRTCP: offered.reducesRTCPSize,
        measuresReceiverRoundTrip: offered.measuresReceiverRoundTrip)
      document.sections.append(section.section(transceiver, cname: cname, transport: transport))
    }
    let bundles = reading.groups.filter(\.isBundled).map { group in
      group.members.filter { !document.sections[$0].isRejected }
        .compactMap { document.sections[$0].mid }
    }
    let groups = bundles.map(SectionGroup.bundle) + document.lipSync(answering: offer)
    return keep(
      document, slots, bundling, .answer, transports, groups,
      allowsMixed: offer.allowsMixedExtensions)
  }

  /// The m-sections of the next offer: those that are there, dead ones taken over by transceivers
  /// of the same kind, and new ones at the end (RFC 9429 section 5.2.2).
  func plannedSlots() -> (slots: [SectionSlot], bundling: Bundling) {
    var slots = slots
    var mids: Set<String> = []
    var new: [String] = []
    let data = plannedDataSlot(in: slots, besides: [])
    var waiting = transceivers.filter { $0.mid == nil && !$0.isStopping }
    while !waiting.isEmpty {
      let transceiver = waiting.removeFirst()
      let kind = SectionKind(transceiver.kind)
      let mid = freeMID(besides: mids)
      mids.insert(mid)
      new.append(mid)
      let slot = SectionSlot(
        kind: kind, mid: mid, transceiverID: transceiver.id, transport: LocalSection.profile,
        formats: capabilities.codecs(transceiver.kind).map { String($0.payloadType) })
      // Any section that is off is used again (RFC 9429 section 5.2.2), one of the kind if there is
      // one, and none that another kind waits for.
      let wanted = waiting.map { SectionKind($0.kind) } + [data?.kind].compactMap(\.self)
      if let place = slots.firstIndex(where: { $0.isDead && $0.kind == kind })
        ?? slots.firstIndex(where: { $0.isDead && !wanted.contains($0.kind) })
      {
        slots[place] = slot
      } else {
        slots.append(slot)
      }
    }
    if let slot = plannedDataSlot(in: slots, besides: mids) {
      new.append(slot.mid)
      if let place = slots.firstIndex(where: { $0.isDead && $0.kind == slot.kind })
        ?? slots.firstIndex(where: \.isDead)
      {
        slots[place] = slot
      } else {
        slots.append(slot)
      }
    }
    var bundling = bundling
    var kinds: [SectionKind] = []
    for index in slots.indices where !slots[index].isDead {
      if new.contains(slots[index].mid) {
        let taken = slots.filter { !$0.isDead && !new.contains($0.mid) }.map(\.transportNumber)
        slots[index].transportNumber = bundling.offered(
          slots[index].kind, after: kinds, beside: taken)
        new.removeAll { $0 == slots[index].mid }
      }
      // A section that the offer turns off is none that could stand alone.
      if slots[index].isData || liveTransceiver(slots[index]) != nil {
        kinds.append(slots[index].kind)
      }
    }
    return (slots, bundling)
  }

  /// The transceiver of a section that is not off.
  private func liveTransceiver(_ slot: SectionSlot) -> Transceiver? {
    guard !slot.isDead, let id = slot.transceiverID else { return nil }
    return transceivers.first { $0.id == id && !$0.isStopping }
  }

  /// The DTLS role to answer with: the one the association has, or the one the offer leaves.
  ///
  /// When the offer leaves the choice this side is the server unless it is told otherwise.
  private func answeredSetup(_ reading: TransportReading?, _ number: Int) -> SetupRole {
    guard let reading else { return .passive }
    if let isClient = remoteTransport(number)?.establishedRole(for: reading) {
      return isClient ? .active : .passive
    }
    switch reading.setup {
    case .passive: return .active
    case .active: return .passive
    default: return answersAsDTLSClient ? .active : .passive
    }
  }

  /// Completes a description with its session lines and keeps it for being set.
  private mutating func keep(
    _ bare: SDPDocument, _ slots: [SectionSlot], _ bundling: Bundling, _ type: SDPType,
    _ transports: [LocalTransport], _ groups: [SectionGroup], allowsMixed: Bool
  ) -> SessionDescription {
    var document = bare
    for group in groups where !group.mids.isEmpty { document.append(group) }
    if allowsMixed { document.append(.extensionMapAllowMixed) }
    document.append(SDPLine(.msidSemantic, "WMS *"))
    let last = documents.lastMade
    let isChanged = last?.lines != document.lines || last?.sections != document.sections
    if isChanged { documents.lastVersion += 1 }
    document.origin = Origin(sessionID: sessionID, sessionVersion: documents.lastVersion)
    documents.lastMade = document
    let description = SessionDescription(type: type, sdp: document.filled(with: transports).text)
    created = CreatedDescription(
      description: description, document: document, slots: slots, bundling: bundling)
    createdTexts[type] = description.sdp
    return description
  }

  func wrongState(_ call: String) -> JSEPError {
    JSEPError(.invalidState, "\(call) in signaling state \(signalingState.rawValue)")
  }
}

extension [LocalTransport] {
  /// The transport of a section; sections that are off state any.
  fileprivate func of(_ slot: SectionSlot) -> LocalTransport {
    first { $0.number == slot.transportNumber } ?? self[0]
  }
}

package import SDP

// What the rest of the peer reads of an exchange.
extension Negotiation {
  package var transceivers: [Transceiver] { transceiverTable.all }

  /// What the last completed exchange agreed on, in the order of the m-sections; rejected ones left
  /// out.
  package var sections: [NegotiatedSection] { agreed.sections }

  /// What the last completed exchange agreed on for data channels.
  package var data: NegotiatedData? { agreed.data }

  /// Whether data channels were asked for, and not refused since.
  package var wantsData: Bool { wishes.hasData }

  /// Whether an association is agreed on, or is part of an exchange under way.
  package var mayHaveData: Bool { data != nil || sectionTable.carryData }

  /// Whether the transceivers or data channels want something that was not negotiated (W3C section
  /// 4.7.3).
  ///
  /// False while an exchange is under way: the question is asked again when it ends.
  package var negotiationIsNeeded: Bool {
    guard signalingState == .stable else { return false }
    return wishes.hasRestart || wantsData && data == nil
      || transceivers.contains { needsNegotiation($0) }
  }

  private func needsNegotiation(_ transceiver: Transceiver) -> Bool {
    if transceiver.isStopping { return transceiver.currentDirection != .stopped }
    guard let index = transceiver.mLineIndex, let local = descriptions.currentLocal,
      let remote = descriptions.currentRemote?.document,
      local.document.sections.indices.contains(index), remote.sections.indices.contains(index)
    else { return true }
    let section = local.document.sections[index]
    let wanted = transceiver.direction.media
    if wanted.sends {
      // Which streams there are counts, not their order.
      let streams = Set(section.msids.map(\.streamID))
      let wanted = transceiver.streamIDs.isEmpty ? ["-"] : transceiver.streamIDs
      if streams != Set(wanted) { return true }
    }
    let own = section.direction ?? .sendrecv
    let peers = (remote.sections[index].direction ?? remote.direction ?? .sendrecv).reversed
    if local.description.type == .offer { return own != wanted && peers != wanted }
    return own != wanted.intersected(with: peers)
  }

  // MARK: Descriptions

  package var currentLocal: SessionDescription? { descriptions.currentLocal?.description }
  package var pendingLocal: SessionDescription? { descriptions.pendingLocal?.description }
  package var currentRemote: SessionDescription? { descriptions.currentRemote?.description }
  package var pendingRemote: SessionDescription? { descriptions.pendingRemote?.description }

  /// Whether there is a description of the peer.
  package var hasRemoteDescription: Bool { descriptions.remote != nil }

  /// How many m-sections the peer's description has.
  package var remoteSectionCount: Int { descriptions.remote?.document.sections.count ?? 0 }

  /// The pending or else current local description with the candidates gathered since (W3C
  /// localDescription).
  package func localDescription(_ transports: [LocalTransport]) -> SessionDescription? {
    description(.pendingLocal, transports) ?? description(.currentLocal, transports)
  }

  /// A description by its place, local ones with the candidates gathered since.
  package func description(_ slot: DescriptionSlot, _ transports: [LocalTransport])
    -> SessionDescription?
  {
    switch slot {
    case .currentLocal: descriptions.currentLocal?.filled(with: transports)
    case .pendingLocal: descriptions.pendingLocal?.filled(with: transports)
    case .remote: descriptions.remote?.description
    case .currentRemote: currentRemote
    case .pendingRemote: pendingRemote
    }
  }

  // MARK: Sections

  /// The m-line index of a mid in the peer's description, for addIceCandidate.
  package func remoteMLineIndex(ofMID mid: String) -> Int? {
    guard let document = descriptions.remote?.document else { return nil }
    if let index = document.sections.firstIndex(where: { $0.mid == mid }) { return index }
    // A peer that names no mids is found by the names that were made up for its sections.
    let slots = sectionTable.slots
    return document.sections.indices.first {
      document.sections[$0].mid == nil && slots.indices.contains($0) && slots[$0].mid == mid
    }
  }

  /// Whether the m-section at an index is off, so that nothing is signaled for it.
  package func isOff(mLine index: Int) -> Bool {
    !sectionTable.slots.indices.contains(index) || sectionTable.slots[index].isDead
  }

  /// The mid of the section at an index.
  package func mid(atMLine index: Int) -> String? {
    sectionTable.slots.indices.contains(index) ? sectionTable.slots[index].mid : nil
  }

  // MARK: Transports

  /// The peer's side of each transport that its descriptions tell of, in the order of the sections.
  package var remoteTransports: [RemoteTransport] { remoteSides.all }

  /// The peer's side of a transport.
  package func remoteTransport(_ number: Int) -> RemoteTransport? { remoteSides[number] }

  /// The transports that the session needs as it stands.
  package var transportNumbers: [Int] {
    let pending = (sectionTable.slots + (stableState?.slots ?? [])).filter { !$0.isDead }
    return pending.map(\.transportNumber).distinct(after: [bundling.shared])
  }

  /// The transport whose candidates an m-section signals; nil for sections that are off, and for
  /// those that go along with another one.
  package func transportNumber(ofMID mid: String) -> Int? {
    guard let index = sectionTable.index(of: mid) else { return nil }
    let number = sectionTable.slots[index].transportNumber
    return mLineIndex(ofTransport: number) == index ? number : nil
  }

  /// The index of the m-section that signals a transport: the first that uses it and is not off.
  package func mLineIndex(ofTransport number: Int) -> Int? {
    let slots = sectionTable.slots
    if let index = slots.firstIndex(where: { $0.uses(number) && agreed.has($0.mid) }) {
      return index
    }
    guard let document = descriptions.latest else { return nil }
    return slots.indices.first { index in
      slots[index].uses(number) && document.sections.indices.contains(index)
        && !document.sections[index].isRejected
    }
  }

  /// The mid of that section.
  package func mid(ofTransport number: Int) -> String? {
    mLineIndex(ofTransport: number).map { sectionTable.slots[$0].mid }
  }

  /// The username fragments that the peer's descriptions give an m-section, or any of them when no
  /// section is meant.
  package func remoteUsernameFragments(atMLine index: Int?) -> [String] {
    [descriptions.pendingRemote, descriptions.currentRemote].compactMap(\.self)
      .flatMap { $0.document.usernameFragments(atMLine: index) }
  }
}

extension DescriptionTable.Entry {
  /// The local description with the candidates gathered since.
  fileprivate func filled(with transports: [LocalTransport]) -> SessionDescription {
    SessionDescription(type: description.type, sdp: document.filled(with: transports).text)
  }
}

package import SDP

// Read by the rest of the peer.
extension Negotiation {
  package var transceivers: [Transceiver] { transceiverTable.all }

  /// The result of the last completed exchange, in the order of the m-sections, without rejected
  /// ones.
  package var sections: [NegotiatedSection] { agreed.sections }

  /// The result of the last completed exchange for data channels.
  package var data: NegotiatedData? { agreed.data }

  /// Whether data channels were requested and not rejected since.
  package var wantsData: Bool { wishes.hasData }

  /// Whether an association is negotiated or being negotiated.
  package var mayHaveData: Bool { data != nil || sectionTable.carryData }

  /// Whether the transceivers or data channels need negotiation (W3C section 4.7.3).
  ///
  /// False during an exchange; checked again when it ends.
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
      // The order of streams does not matter.
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

  package var hasRemoteDescription: Bool { descriptions.remote != nil }

  package var remoteSectionCount: Int { descriptions.remote?.document.sections.count ?? 0 }

  /// The pending or else current local description with the candidates gathered so far (W3C
  /// localDescription).
  package func localDescription(_ transports: [LocalTransport]) -> SessionDescription? {
    description(.pendingLocal, transports) ?? description(.currentLocal, transports)
  }

  /// Returns a description; local ones with the candidates gathered so far.
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

  /// The m-line index of a MID in the peer's description, for addIceCandidate.
  package func remoteMLineIndex(ofMID mid: String) -> Int? {
    guard let document = descriptions.remote?.document else { return nil }
    if let index = document.sections.firstIndex(where: { $0.mid == mid }) { return index }
    // A peer without MIDs may use those generated for its sections.
    let slots = sectionTable.slots
    return document.sections.indices.first {
      document.sections[$0].mid == nil && slots.indices.contains($0) && slots[$0].mid == mid
    }
  }

  /// Whether the m-section at an index is off, so that nothing is signaled for it.
  package func isOff(mLine index: Int) -> Bool {
    !sectionTable.slots.indices.contains(index) || sectionTable.slots[index].isDead
  }

  package func mid(atMLine index: Int) -> String? {
    sectionTable.slots.indices.contains(index) ? sectionTable.slots[index].mid : nil
  }

  // MARK: Transports

  /// The peer's side of each transport in its descriptions, in the order of the sections.
  package var remoteTransports: [RemoteTransport] { remoteSides.all }

  package func remoteTransport(_ number: Int) -> RemoteTransport? { remoteSides[number] }

  /// The transports that the session currently needs.
  package var transportNumbers: [Int] {
    let pending = (sectionTable.slots + (stableState?.slots ?? [])).filter { !$0.isDead }
    return pending.map(\.transportNumber).distinct(after: [bundling.shared])
  }

  /// The transport whose candidates an m-section signals; nil if the section is off or uses another
  /// one's transport.
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

  package func mid(ofTransport number: Int) -> String? {
    mLineIndex(ofTransport: number).map { sectionTable.slots[$0].mid }
  }

  /// The peer's username fragments in an m-section, or in any if `index` is nil.
  package func remoteUsernameFragments(atMLine index: Int?) -> [String] {
    [descriptions.pendingRemote, descriptions.currentRemote].compactMap(\.self)
      .flatMap { $0.document.usernameFragments(atMLine: index) }
  }
}

extension SignaledDescriptions.Entry {
  /// Returns the local description with the candidates gathered so far.
  fileprivate func filled(with transports: [LocalTransport]) -> SessionDescription {
    SessionDescription(type: description.type, sdp: document.filled(with: transports).text)
  }
}

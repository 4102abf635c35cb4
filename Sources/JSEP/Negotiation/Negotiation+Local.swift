package import SDP
import Wire

extension Negotiation {
  /// Applies an own description, normally one that was created just before.
  ///
  /// Only the last created offer or answer is accepted, or an empty text that stands for it.
  package mutating func setLocal(_ description: SessionDescription) throws(JSEPError) -> [Change] {
    try checkNotClosed()
    if description.type == .rollback { return try rollBack() }
    let created = try createdDescription(for: description)
    let applied = SessionDescription(type: description.type, sdp: created.description.sdp)
    switch description.type {
    case .offer: return apply(localOffer: applied, created)
    case .pranswer: return apply(localPranswer: applied, created)
    case .answer, .rollback: return apply(localAnswer: applied, created)
    }
  }

  /// Checks that the description is the one that was created last, and the state, in the order of
  /// W3C setLocalDescription.
  private func createdDescription(for description: SessionDescription) throws(JSEPError)
    -> CreatedDescription
  {
    let isOffer = description.type == .offer
    if !description.sdp.isEmpty, description.sdp != createdTexts[isOffer ? .offer : .answer] {
      throw JSEPError(
        .invalidModification, "the description is not the one that was created last")
    }
    let states: [SignalingState] =
      isOffer ? [.stable, .haveLocalOffer] : [.haveRemoteOffer, .haveLocalPranswer]
    guard states.contains(signalingState) else {
      throw wrongState("setLocalDescription(\(description.type.rawValue))")
    }
    guard let created, (created.description.type == .offer) == isOffer else {
      throw JSEPError(
        .invalidModification, "no \(isOffer ? "offer" : "answer") was created for this state")
    }
    return created
  }

  private mutating func apply(localOffer offer: SessionDescription, _ made: CreatedDescription)
    -> [Change]
  {
    var changes = enter(.haveLocalOffer)
    leaveStable()
    slots = made.slots
    bundling.commit(made.bundling)
    changes += returnOrphans()
    for (index, slot) in slots.enumerated() where !slot.isDead {
      remember(slot.mid)
      guard let place = transceivers.firstIndex(where: { $0.id == slot.transceiverID }) else {
        continue
      }
      transceivers[place].mid = slot.mid
      transceivers[place].mLineIndex = index
    }
    pendingLocal = offer
    documents.pendingLocal = made.document
    return changes + [.localDescriptionSet]
  }

  private mutating func apply(
    localPranswer answer: SessionDescription, _ made: CreatedDescription
  ) -> [Change] {
    var changes = enter(.haveLocalPranswer)
    pendingLocal = answer
    documents.pendingLocal = made.document
    changes += settleRoles(bySetupOf: made.document)
    if let offer = documents.pendingRemote {
      changes += agreeProvisionally(offer: offer, answer: made.document, peerAnswered: false)
    }
    return changes + [.localDescriptionSet]
  }

  private mutating func apply(localAnswer answer: SessionDescription, _ made: CreatedDescription)
    -> [Change]
  {
    guard let offer = documents.pendingRemote else { return [] }
    var changes = enter(.stable)
    currentRemote = pendingRemote
    currentLocal = answer
    documents.currentRemote = offer
    documents.currentLocal = made.document
    changes += settleRoles(bySetupOf: made.document)
    changes += complete(offer: offer, answer: made.document, peerAnswered: false)
    return changes + [.localDescriptionSet]
  }

  /// Changes the signaling state.
  mutating func enter(_ state: SignalingState) -> [Change] {
    guard state != signalingState else { return [] }
    defer { signalingState = state }
    return [.signalingState(from: signalingState, to: state)]
  }

  /// Keeps a mid from being given to another section.
  mutating func remember(_ mid: String) {
    usedMIDs.insert(mid)
  }
}

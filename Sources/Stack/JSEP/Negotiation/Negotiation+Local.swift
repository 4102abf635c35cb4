package import SDP
import Wire

extension Negotiation {
  /// Applies a local description.
  ///
  /// Only the last created offer or answer is accepted, or an empty text that stands for it.
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

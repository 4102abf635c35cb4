import SDP
import Wire

extension Negotiation {
  /// What a rollback returns to: all that descriptions change before an answer completes them.
  struct StableState {
    /// A transceiver's association with an m-section.
    struct Association {
      var transceiverID: UInt32
      var mid: String?
      var mLineIndex: Int?
      var remoteStreamIDs: [String]
      var remoteTrackID: String?
      var remoteTrackIsLive: Bool
    }

    var slots: [SectionSlot]
    var remoteTransports: [RemoteTransport]
    var associations: [Association]
  }

  /// Remembers the stable state when an exchange begins.
  mutating func leaveStable() {
    guard stableState == nil else { return }
    stableState = StableState(
      slots: slots, remoteTransports: remoteTransports,
      associations: transceivers.map {
        StableState.Association(
          transceiverID: $0.id, mid: $0.mid, mLineIndex: $0.mLineIndex,
          remoteStreamIDs: $0.remoteStreamIDs, remoteTrackID: $0.remoteTrackID,
          remoteTrackIsLive: $0.remoteTrackIsLive)
      })
  }

  /// Forgets what only the exchange under way needed, completed or not.
  mutating func endExchange() {
    pendingLocal = nil
    pendingRemote = nil
    documents.pendingLocal = nil
    documents.pendingRemote = nil
    created = nil
    createdTexts = [:]
    stableState = nil
  }

  /// Takes the pending offer back (RFC 9429 section 4.1.10.2).
  mutating func rollBack() throws(JSEPError) -> [Change] {
    guard signalingState == .haveLocalOffer || signalingState == .haveRemoteOffer,
      let stable = stableState
    else { throw wrongState("rollback") }
    var changes = [Change.signalingState(from: signalingState, to: .stable)]
    signalingState = .stable
    endExchange()
    slots = stable.slots
    changes += returnTransports(to: stable)
    return changes + returnTransceivers(to: stable) { _ in true }
  }

  /// Takes back what a pending offer did to transceivers that have no section in the offer which
  /// replaces it.
  mutating func returnOrphans() -> [Change] {
    guard let stable = stableState else { return [] }
    let kept = slots.compactMap(\.transceiverID)
    return returnTransceivers(to: stable) { $0.mid != nil && !kept.contains($0.id) }
  }

  /// Gives the transceivers that a condition picks the association that they had in the stable
  /// state; those made only for the offer go, unless addTrack gave them a track by now.
  private mutating func returnTransceivers(
    to stable: StableState, where isMeant: (Transceiver) -> Bool
  ) -> [Change] {
    var changes: [Change] = []
    var gone: [UInt32] = []
    for index in transceivers.indices where isMeant(transceivers[index]) {
      let id = transceivers[index].id
      let before = stable.associations.first { $0.transceiverID == id }
      let wasLive = transceivers[index].remoteTrackIsLive
      transceivers[index].mid = before?.mid
      transceivers[index].mLineIndex = before?.mLineIndex
      transceivers[index].remoteStreamIDs = before?.remoteStreamIDs ?? []
      transceivers[index].remoteTrackID = before?.remoteTrackID
      transceivers[index].remoteTrackIsLive = before?.remoteTrackIsLive ?? false
      switch (wasLive, transceivers[index].remoteTrackIsLive) {
      case (true, false): changes.append(.trackRemoved(transceiver: id))
      case (false, true):
        let streams = transceivers[index].remoteStreamIDs
        changes.append(.trackAdded(transceiver: id, streamIDs: streams))
      default: break
      }
      if before == nil, transceivers[index].wasMadeForRemoteOffer {
        if transceivers[index].wasGivenTrack {
          // It lives on as if addTrack had made it, so that the next offer may take it.
          transceivers[index].wasMadeForRemoteOffer = false
          transceivers[index].wasMadeByAddTrack = true
        } else {
          gone.append(id)
        }
      }
    }
    transceivers.removeAll { gone.contains($0.id) }
    return changes + gone.map { .transceiverStopped(id: $0) }
  }
}

import SDP

extension Negotiation {
  /// The index of the m-section whose transport all others share: the first that is not off.
  package var transportMLineIndex: Int? {
    if !sections.isEmpty || data != nil {
      return slots.firstIndex { slot in
        slot.mid == data?.mid || sections.contains { $0.mid == slot.mid }
      }
    }
    let document =
      documents.pendingLocal ?? documents.currentLocal ?? documents.pendingRemote
      ?? documents.currentRemote
    return document?.sections.firstIndex { !$0.isRejected }
  }

  /// The mid of that section.
  package var transportMID: String? {
    transportMLineIndex.flatMap { slots.indices.contains($0) ? slots[$0].mid : nil }
  }
}

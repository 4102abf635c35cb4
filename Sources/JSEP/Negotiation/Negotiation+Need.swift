import SDP
import Wire

extension Negotiation {
  /// Whether the transceivers or data channels want something that was not negotiated (W3C section
  /// 4.7.3).
  ///
  /// False while an exchange is under way: the question is asked again when it ends.
  package var negotiationIsNeeded: Bool {
    guard signalingState == .stable else { return false }
    return wantsData && data == nil || transceivers.contains { needsNegotiation($0) }
  }

  private func needsNegotiation(_ transceiver: Transceiver) -> Bool {
    if transceiver.isStopping { return transceiver.currentDirection != .stopped }
    guard let index = transceiver.mLineIndex, let local = documents.currentLocal,
      let remote = documents.currentRemote, local.sections.indices.contains(index),
      remote.sections.indices.contains(index)
    else { return true }
    let section = local.sections[index]
    let wanted = transceiver.direction.media
    if wanted.sends {
      let streams = section.msids.map(\.streamID)
      if streams != (transceiver.streamIDs.isEmpty ? ["-"] : transceiver.streamIDs) { return true }
    }
    let own = section.direction ?? .sendrecv
    let peers = (remote.sections[index].direction ?? remote.direction ?? .sendrecv).reversed
    if currentLocal?.type == .offer { return own != wanted && peers != wanted }
    return own != wanted.intersected(with: peers)
  }
}

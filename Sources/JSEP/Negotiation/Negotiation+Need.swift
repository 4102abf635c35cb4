import SDP
import Wire

extension Negotiation {
  /// Whether the transceivers or data channels want something that was not negotiated (W3C section
  /// 4.7.3).
  ///
  /// False while an exchange is under way: the question is asked again when it ends.
  package var negotiationIsNeeded: Bool {
    guard signalingState == .stable else { return false }
    return !fragmentsToReplace.isEmpty || wantsData && data == nil
      || transceivers.contains { needsNegotiation($0) }
  }

  /// Asks that the next exchange restarts ICE: negotiation is needed until other credentials took
  /// the place of those that descriptions state now (W3C restartIce).
  package mutating func wantRestart() {
    let documents = [documents.currentLocal, documents.pendingLocal].compactMap(\.self)
    fragmentsToReplace = documents.flatMap(\.sections).compactMap(\.iceUsernameFragment)
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
      // Which streams there are counts, not their order.
      let streams = Set(section.msids.map(\.streamID))
      let wanted = transceiver.streamIDs.isEmpty ? ["-"] : transceiver.streamIDs
      if streams != Set(wanted) { return true }
    }
    let own = section.direction ?? .sendrecv
    let peers = (remote.sections[index].direction ?? remote.direction ?? .sendrecv).reversed
    if currentLocal?.type == .offer { return own != wanted && peers != wanted }
    return own != wanted.intersected(with: peers)
  }
}

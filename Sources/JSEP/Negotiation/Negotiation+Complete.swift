import SDP
import Wire

extension Negotiation {
  /// Takes over what an offer and its final answer agreed on.
  mutating func complete(offer: SDPDocument, answer: SDPDocument, peerAnswered: Bool) -> [Change] {
    endExchange()
    let fragments = (documents.currentLocal?.sections ?? []).compactMap(\.iceUsernameFragment)
    if !fragmentsToReplace.contains(where: fragments.contains) { fragmentsToReplace = [] }
    sections = []
    data = nil
    var stopped: [Change] = []
    var tracks: [Change] = []
    for index in slots.indices {
      let offered = offer.sections[index]
      let answered = answer.sections[index]
      if slots[index].isData {
        let peers = peerAnswered ? answered : offered
        settleData(index, offered: offered, answered: answered, peer: peers)
        continue
      }
      guard let place = transceivers.firstIndex(where: { $0.id == slots[index].transceiverID })
      else {
        slots[index].isDead = true
        // The peer ended the association; whoever opens another channel asks again.
        if slots[index].kind == .application { wantsData = false }
        continue
      }
      transceivers[place].wasMadeForRemoteOffer = false
      if answered.port == 0 || offered.isRejected {
        let gone = transceivers.remove(at: place)
        if gone.remoteTrackIsLive { tracks.append(.trackRemoved(transceiver: gone.id)) }
        stopped.append(.transceiverStopped(id: gone.id))
        slots[index].isDead = true
        slots[index].transceiverID = nil
        continue
      }
      let section = agreement(index, offer, answer, transceivers[place], peerAnswered)
      sections.append(section)
      numbers.learn(section)
      tracks += settle(place, section, peerAnswered ? answered : nil)
    }
    bundling.settle(slots, answer)
    let numbers = transportNumbers
    remoteTransports.removeAll { !numbers.contains($0.number) }
    // Transceivers that were stopped before they had a section leave with the next exchange.
    for transceiver in transceivers where transceiver.isStopping && transceiver.mid == nil {
      stopped.append(.transceiverStopped(id: transceiver.id))
    }
    transceivers.removeAll { $0.isStopping && $0.mid == nil }
    return stopped + [.sectionsAgreed] + tracks
  }

  /// Takes over what an offer and a provisional answer agree on, for media to flow until the final
  /// one comes; nothing is stopped or given up yet (RFC 9429 section 4.1.10.1).
  mutating func agreeProvisionally(offer: SDPDocument, answer: SDPDocument, peerAnswered: Bool)
    -> [Change]
  {
    sections = []
    var tracks: [Change] = []
    for index in slots.indices {
      let answered = answer.sections[index]
      guard answered.port != 0, !offer.sections[index].isRejected,
        let place = transceivers.firstIndex(where: { $0.id == slots[index].transceiverID })
      else { continue }
      let section = agreement(index, offer, answer, transceivers[place], peerAnswered)
      sections.append(section)
      tracks += settle(place, section, peerAnswered ? answered : nil)
    }
    return [.sectionsAgreed] + tracks
  }

  /// Gives a transceiver its agreed direction; tells when the peer's track begins or ends.
  private mutating func settle(
    _ place: Int, _ section: NegotiatedSection, _ answered: SDPSection?
  ) -> [Change] {
    transceivers[place].currentDirection = section.direction
    if section.direction.sends { transceivers[place].hasSent = true }
    if let answered { return transceivers[place].hear(answered, sends: section.direction.receives) }
    guard transceivers[place].remoteTrackIsLive, !section.direction.receives else { return [] }
    transceivers[place].remoteTrackIsLive = false
    return [.trackRemoved(transceiver: transceivers[place].id)]
  }

  private func agreement(
    _ index: Int, _ offer: SDPDocument, _ answer: SDPDocument, _ transceiver: Transceiver,
    _ peerAnswered: Bool
  ) -> NegotiatedSection {
    let (offered, answered) = (offer.sections[index], answer.sections[index])
    let kind = transceiver.kind
    let media = SectionMedia.agreed(
      offer: SectionMedia(reading: offered, kind: kind, capabilities),
      answer: SectionMedia(reading: answered, kind: kind, capabilities), peerAnswered: peerAnswered)
    // Directions are the offerer's view here, then turned to this side's.
    let common = (offered.direction ?? offer.direction ?? .sendrecv)
      .intersected(with: (answered.direction ?? answer.direction ?? .sendrecv).reversed)
    let direction = peerAnswered ? common : common.reversed
    let peers = peerAnswered ? answered : offered
    let sources = RemoteSources(direction.receives ? peers : nil)
    return NegotiatedSection(
      mid: slots[index].mid, transceiverID: transceiver.id,
      transport: slots[index].transportNumber, kind: kind,
      direction: TransceiverDirection(direction), codecs: media.codecs,
      extensions: media.extensions, remoteSSRCs: sources.ssrcs,
      remoteRTXSSRCs: sources.rtxSSRCs,
      reducedSizeRTCP: offered.reducesRTCPSize && answered.reducesRTCPSize,
      sendBitrateLimit: direction.sends ? peers.receiveBitrateLimit : nil)
  }
}

/// The sources that a section announces: those of media, each with that of its retransmissions.
private struct RemoteSources {
  /// How many sources of a section are kept.
  static let limit = 64

  var ssrcs: [UInt32] = []
  var rtxSSRCs: [UInt32?] = []

  init(_ section: SDPSection?) {
    guard let section else { return }
    let groups = section.ssrcGroups
    var secondary: Set<UInt32> = []
    var retransmission: [UInt32: UInt32] = [:]
    for group in groups where group.semantics == "FID" || group.semantics == "FEC-FR" {
      secondary.formUnion(group.ssrcs.dropFirst())
      guard group.semantics == "FID", group.ssrcs.count == 2 else { continue }
      retransmission[group.ssrcs[0]] = group.ssrcs[1]
    }
    var seen: Set<UInt32> = []
    for ssrc in section.ssrcs.map(\.ssrc) {
      guard !secondary.contains(ssrc), seen.insert(ssrc).inserted,
        ssrcs.count < RemoteSources.limit
      else { continue }
      ssrcs.append(ssrc)
      rtxSSRCs.append(retransmission[ssrc])
    }
  }
}

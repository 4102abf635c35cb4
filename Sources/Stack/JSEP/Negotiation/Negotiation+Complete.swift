import SDP
import Wire

extension Negotiation {
  /// Applies the result of an offer and its final answer.
  mutating func complete(offer: SDPDocument, answer: SDPDocument, peerAnswered: Bool) -> [Change] {
    endExchange()
    wishes.recordAgreed(descriptions.localUsernameFragments)
    var sections: [NegotiatedSection] = []
    var data: NegotiatedData?
    var stopped: [Change] = []
    var tracks: [Change] = []
    for (index, slot) in sectionTable.slots.enumerated() {
      let offered = offer.sections[index]
      let answered = answer.sections[index]
      if slot.isData {
        guard answered.port != 0, !offered.isRejected, answered.carriesData else {
          sectionTable.end(index)
          wishes.dropData()
          continue
        }
        data = (peerAnswered ? answered : offered).agreedData(slot)
        continue
      }
      guard let place = transceiverTable.index(of: slot.transceiverID) else {
        sectionTable.end(index)
        // The peer ended the association; opening another channel asks for a new one.
        if slot.kind == .application { wishes.dropData() }
        continue
      }
      transceiverTable.change(place) { $0.recordCompletion() }
      if answered.port == 0 || offered.isRejected {
        let gone = transceiverTable.remove(place)
        tracks += gone.track
        stopped.append(gone.stopped)
        sectionTable.end(index)
        continue
      }
      let section = agreement(index, offer, answer, transceivers[place], peerAnswered)
      sections.append(section)
      numbers.learn(section)
      tracks += transceiverTable.change(place) {
        if peerAnswered, section.direction.sends { $0.restrictLayers(section.sentLayers) }
        if !peerAnswered { $0.settleOfferedLayers(section.sentLayers) }
        return $0.settle(section.direction, peerAnswered ? answered : nil)
      }
    }
    agreed = AgreedSession(sections, data: data)
    bundling.settle(sectionTable.slots, answer)
    remoteSides.removeAll(besides: transportNumbers)
    stopped += transceiverTable.removeStopped()
    return stopped + [.sectionsAgreed] + tracks
  }

  /// Applies the result of an offer and a provisional answer, so that media can flow before the
  /// final one; nothing is stopped or given up yet (RFC 9429 section 4.1.10.1).
  mutating func agreeProvisionally(offer: SDPDocument, answer: SDPDocument, peerAnswered: Bool)
    -> [Change]
  {
    var sections: [NegotiatedSection] = []
    var tracks: [Change] = []
    for (index, slot) in sectionTable.slots.enumerated() {
      let answered = answer.sections[index]
      guard answered.port != 0, !offer.sections[index].isRejected,
        let place = transceiverTable.index(of: slot.transceiverID)
      else { continue }
      let section = agreement(index, offer, answer, transceivers[place], peerAnswered)
      sections.append(section)
      tracks += transceiverTable.change(place) {
        $0.settle(section.direction, peerAnswered ? answered : nil)
      }
    }
    agreed = AgreedSession(sections, data: agreed.data)
    return [.sectionsAgreed] + tracks
  }

  private func agreement(
    _ index: Int, _ offer: SDPDocument, _ answer: SDPDocument, _ transceiver: Transceiver,
    _ peerAnswered: Bool
  ) -> NegotiatedSection {
    let (offered, answered) = (offer.sections[index], answer.sections[index])
    let kind = transceiver.kind
    let offeredMedia = SectionMedia(reading: offered, kind: kind, capabilities)
    let media = SectionMedia.agreed(
      offer: offeredMedia, answer: SectionMedia(reading: answered, kind: kind, capabilities),
      peerAnswered: peerAnswered)
    // Directions are the offerer's view here, then turned to this side's.
    let common = (offered.direction ?? offer.direction ?? .sendrecv)
      .intersected(with: (answered.direction ?? answer.direction ?? .sendrecv).reversed)
    let direction = peerAnswered ? common : common.reversed
    let peers = peerAnswered ? answered : offered
    let own = peerAnswered ? offered : answered
    let sources = RemoteSources(direction.receives ? peers : nil)
    var section = NegotiatedSection(
      mid: sectionTable.slots[index].mid, transceiverID: transceiver.id,
      transport: sectionTable.slots[index].transportNumber, kind: kind,
      direction: TransceiverDirection(direction), codecs: media.codecs,
      extensions: media.extensions, remoteSSRCs: sources.ssrcs,
      remoteRTXSSRCs: sources.rtxSSRCs,
      reducedSizeRTCP: offered.reducesRTCPSize && answered.reducesRTCPSize,
      sendBitrateLimit: direction.sends ? peers.receiveBitrateLimit : nil,
      sentLayers: direction.sends && transceiver.offersSimulcast
        ? NegotiatedLayer.agreed(sender: own, receiver: peers) : [])
    if peerAnswered, direction.receives, capabilities.receivesAllOffered {
      section.unansweredCodecs = media.unanswered(of: offeredMedia)
    }
    return section
  }
}

/// The media SSRCs that a section announces, each with its RTX SSRC.
private struct RemoteSources {
  /// The most SSRCs stored per section.
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

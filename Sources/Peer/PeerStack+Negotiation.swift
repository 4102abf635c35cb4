import Flow
import JSEP
import RTP
import Wire

// What an offer/answer exchange agreed on, handed to the layers that carry it.
extension PeerStack {
  func applySections() {
    configureFlows()
    announceTracks()
    dropStalePlayouts()
    settleData()
    updateCaptures()
  }

  private func configureFlows() {
    for bundle in bundles.all {
      bundle.mids = negotiation.sections.filter { $0.transport == bundle.number }.map(\.mid)
    }
    let senders = bundles.all.filter { bundle in
      negotiation.sections.contains {
        $0.transport == bundle.number && $0.kind == .video && $0.direction.sends
      }
    }
    for bundle in bundles.all {
      let share = UInt64(max(senders.count, 1))
      if bundle.bitrateShare != share {
        bundle.bitrateShare = share
        limitBitrate(of: bundle)
      }
      let sections = negotiation.sections.filter { $0.transport == bundle.number }
      drive(bundle, .configure(sections.map(flowSection)))
    }
  }

  private func flowSection(_ section: NegotiatedSection) -> FlowSection {
    let codecs = section.codecs.map { FlowSection.Codec($0) }
    let transceiver = negotiation.transceivers.first { $0.id == section.transceiverID }
    var sending: FlowSection.Sending?
    if section.direction.sends, let codec = section.sentCodec.map({ FlowSection.Codec($0) }),
      let transceiver
    {
      sending = FlowSection.Sending(
        ssrc: transceiver.ssrc, rtxSSRC: codec.rtxPayloadType == nil ? nil : transceiver.rtxSSRC,
        codec: codec)
    }
    var receiving: FlowSection.Receiving?
    if section.direction.receives {
      receiving = FlowSection.Receiving(
        codecs: codecs, ssrcs: section.remoteSSRCs, rtxSSRCs: section.remoteRTXSSRCs)
    }
    return FlowSection(
      mid: section.mid, kind: section.kind, sending: sending, receiving: receiving,
      extensions: section.extensions.map { .init(uri: $0.uri, id: $0.id) },
      reducedSizeRTCP: section.reducedSizeRTCP)
  }

  /// Tells of each direction of each track once, and again when it changed.
  private func announceTracks() {
    var records: [TrackRecord] = []
    for section in negotiation.sections {
      let transceiver = negotiation.transceivers.first { $0.id == section.transceiverID }
      let sequenceID = section.extensions.first {
        $0.uri == HeaderExtensionURI.transportSequence.rawValue
      }
      for isInbound in [false, true] {
        let isActive = isInbound ? section.direction.receives : section.direction.sends
        guard isActive, let codec = isInbound ? section.codecs.first : section.sentCodec
        else { continue }
        records.append(
          TrackRecord(
            transceiver: section.transceiverID, mid: section.mid, kind: section.kind,
            isInbound: isInbound,
            ssrc: isInbound ? section.remoteSSRCs.first : transceiver?.ssrc, codec: codec.name,
            payloadType: codec.payloadType, clockRate: codec.clockRate,
            transportSequenceID: sequenceID?.id ?? 0))
      }
    }
    for record in records where !tracks.announced.contains(record) {
      tell(.trackNegotiated(record))
    }
    tracks.announced = records
  }

  private func dropStalePlayouts() {
    tracks.receiving.removeAll { track in
      let isStale = !negotiation.sections.contains {
        $0.mid == track.mid && $0.direction.receives
      }
      if isStale, track.kind == .audio { forgetSpeaker(track.transceiver, isInbound: true) }
      return isStale
    }
  }
}

extension FlowSection.Codec {
  fileprivate init(_ codec: NegotiatedCodec) {
    self.init(
      payloadType: codec.payloadType, name: CodecName(rawValue: codec.name),
      clockRate: codec.clockRate, rtxPayloadType: codec.rtxPayloadType, feedback: codec.feedback)
    if case .h264(let mode, _) = codec.format?.variant { fragments = mode > 0 }
  }
}

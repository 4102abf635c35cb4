import Flow
import JSEP
import RTP
import Wire

// What an offer/answer exchange agreed on, handed to the layers that carry it.
extension PeerStack {
  func applySections() {
    configureFlows()
    let changed = tracks.announce(negotiation.sections, of: negotiation.transceivers)
    for record in changed { tell(.trackNegotiated(record)) }
    endPlayouts(besides: negotiation.sections)
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
}

extension FlowSection.Codec {
  fileprivate init(_ codec: NegotiatedCodec) {
    self.init(
      payloadType: codec.payloadType, name: CodecName(rawValue: codec.name),
      clockRate: codec.clockRate, rtxPayloadType: codec.rtxPayloadType, feedback: codec.feedback,
      fragments: codec.format?.takesFragments ?? true)
  }
}

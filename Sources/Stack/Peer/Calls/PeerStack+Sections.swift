import Flow
import JSEP
import RTP
import Wire

// Applies the result of an offer/answer exchange to the layers below.
extension PeerStack {
  func applySections() {
    settleLayers()
    configureFlows()
    let changed = tracks.announce(negotiation.sections, of: negotiation.transceivers)
    for record in changed { emit(.trackNegotiated(record)) }
    endPlayouts(besides: negotiation.sections)
    settleData()
    updateCaptures()
  }

  /// Adapts the senders' encodings to the layers of their transceivers, after a remote offer
  /// requested a simulcast or was rolled back.
  func followLayers() {
    for transceiver in negotiation.transceivers {
      let rids = transceiver.layers.map(\.rid)
      guard tracks.senders.follow(rids, of: transceiver.id, transceiver.kind) else { continue }
      let indices = tracks.sendingIndices(of: transceiver.id)
      guard let first = indices.first, let source = tracks.sending[first].source else { continue }
      let isEnabled = tracks.sending[first].isEnabled
      for index in indices { drive(sending: index, .stop) }
      tracks.removeSending(of: transceiver.id)
      addTracks(source, of: transceiver.id, transceiver.kind, isEnabled: isEnabled)
    }
  }

  /// Drops the layers that the peer refused.
  private func settleLayers() {
    for transceiver in negotiation.transceivers where !transceiver.layers.isEmpty {
      let rids = transceiver.layers.map(\.rid)
      tracks.senders.restrictLayers(rids, of: transceiver.id)
      for index in tracks.sendingIndices(of: transceiver.id) {
        guard let rid = tracks.sending[index].rid, !rids.contains(rid) else { continue }
        drive(sending: index, .stop)
      }
      tracks.restrictLayers(rids, of: transceiver.id)
    }
  }

  private func configureFlows() {
    for bundle in bundles.all {
      bundle.carry(
        negotiation.sections.filter { $0.transport == bundle.number }.map(\.mid))
    }
    let senders = bundles.all.filter { bundle in
      negotiation.sections.contains {
        $0.transport == bundle.number && $0.kind == .video && $0.direction.sends
      }
    }
    for bundle in bundles.all {
      if bundle.share(among: UInt64(max(senders.count, 1))) { limitBitrate(of: bundle) }
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
        transceiver.sources(in: section).map { source in
          FlowSection.Sending.Source(
            rid: source.rid, ssrc: source.ssrc,
            rtxSSRC: codec.rtxPayloadType == nil ? nil : source.rtxSSRC)
        }, codec: codec, events: section.sentEvents.map { FlowSection.Codec($0) })
    }
    var receiving: FlowSection.Receiving?
    if section.direction.receives {
      receiving = FlowSection.Receiving(
        codecs: codecs + section.unansweredCodecs.map { FlowSection.Codec($0) },
        ssrcs: section.remoteSSRCs, rtxSSRCs: section.remoteRTXSSRCs)
    }
    return FlowSection(
      mid: section.mid, kind: section.kind, sending: sending, receiving: receiving,
      extensions: section.extensions.map { .init(uri: $0.uri, id: $0.id) },
      reducedSizeRTCP: section.reducedSizeRTCP)
  }
}

extension Transceiver {
  /// The streams to send in a section, as negotiated.
  func sources(in section: NegotiatedSection) -> [(rid: String?, ssrc: UInt32, rtxSSRC: UInt32)] {
    let agreed = layers.filter { layer in section.sentLayers.contains { $0.rid == layer.rid } }
    guard agreed.isEmpty else { return agreed.map { ($0.rid, $0.ssrc, $0.rtxSSRC) } }
    return [(nil, onlySource.ssrc, onlySource.rtxSSRC)]
  }
}

extension FlowSection.Codec {
  fileprivate init(_ codec: NegotiatedCodec) {
    self.init(
      payloadType: codec.payloadType, name: CodecName(rawValue: codec.name),
      clockRate: codec.clockRate, rtxPayloadType: codec.rtxPayloadType, feedback: codec.feedback,
      fragments: codec.format?.acceptsFragments ?? true)
  }
}

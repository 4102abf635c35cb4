import SDP
import Wire

/// An m-section of a local description, before it is written.
struct LocalSection {
  var kind: MediaKind
  /// nil in the answer to an offer without MIDs.
  var mid: String?
  var transport: String
  var media: SectionMedia
  var direction: MediaDirection
  var setup: SetupRole
  /// Whether `rtcp-mux-only` is present: in offers of new sections (RFC 8858, RFC 9429 section
  /// 5.2.2).
  var demandsMultiplexing: Bool
  var reducedSizeRTCP: Bool
  /// Whether a peer that does not support BUNDLE must reject the section (RFC 9143 section 6).
  var isLeftToBundle = false
  /// Whether receivers on both sides may measure the round trip (RFC 3611 section 5.1).
  var measuresReceiverRoundTrip: Bool
  /// The names of the simulcast layers to send (RFC 8853); empty for a single stream.
  var layers: [String] = []

  /// The profile in offers (RFC 9429 section 5.1.2).
  static let profile = "UDP/TLS/RTP/SAVPF"
  /// The port of an unknown address (RFC 9429 section 5.2.1).
  static let unknownPort: UInt16 = 9

  /// Returns the lines of the section without candidates, in libwebrtc's order.
  func section(_ sender: Transceiver, cname: String, transport own: LocalTransport) -> SDPSection {
    var section = SDPSection(
      kind: SectionKind(kind), port: isLeftToBundle ? 0 : LocalSection.unknownPort,
      transport: transport,
      formats: media.codecs.flatMap { [$0.payloadType] + ($0.rtxPayloadType.map { [$0] } ?? []) }
        .map { String($0) })
    section.connection = .unknown
    section.append(own, setup)
    if let mid { section.append(SDPLine(.mid, mid)) }
    if isLeftToBundle { section.append(.bundleOnly) }
    for (uri, id) in media.extensions { section.append(ExtensionMap(id: UInt16(id), uri: uri)) }
    section.append(direction.attributeName)
    // An answer names the streams of everything this side wants to send, even if the offer does not
    // accept it. Otherwise both sides would consider them missing and offer endlessly (W3C section
    // 4.7.3).
    if direction.sends || sender.direction.sends { append(msidsOf: sender, to: &section) }
    section.append(.rtcpMux)
    if demandsMultiplexing { section.append(.rtcpMuxOnly) }
    if reducedSizeRTCP { section.append(.rtcpReducedSize) }
    if measuresReceiverRoundTrip { section.append(SDPLine(.rtcpExtendedReports, "rcvr-rtt=all")) }
    for codec in media.codecs { append(codec, to: &section) }
    guard direction.sends else { return section }
    if layers.isEmpty {
      append(sourcesOf: sender, cname, to: &section)
    } else {
      // Packets name their layer, so no SSRCs are announced.
      for rid in layers { section.append(RestrictionID(id: rid, isSent: true)) }
      section.append(Simulcast(sent: layers.joined(separator: ";")))
    }
    return section
  }

  private func append(msidsOf sender: Transceiver, to section: inout SDPSection) {
    for stream in sender.streamIDs.isEmpty ? ["-"] : sender.streamIDs {
      section.append(MSID(streamID: stream, trackID: sender.trackID))
    }
  }

  private func append(_ codec: NegotiatedCodec, to section: inout SDPSection) {
    let type = codec.payloadType
    section.append(
      RTPMap(
        payloadType: type, name: codec.displayName, clockRate: codec.clockRate,
        channels: codec.channels))
    for feedback in codec.feedback {
      section.append(RTCPFeedback(payloadType: type, feedback: feedback))
    }
    let parameters = codec.localParameters
    if !parameters.isEmpty {
      section.append(FormatParameters(format: String(type), parameters: parameters))
    }
    if let rtx = codec.rtxPayloadType {
      section.append(RTPMap(payloadType: rtx, name: "rtx", clockRate: codec.clockRate))
      section.append(FormatParameters(format: String(rtx), parameters: "apt=\(type)"))
    }
  }

  private func append(
    sourcesOf sender: Transceiver, _ cname: String, to section: inout SDPSection
  ) {
    var ssrcs = [sender.ssrc]
    if media.codecs.contains(where: { $0.rtxPayloadType != nil }) {
      ssrcs.append(sender.rtxSSRC)
      section.append(SSRCGroup(semantics: "FID", ssrcs: ssrcs))
    }
    for ssrc in ssrcs {
      section.append(SSRCAttribute(ssrc: ssrc, name: "cname", value: cname))
    }
  }

  /// A section that is off: port 0, at its index, with its MID (RFC 9429 section 5.2.2).
  ///
  /// It needs no transport, but aiortc refuses descriptions whose sections state none.
  static func rejected(_ slot: SectionSlot, _ own: LocalTransport, _ setup: SetupRole)
    -> SDPSection
  {
    var section = SDPSection(
      kind: slot.kind, port: 0, transport: slot.transport, formats: slot.formats)
    section.connection = .unknown
    section.append(own, setup)
    if slot.midIsSignaled { section.append(SDPLine(.mid, slot.mid)) }
    section.append(.inactive)
    return section
  }
}

extension SDPSection {
  mutating func append(_ own: LocalTransport, _ setup: SetupRole) {
    append(SDPLine(.iceUsernameFragment, own.usernameFragment))
    append(SDPLine(.icePassword, own.password))
    append(SDPLine(.iceOptions, own.iceOptions.joined(separator: " ")))
    for print in own.fingerprints { append(print) }
    append(setup)
  }
}

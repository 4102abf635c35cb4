import SDP
package import Wire

/// One of the session's m-sections, at a fixed index.
struct SectionSlot: Hashable {
  var kind: SectionKind
  /// The section's MID, generated if the peer stated none.
  var mid: String
  /// Whether descriptions state the MID.
  var midIsSignaled = true
  var transceiverID: UInt32?
  /// Whether the section is for data channels.
  var isData = false
  /// Whether the section is disabled, in which case its index may be reused.
  var isDead = false
  /// The number of the section's transport; bundled sections share one.
  var transportNumber = 0
  /// The protocol and formats of the `m=` line, repeated while the section is disabled.
  var transport: String
  var formats: [String]
}

// MARK: - LocalSection

/// An m-section of a local description, before it is written out.
struct LocalSection {
  var kind: MediaKind
  /// The MID; nil in the answer to an offer without MIDs.
  var mid: String?
  var transport: String
  var media: SectionMedia
  var direction: MediaDirection
  var setup: SetupRole
  /// Whether the section states `rtcp-mux-only`, as new sections do in offers (RFC 8858, RFC 9429
  /// section 5.2.2).
  var demandsMultiplexing: Bool
  var reducedSizeRTCP: Bool
  /// Whether a peer without BUNDLE must reject the section (RFC 9143 section 6).
  var isLeftToBundle = false
  /// Whether receivers on both sides may measure the round trip (RFC 3611 section 5.1).
  var measuresReceiverRoundTrip: Bool
  /// Names of the simulcast layers to send (RFC 8853); empty for a single stream.
  var layers: [String] = []

  /// The profile in offers (RFC 9429 section 5.1.2).
  static let profile = "UDP/TLS/RTP/SAVPF"
  /// The port for an unknown address (RFC 9429 section 5.2.1).
  static let unknownPort: UInt16 = 9

  /// Returns the section's lines without candidates, in libwebrtc's order.
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
    // An answer names the streams of everything the local peer wants to send, even if the offer
    // does not accept it. Otherwise both peers would consider those streams missing and offer
    // endlessly (W3C section 4.7.3).
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

  /// Returns a disabled section: port 0, at its index, with its MID (RFC 9429 section 5.2.2).
  ///
  /// It needs no transport, but aiortc refuses descriptions with sections that state none.
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

// MARK: - NegotiatedSection

/// The result of negotiating one m-section.
package struct NegotiatedSection: Hashable, Sendable {
  package var mid: String
  package var transceiverID: UInt32
  /// The number of the section's transport.
  package var transport: Int
  package var kind: MediaKind
  package var direction: TransceiverDirection
  /// Codecs in the answer's order of preference; each includes its RTX.
  package var codecs: [NegotiatedCodec]
  /// Codecs from the local offer that the answer omits but that are still received.
  package var unansweredCodecs: [NegotiatedCodec] = []
  /// Header extensions by URI and id, in the answer's order.
  package var extensions: [(uri: String, id: UInt8)]
  package var remoteSSRCs: [UInt32]
  package var remoteRTXSSRCs: [UInt32?]
  package var reducedSizeRTCP: Bool
  /// The peer's limit on what is sent, in bits per second of payload; nil if there is none.
  package var sendBitrateLimit: UInt64?
  /// Simulcast layers that are sent, in the local description's order; empty for a single stream.
  package var sentLayers: [NegotiatedLayer]

  package init(
    mid: String, transceiverID: UInt32, transport: Int = 0, kind: MediaKind,
    direction: TransceiverDirection, codecs: [NegotiatedCodec],
    extensions: [(uri: String, id: UInt8)], remoteSSRCs: [UInt32], remoteRTXSSRCs: [UInt32?],
    reducedSizeRTCP: Bool, sendBitrateLimit: UInt64? = nil, sentLayers: [NegotiatedLayer] = []
  ) {
    self.mid = mid
    self.transceiverID = transceiverID
    self.transport = transport
    self.kind = kind
    self.direction = direction
    self.codecs = codecs
    self.extensions = extensions
    self.remoteSSRCs = remoteSSRCs
    self.remoteRTXSSRCs = remoteRTXSSRCs
    self.reducedSizeRTCP = reducedSizeRTCP
    self.sendBitrateLimit = sendBitrateLimit
    self.sentLayers = sentLayers
  }

  /// The codec to send with: the first that can be encoded, or else the first; nil if there are no
  /// codecs.
  package var sentCodec: NegotiatedCodec? {
    codecs.first { $0.isEncoded && $0.carriesMedia } ?? codecs.first
  }

  /// The telephone events that can be sent along with the audio, whose clock rate they share (RFC
  /// 7874 section 3); nil if there are none.
  package var sentEvents: NegotiatedCodec? {
    let clockRate = sentCodec?.clockRate
    return codecs.first { !$0.carriesMedia && $0.clockRate == clockRate }
  }

  /// The codec that the peer most likely sends; nil if there are no codecs.
  package var receivedCodec: NegotiatedCodec? {
    codecs.first(where: \.carriesMedia) ?? codecs.first
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.mid == right.mid && left.transceiverID == right.transceiverID
      && left.transport == right.transport && left.kind == right.kind
      && left.direction == right.direction && left.codecs == right.codecs
      && left.unansweredCodecs == right.unansweredCodecs
      && left.remoteSSRCs == right.remoteSSRCs && left.remoteRTXSSRCs == right.remoteRTXSSRCs
      && left.reducedSizeRTCP == right.reducedSizeRTCP
      && left.sendBitrateLimit == right.sendBitrateLimit && left.sentLayers == right.sentLayers
      && left.extensions.elementsEqual(right.extensions, by: ==)
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(mid) }
}

// MARK: - DataSection

/// The negotiated data channel transport: an SCTP association over DTLS (RFC 8841).
package struct NegotiatedData: Hashable, Sendable {
  package var mid: String
  /// The number of the transport that carries the association.
  package var transport: Int
  package var remotePort: UInt16
  /// The largest message the peer accepts, in bytes; 0 for no limit (RFC 8841 section 6.1).
  package var remoteMaximumMessageSize: UInt64

  package init(
    mid: String, transport: Int = 0, remotePort: UInt16, remoteMaximumMessageSize: UInt64
  ) {
    self.mid = mid
    self.transport = transport
    self.remotePort = remotePort
    self.remoteMaximumMessageSize = remoteMaximumMessageSize
  }
}

/// Writes the m-section for data channels and parses the peer's.
package enum DataSection {
  /// The local SCTP port, which WebRTC stacks use by convention.
  package static let port: UInt16 = 5000
  /// The largest message that local descriptions allow, in bytes.
  package static let maximumMessageSize = 1 << 20
  /// The default if the peer states no limit, in bytes (RFC 8841 section 6.1).
  package static let defaultMaximumMessageSize: UInt64 = 65_536

  static let profile = "UDP/DTLS/SCTP"
  static let format = "webrtc-datachannel"
  /// The profiles in RFC 8841 section 4.1.
  static let profiles = [profile, "TCP/DTLS/SCTP"]
  /// The profile used before RFC 8841; its format is the SCTP port.
  static let formerProfile = "DTLS/SCTP"
  /// The number of streams that `sctpmap` states in the older form, as in browsers.
  private static let formerStreams: UInt32 = 1024

  /// Returns the m-section that the local peer states for data channels.
  /// - Parameters:
  ///   - formats: the formats in the peer's section; the local section uses the same syntax, old or
  ///     new.
  ///   - isLeftToBundle: whether a peer without BUNDLE must reject the section (RFC 9143 section
  ///     6).
  static func section(
    mid: String?, profile: String, formats: [String], transport own: LocalTransport,
    setup: SetupRole, isLeftToBundle: Bool = false
  ) -> SDPSection {
    let isFormer = !formats.contains(format)
    var section = SDPSection(
      kind: .application, port: isLeftToBundle ? 0 : LocalSection.unknownPort, transport: profile,
      formats: [isFormer ? String(port) : format])
    section.connection = .unknown
    section.append(own, setup)
    if let mid { section.append(SDPLine(.mid, mid)) }
    if isLeftToBundle { section.append(.bundleOnly) }
    if isFormer {
      section.append(SCTPMap(port: port, application: format, streams: formerStreams))
    } else {
      section.append(SDPLine(.sctpPort, String(port)))
    }
    section.append(SDPLine(.maximumMessageSize, String(maximumMessageSize)))
    return section
  }
}

extension SDPSection {
  /// Whether the section offers or accepts data channels.
  ///
  /// Port 0 means no association (RFC 8841 section 5.2); a missing port means the default, as in
  /// browsers.
  var carriesData: Bool {
    guard kind == .application else { return false }
    if formats.contains(DataSection.format) {
      return DataSection.profiles.contains(transport) && sctpPort != 0
    }
    return formerDataPort ?? 0 != 0
  }

  /// The SCTP port, which is the section's format in the syntax before RFC 8841; nil unless the
  /// profile or an `sctpmap` line shows that the section is for data channels.
  private var formerDataPort: UInt16? {
    guard transport == DataSection.formerProfile || DataSection.profiles.contains(transport),
      let port = formats.first.flatMap({ UInt16(decimal: $0) })
    else { return nil }
    let map = values(SCTPMap.self).first { $0.port == port }
    guard let map else { return transport == DataSection.formerProfile ? port : nil }
    return map.application == DataSection.format ? port : nil
  }

  /// Returns the association that the peer's section describes.
  func agreedData(_ slot: SectionSlot) -> NegotiatedData {
    NegotiatedData(
      mid: slot.mid, transport: slot.transportNumber,
      remotePort: sctpPort ?? formerDataPort ?? DataSection.port,
      remoteMaximumMessageSize: maximumMessageSize ?? DataSection.defaultMaximumMessageSize)
  }
}

package import RTP
package import Wire

/// The negotiated parameters of an m-section that affect its packets.
package struct FlowSection: Hashable, Sendable {
  /// A codec with its payload type and negotiated feedback.
  package struct Codec: Hashable, Sendable {
    package var payloadType: UInt8
    package var name: CodecName
    package var clockRate: UInt32
    /// The RTX stream's payload type (RFC 4588), if negotiated.
    package var rtxPayloadType: UInt8?
    /// The negotiated rtcp-fb values: `nack`, `nack pli`, `ccm fir`, `goog-remb`, `transport-cc`,
    /// `rrtr`.
    package var feedback: [String]
    /// Whether the peer accepts fragmented H.264 units (packetization mode 1).
    package var fragments: Bool

    package init(
      payloadType: UInt8, name: CodecName, clockRate: UInt32, rtxPayloadType: UInt8?,
      feedback: [String], fragments: Bool = true
    ) {
      self.fragments = fragments
      self.payloadType = payloadType
      self.name = name
      self.clockRate = clockRate
      self.rtxPayloadType = rtxPayloadType
      self.feedback = feedback
    }
  }

  /// The media that the section sends, as negotiated.
  package struct Sending: Hashable, Sendable {
    /// A stream to send: the section's only stream, or a simulcast layer.
    package struct Source: Hashable, Sendable {
      /// The layer's name (RFC 8851); nil for the only stream.
      package var rid: String?
      package var ssrc: UInt32
      package var rtxSSRC: UInt32?

      package init(rid: String? = nil, ssrc: UInt32, rtxSSRC: UInt32?) {
        self.rid = rid
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
      }
    }

    /// The only stream, or the simulcast layers in the offer's order.
    package var sources: [Source]
    package var codec: Codec
    /// Telephone events at the codec's clock rate (RFC 4733), if negotiated.
    package var events: Codec?

    package init(_ sources: [Source], codec: Codec, events: Codec? = nil) {
      self.sources = sources
      self.codec = codec
      self.events = events
    }

    package init(ssrc: UInt32, rtxSSRC: UInt32?, codec: Codec) {
      self.init([Source(ssrc: ssrc, rtxSSRC: rtxSSRC)], codec: codec)
    }
  }

  /// The media that the section receives, as negotiated.
  package struct Receiving: Hashable, Sendable {
    package var codecs: [Codec]
    /// The media SSRCs the peer announced, each with its RTX SSRC if announced.
    package var ssrcs: [UInt32]
    package var rtxSSRCs: [UInt32?]

    package init(codecs: [Codec], ssrcs: [UInt32], rtxSSRCs: [UInt32?]) {
      self.codecs = codecs
      self.ssrcs = ssrcs
      self.rtxSSRCs = rtxSSRCs
    }
  }

  package var mid: String
  package var kind: MediaKind
  package var sending: Sending?
  package var receiving: Receiving?
  package var extensions: [HeaderExtensionID]
  /// Whether reduced-size RTCP (RFC 5506) was negotiated.
  package var reducedSizeRTCP: Bool

  /// A header extension's URI and its id on this transport (RFC 8285).
  package struct HeaderExtensionID: Hashable, Sendable {
    package var uri: String
    package var id: UInt8

    package init(uri: String, id: UInt8) {
      self.uri = uri
      self.id = id
    }
  }

  package init(
    mid: String, kind: MediaKind, sending: Sending?, receiving: Receiving?,
    extensions: [HeaderExtensionID], reducedSizeRTCP: Bool
  ) {
    self.mid = mid
    self.kind = kind
    self.sending = sending
    self.receiving = receiving
    self.extensions = extensions
    self.reducedSizeRTCP = reducedSizeRTCP
  }
}

// MARK: - FlowAgreement

/// A transport's negotiated m-sections, with the lookups that every packet needs; immutable until
/// the next negotiation.
struct FlowAgreement {
  let sections: [SectionState]
  /// The header extensions of all sections, which share one id space (RFC 9143).
  let extensions: HeaderExtensionMap
  /// Whether arrival times, rather than a bit rate (REMB), are reported to the peer.
  let reportsArrivals: Bool
  let reportsBitrate: Bool
  /// Whether feedback may be sent in reduced size (RFC 5506).
  let usesReducedSize: Bool

  init(_ sections: [FlowSection] = []) {
    let states = sections.map { SectionState($0) }
    var map = HeaderExtensionMap()
    for section in sections {
      for agreed in section.extensions { map.add(uri: agreed.uri, id: agreed.id) }
    }
    self.sections = states
    extensions = map
    reportsArrivals = states.contains { $0.reportsArrivals }
    reportsBitrate =
      !reportsArrivals && states.contains { $0.receives(feedback: "goog-remb") }
    // A compound packet is sent for all sections together, so reduced size must be negotiated in
    // all.
    usesReducedSize = !sections.isEmpty && sections.allSatisfy(\.reducedSizeRTCP)
  }

  func section(_ mid: String) -> SectionState? { sections.first { $0.mid == mid } }

  /// Finds the section for a packet from an unknown source: by MID, announced SSRC, or payload type
  /// (RFC 9143 section 9.2); nil if none matches, or if several use the payload type.
  func section(of header: RTPHeader, mid: ArraySlice<UInt8>?) -> SectionState? {
    if let mid { return sections.first { $0.midBytes.elementsEqual(mid) } }
    if let announced = sections.first(where: {
      guard let receiving = $0.section.receiving else { return false }
      return receiving.ssrcs.contains(header.ssrc) || receiving.rtxSSRCs.contains(header.ssrc)
    }) {
      return announced
    }
    var found: SectionState?
    for section in sections where section.payload(header.payloadType) != nil {
      // A payload type used by two sections identifies neither.
      if found != nil { return nil }
      found = section
    }
    return found
  }
}

// MARK: - SectionState

/// A negotiated m-section, with the lookups that every packet needs.
///
/// It is a class, because every packet looks up its section, and copying a struct would be slow.
final class SectionState: Sendable {
  let section: FlowSection
  let midBytes: [UInt8]
  let extensions: HeaderExtensionMap

  init(_ section: FlowSection) {
    self.section = section
    midBytes = Array(section.mid.utf8)
    var map = HeaderExtensionMap()
    for agreed in section.extensions { map.add(uri: agreed.uri, id: agreed.id) }
    extensions = map
  }

  var mid: String { section.mid }
  var kind: MediaKind { section.kind }

  /// The meaning of a received payload type.
  enum Payload {
    case media(FlowSection.Codec)
    /// Retransmissions of a codec's packets (RFC 4588).
    case retransmission(FlowSection.Codec)
  }

  func payload(_ type: UInt8) -> Payload? {
    guard let receiving = section.receiving else { return nil }
    for codec in receiving.codecs {
      if codec.payloadType == type { return .media(codec) }
      if codec.rtxPayloadType == type { return .retransmission(codec) }
    }
    return nil
  }

  /// Returns the codec of a media payload type or, if `isRetransmission`, of an RTX payload type;
  /// nil if no such payload type was negotiated.
  func codec(_ type: UInt8, isRetransmission: Bool) -> FlowSection.Codec? {
    switch payload(type) {
    case .media(let codec): isRetransmission ? nil : codec
    case .retransmission(let codec): isRetransmission ? codec : nil
    case nil: nil
    }
  }

  /// Whether transport-wide feedback was negotiated for received packets.
  var reportsArrivals: Bool {
    extensions.transportSequence != 0 && receives(feedback: "transport-cc")
  }

  /// Returns whether a kind of feedback was negotiated for any received codec.
  func receives(feedback: String) -> Bool {
    section.receiving?.codecs.contains { $0.feedback.contains(feedback) } ?? false
  }
}

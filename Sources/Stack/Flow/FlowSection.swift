package import RTP
package import Wire

/// The negotiated parameters of one m-section that matter to packets.
package struct FlowSection: Hashable, Sendable {
  /// A payload type and its codec.
  package struct Codec: Hashable, Sendable {
    package var payloadType: UInt8
    package var name: CodecName
    package var clockRate: UInt32
    /// The payload type of the RTX stream (RFC 4588), if negotiated.
    package var rtxPayloadType: UInt8?
    /// The negotiated rtcp-fb values: `nack`, `nack pli`, `ccm fir`, `goog-remb`, `transport-cc`.
    package var feedback: [String]
    /// Whether the peer accepts fragmented units of H.264 (packetization mode 1).
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

  /// The negotiated sending side of the section.
  package struct Sending: Hashable, Sendable {
    /// A stream that is sent: the only one of the section, or a simulcast layer.
    package struct Source: Hashable, Sendable {
      /// The name of the layer (RFC 8851); nil for the only stream.
      package var rid: String?
      package var ssrc: UInt32
      package var rtxSSRC: UInt32?

      package init(rid: String? = nil, ssrc: UInt32, rtxSSRC: UInt32?) {
        self.rid = rid
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
      }
    }

    /// The only stream, or the simulcast layers in the order of the offer.
    package var sources: [Source]
    package var codec: Codec
    /// Telephone events with the clock rate of the codec (RFC 4733), if negotiated.
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

  /// The negotiated receiving side of the section.
  package struct Receiving: Hashable, Sendable {
    package var codecs: [Codec]
    /// The media SSRCs that the peer announced, each with its RTX SSRC if announced.
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
  /// The negotiated header extensions.
  package var extensions: [HeaderExtensionID]
  /// Whether reduced-size RTCP (RFC 5506) was negotiated.
  package var reducedSizeRTCP: Bool

  /// A header extension's URI and its identifier on this transport (RFC 8285).
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

/// The negotiated m-sections of a transport, with lookups that every packet needs; immutable until
/// the next negotiation.
struct FlowAgreement {
  let sections: [SectionState]
  /// The header extensions of all sections, which share one space of identifiers (RFC 9143).
  let extensions: HeaderExtensionMap
  /// Whether arrival times are reported to the peer, rather than a bit rate (REMB).
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
    // A compound goes to all sections, so all of them have to agree.
    usesReducedSize = !sections.isEmpty && sections.allSatisfy(\.reducedSizeRTCP)
  }

  func section(_ mid: String) -> SectionState? { sections.first { $0.mid == mid } }

  /// Finds the section of a packet from an unknown source: by MID, by announced SSRC, or by payload
  /// type (RFC 9143 section 9.2).
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
      // A payload type that two sections use identifies neither.
      if found != nil { return nil }
      found = section
    }
    return found
  }
}

// MARK: - SectionState

/// A negotiated m-section with lookups that every packet needs.
///
/// A class, because every packet picks one from several and it is large to copy.
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

  /// The meaning of a payload type in the received direction.
  enum Payload {
    case media(FlowSection.Codec)
    /// Retransmission of a codec's packets (RFC 4588).
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

  /// The codec of a payload type, media or RTX.
  func codec(_ type: UInt8, isRetransmission: Bool) -> FlowSection.Codec? {
    switch payload(type) {
    case .media(let codec): isRetransmission ? nil : codec
    case .retransmission(let codec): isRetransmission ? codec : nil
    case nil: nil
    }
  }

  /// Whether transport-wide feedback was negotiated for what is received.
  var reportsArrivals: Bool {
    extensions.transportSequence != 0 && receives(feedback: "transport-cc")
  }

  /// Whether any received codec negotiated a kind of feedback.
  func receives(feedback: String) -> Bool {
    section.receiving?.codecs.contains { $0.feedback.contains(feedback) } ?? false
  }
}

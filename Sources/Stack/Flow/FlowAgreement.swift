import RTP
import Wire

/// What the m-sections of a transport negotiated, with lookups that every packet needs; immutable
/// until the next negotiation.
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

import JSEP
import RTP
package import SCTP
package import SDP
package import Signaling
import Wire

/// The result of matching a plan with a live client's description: the streams to play, with their
/// payload types, header extensions, sections and SSRCs in the new call.
package struct Agreement: Hashable, Sendable {
  /// The section of the new call that corresponds to one of the plan's sections.
  package struct Section: Hashable, Sendable {
    /// The index of the client's section.
    package var place: Int
    package var mid: String
    /// The number of the section's transport.
    package var transport: Int
    /// The new payload type of each recorded one.
    package var types: [UInt8: UInt8] = [:]
    /// The new id of each recorded header extension id.
    package var extensions: [UInt8: UInt8] = [:]
  }

  /// The client's section for data channels.
  package struct Data: Hashable, Sendable {
    /// The index of the client's section.
    package var place: Int
    /// The number of the section's transport.
    package var transport: Int
    package var remotePort: UInt16
    package var remoteMaximumMessageSize: UInt64

    /// Returns the parameters of the association, once the DTLS role is settled.
    package func parameters(isClient: Bool) -> SCTPParameters {
      SCTPParameters(
        isClient: isClient, remotePort: remotePort,
        remoteMaximumMessageSize: remoteMaximumMessageSize)
    }
  }

  /// The new sections, by the index of the corresponding section in the plan.
  package private(set) var sections: [Int: Section] = [:]
  /// The new SSRC of each recorded stream that is played.
  package private(set) var ssrcs: [UInt32: UInt32] = [:]
  /// The client's section for data channels; nil if no data channels are played.
  package private(set) var data: Data?
  /// Phrases that say what is not played, and why.
  package private(set) var omissions: [String] = []

  /// Returns, for each section of the plan, the index of the client's section; nil if the client
  /// has none.
  private static func places(
    _ plan: ReenactmentPlan, in client: SDPDocument, answersOffer: Bool
  ) -> [Int?] {
    var used: Set<Int> = []
    return plan.sections.indices.map { index in
      let place = client.sections.indices.first { place in
        let section = client.sections[place]
        guard !used.contains(place), section.kind == plan.sections[index].sectionKind else {
          return false
        }
        // An answer has the offer's sections, in the same order.
        if answersOffer { return place == index }
        let direction = section.direction ?? client.direction ?? .sendrecv
        return !section.isRejected && direction.receives
      }
      guard let place, !client.sections[place].isRejected else { return nil }
      used.insert(place)
      return place
    }
  }

  /// Matches a plan with the description of a live client.
  ///
  /// - Parameters:
  ///   - answersOffer: whether the description answers the plan's offer; otherwise it is the
  ///     client's own offer.
  ///   - offer: the offer that numbers the transports; nil if that is the plan's or the client's
  ///     own.
  /// - Throws: a refusal if the client receives none of the recorded media, or does not support a
  ///   recorded codec, which the refusal names.
  package init(
    _ plan: ReenactmentPlan, with client: SDPDocument, answersOffer: Bool,
    numberedBy offer: SDPDocument? = nil
  ) throws(CallRefusal) {
    let places = Agreement.places(plan, in: client, answersOffer: answersOffer)
    var transports = RelayedSections()
    let numbers = transports.assign(offer ?? (answersOffer ? plan.offer : client))
    for (index, place) in places.enumerated() {
      let recorded = plan.sections[index]
      guard let place else {
        omissions.append(
          "the \(recorded.kind.rawValue) of section \(recorded.mid), for which the client has no "
            + "receiving section")
        continue
      }
      try add(index, of: plan, at: place, of: client, over: numbers[place] ?? 0)
    }
    guard !sections.isEmpty else {
      throw CallRefusal(
        .unprocessable,
        "the client receives none of the recorded media: "
          + plan.sections.map(\.kind.rawValue).joined(separator: " and "))
    }
    data = plan.channels.isEmpty ? nil : Agreement.data(in: client, numbers)
    if data == nil, !plan.messages.isEmpty {
      omissions.append(
        "\(counted(plan.messages.count, "data channel message")), for which the client has no "
          + "section")
    }
    chooseStreams(plan, avoiding: Set(client.sections.flatMap { $0.ssrcs.map(\.ssrc) }))
  }

  /// Finds the section for data channels (RFC 8841).
  private static func data(in client: SDPDocument, _ numbers: [Int?]) -> Data? {
    let place = client.sections.indices.first { place in
      let section = client.sections[place]
      return section.kind == .application && !section.isRejected && section.sctpPort != nil
    }
    guard let place, numbers.indices.contains(place), let transport = numbers[place] else {
      return nil
    }
    let section = client.sections[place]
    return Data(
      place: place, transport: transport, remotePort: section.sctpPort ?? 5000,
      remoteMaximumMessageSize: section.maximumMessageSize ?? 65_536)
  }

  private mutating func add(
    _ index: Int, of plan: ReenactmentPlan, at place: Int, of client: SDPDocument,
    over transport: Int
  ) throws(CallRefusal) {
    let recorded = plan.sections[index]
    let section = client.sections[place]
    let offered = ReenactmentPlan.Format.all(of: section)
    var agreed = Section(
      place: place, mid: section.mid ?? "\(place)", transport: transport)
    let used = plan.formatsInUse(ofSection: index)
    for format in used where !format.isRetransmission {
      if let match = format.match(in: offered) {
        agreed.types[format.payloadType] = match.payloadType
      } else if format.isMedia {
        let names = offered.filter(\.isMedia).map(\.description).joined(separator: ", ")
        throw CallRefusal(
          .unprocessable,
          "the client does not support \(format.description), the codec of the recorded "
            + "\(recorded.kind.rawValue); it supports \(names.isEmpty ? "nothing" : names)")
      }
    }
    for format in used where format.isRetransmission {
      // A retransmission format belongs to the format that it repeats (RFC 4588 section 8.1).
      let repeated = format.repeatedType ?? agreed.types.keys.min()
      guard let repeated, let type = agreed.types[repeated],
        let match = offered.first(where: { $0.isRetransmission && $0.repeatedType == type })
      else { continue }
      agreed.types[format.payloadType] = match.payloadType
    }
    for (id, uri) in recorded.extensions where !Agreement.ofLayers.contains(uri) {
      guard let map = section.extensionMaps.first(where: { $0.uri == uri }), map.id < 256,
        map.direction?.receives ?? true
      else { continue }
      agreed.extensions[id] = UInt8(map.id)
    }
    // FEC protects packets' bytes (RFC 5109 section 8.2), so it is useless if payload types,
    // extension ids or the MID change.
    let isUnchanged =
      agreed.types.allSatisfy { $0.key == $0.value }
      && recorded.extensions.allSatisfy {
        agreed.extensions[$0.key] == $0.key || Agreement.ofLayers.contains($0.value)
      }
      && agreed.mid == recorded.mid
    if !isUnchanged {
      for format in used where format.isCorrection { agreed.types[format.payloadType] = nil }
    }
    sections[index] = agreed
  }

  /// The header extensions that carry layer names (RIDs); a client that does not negotiate
  /// simulcast does not negotiate them either.
  private static let ofLayers: Set<String> = [
    HeaderExtensionURI.streamID.rawValue, HeaderExtensionURI.repairedStreamID.rawValue,
  ]

  /// Chooses each section's streams: all of them, or only the simulcast layer with the most
  /// packets.
  private mutating func chooseStreams(_ plan: ReenactmentPlan, avoiding taken: Set<UInt32>) {
    var taken = taken
    let recorded = Set(plan.streams.map(\.ssrc))
    for index in plan.sections.indices {
      guard sections[index] != nil else { continue }
      let own = plan.streams.filter { $0.section == index && $0.repairs == nil }
      let layers = Set(own.compactMap(\.layer))
      let main = own.max { $0.packets < $1.packets }
      let chosen = layers.count > 1 ? own.filter { $0.ssrc == main?.ssrc } : own
      if chosen.count < own.count {
        let layer = main?.layer ?? ""
        omissions.append(
          "\(counted(own.count - chosen.count, "other simulcast layer")) besides \(layer)")
      }
      for stream in chosen
        + plan.streams.filter({ repair in
          repair.repairs.map { source in chosen.contains { $0.ssrc == source } } ?? false
        })
      {
        var ssrc = stream.ssrc
        if taken.contains(ssrc) {
          while ssrc == 0 || taken.contains(ssrc) || recorded.contains(ssrc) { ssrc &+= 1 }
        }
        taken.insert(ssrc)
        ssrcs[stream.ssrc] = ssrc
      }
    }
  }
}

extension ReenactmentPlan {
  /// Returns the formats of a section's packets in order of appearance, and the formats that its
  /// retransmissions repeat.
  package func formatsInUse(ofSection index: Int) -> [Format] {
    var types: [UInt8] = []
    for stream in streams where stream.section == index {
      for type in stream.payloadTypes where !types.contains(type) { types.append(type) }
    }
    let formats = types.compactMap { sections[index].format($0) }
    // Retransmissions also need the format that they repeat, even if only retransmissions arrived.
    let repeated = formats.compactMap(\.repeatedType).filter { !types.contains($0) }
    return formats + repeated.compactMap { sections[index].format($0) }
  }
}

extension ReenactmentPlan.Section {
  var sectionKind: SectionKind { kind == .audio ? .audio : .video }
}

extension ReenactmentPlan.Format {
  /// The payload type that this format's retransmissions repeat (RFC 4588 section 8.1).
  var repeatedType: UInt8? {
    CodecFormat.value(of: "apt", in: parameters).flatMap { UInt8($0) }
  }

  /// Returns a format with the same encoding, preferably with the same payload type.
  func match(in others: [ReenactmentPlan.Format]) -> ReenactmentPlan.Format? {
    let able = others.filter { carriesSame(as: $0) }
    return able.first { $0.payloadType == payloadType } ?? able.first
  }

  /// Returns whether a receiver of another format can decode this one.
  private func carriesSame(as other: ReenactmentPlan.Format) -> Bool {
    guard name == other.name, clockRate == other.clockRate,
      channels ?? 1 == other.channels ?? 1
    else { return false }
    // A format without parameters matches any parameters.
    guard !parameters.isEmpty else { return true }
    func value(_ name: String, _ usual: String) -> (String, String) {
      (
        CodecFormat.value(of: name, in: parameters) ?? usual,
        CodecFormat.value(of: name, in: other.parameters) ?? usual
      )
    }
    switch name {
    case "h264":
      let (mode, otherMode) = value("packetization-mode", "0")
      let (profile, otherProfile) = value("profile-level-id", "42e01f")
      return mode == otherMode
        && profile.prefix(2).lowercased() == otherProfile.prefix(2).lowercased()
    case "vp9", "h265":
      let (profile, otherProfile) = value("profile-id", name == "vp9" ? "0" : "1")
      return profile == otherProfile
    case "av1":
      let (profile, otherProfile) = value("profile", "0")
      return profile == otherProfile
    default: return true
    }
  }
}

// MARK: - Descriptions

extension Agreement {
  /// Returns the answer to a client's offer, without a transport.
  ///
  /// - Parameters:
  ///   - count: the number of the recorded sender's changes that were already signaled.
  ///   - states: the states of the sections; nil for those after that number of changes.
  ///   - version: the session version in the `o=` line.
  package func answer(
    to offer: SDPDocument, _ plan: ReenactmentPlan, after count: Int = 0,
    states: [Int: ReenactmentPlan.SectionState]? = nil, version: UInt64 = 2
  ) -> SDPDocument {
    let states = states ?? plan.states(after: count)
    var sections: [SDPSection] = []
    for (place, offered) in offer.sections.enumerated() {
      let index = self.sections.first { $0.value.place == place }?.key
      sections.append(
        answer(to: offered, place, of: offer, index, plan, index.flatMap { states[$0] }))
    }
    return Agreement.document(
      sections, bundles: offer.bundles, isMixed: offer.allowsMixedExtensions, version: version)
  }

  private func answer(
    to offered: SDPSection, _ place: Int, of offer: SDPDocument, _ index: Int?,
    _ plan: ReenactmentPlan, _ state: ReenactmentPlan.SectionState?
  ) -> SDPSection {
    if place == data?.place { return ReenactmentPlan.dataSection(offered.mid ?? "\(place)") }
    let isMedia = offered.kind == .audio || offered.kind == .video
    guard isMedia, !offered.isRejected else {
      var section = SDPSection(
        kind: offered.kind, port: 0, transport: offered.transport, formats: offered.formats)
      if let mid = offered.mid { section.append(SDPLine(.mid, mid)) }
      return section
    }
    let agreed = index.flatMap { sections[$0] }
    let wanted = agreed.map { Set($0.types.values) }
    let types = offered.formats.filter { name in
      guard let wanted else { return true }
      return UInt8(name).map { wanted.contains($0) } ?? false
    }
    var section = SDPSection(
      kind: offered.kind, port: 9, transport: offered.transport, formats: types)
    section.append(SDPLine(.mid, offered.mid ?? "\(place)"))
    section.append(.rtcpMux)
    if offered.reducesRTCPSize { section.append(.rtcpReducedSize) }
    if offered.measuresReceiverRoundTrip, !plan.roundTrips.isEmpty {
      section.append(SDPLine(.rtcpExtendedReports, "rcvr-rtt=all"))
    }
    let client = offered.direction ?? offer.direction ?? .sendrecv
    let direction = MediaDirection(
      sends: state?.sends == true && client.receives,
      receives: state?.receives == true && client.sends)
    section.append(direction.attributeName)
    for map in offered.extensionMaps
    where agreed.map({ $0.extensions.values.contains(UInt8(clamping: map.id)) }) ?? false {
      section.append(map)
    }
    for map in offered.rtpMaps where types.contains(String(map.payloadType)) { section.append(map) }
    for format in offered.formatParameters where types.contains(format.format) {
      section.append(format)
    }
    let recorded = index.map { Set(plan.sections[$0].feedback.map(\.feedback)) } ?? []
    for feedback in offered.rtcpFeedback {
      let isOfType = feedback.payloadType.map { types.contains(String($0)) } ?? true
      let isWanted =
        recorded.isEmpty || recorded.contains(feedback.feedback)
        || (feedback.feedback == "rrtr" && !plan.roundTrips.isEmpty)
      if isOfType, isWanted {
        section.append(feedback)
      }
    }
    if let index { plan.appendSources(of: index, named: ssrcs, to: &section) }
    return section
  }

  /// Creates a description whose accepted sections are bundled.
  static func document(
    _ sections: [SDPSection], bundles: [[String]], isMixed: Bool, version: UInt64 = 2
  ) -> SDPDocument {
    var document = SDPDocument(origin: Origin(sessionID: 1, sessionVersion: version))
    let accepted = Set(sections.filter { !$0.isRejected }.compactMap(\.mid))
    for bundle in bundles {
      document.append(SectionGroup.bundle(bundle.filter { accepted.contains($0) }))
    }
    if isMixed { document.append(.extensionMapAllowMixed) }
    document.sections = sections.map { section in
      var section = section
      // A leg replaces this fingerprint with its own; a section without one would not use DTLS.
      if !section.isRejected, section.fingerprints.isEmpty { section.append(noFingerprint) }
      return section
    }
    return document
  }

  private static let noFingerprint = SDPLine(
    .fingerprint, "sha-256 " + Array(repeating: "00", count: 32).joined(separator: ":"))
}

extension ReenactmentPlan {
  /// The recorded sender's offer, without a transport, with all recorded media and mids.
  package var offer: SDPDocument {
    var described: [SDPSection] = []
    for index in sections.indices { described.append(offeredSection(index)) }
    if !channels.isEmpty {
      let mids = Set(sections.map(\.mid))
      let mid = ["data"] + (0...mids.count).map { "data\($0)" }
      described.append(Self.dataSection(mid.first { !mids.contains($0) } ?? "data"))
    }
    return Agreement.document(
      described, bundles: [described.compactMap(\.mid)], isMixed: true)
  }

  /// Returns a section for data channels (RFC 8841), without a transport.
  static func dataSection(_ mid: String) -> SDPSection {
    var section = SDPSection(
      kind: .application, port: 9, transport: "UDP/DTLS/SCTP", formats: ["webrtc-datachannel"])
    section.append(SDPLine(.mid, mid))
    section.append(SDPLine(.sctpPort, "5000"))
    section.append(SDPLine(.maximumMessageSize, String(SCTPParameters.maximumMessageSize)))
    return section
  }

  private func offeredSection(_ index: Int) -> SDPSection {
    let recorded = sections[index]
    let formats = formatsInUse(ofSection: index)
    var section = SDPSection(
      kind: recorded.sectionKind, port: 9, transport: "UDP/TLS/RTP/SAVPF",
      formats: formats.map { String($0.payloadType) })
    section.append(SDPLine(.mid, recorded.mid))
    section.append(.rtcpMux)
    section.append(.rtcpReducedSize)
    if !roundTrips.isEmpty { section.append(SDPLine(.rtcpExtendedReports, "rcvr-rtt=all")) }
    let direction = MediaDirection(sends: recorded.sendsFirst, receives: recorded.isTwoWay)
    section.append(direction.attributeName)
    for (id, uri) in recorded.extensions.sorted(by: { $0.key < $1.key }) where id > 0 {
      section.append(ExtensionMap(id: UInt16(id), uri: uri))
    }
    for format in formats {
      let type = format.payloadType
      section.append(
        RTPMap(
          payloadType: type, name: format.name, clockRate: format.clockRate,
          channels: format.channels))
      if !format.parameters.isEmpty {
        section.append(FormatParameters(format: String(type), parameters: format.parameters))
      } else if format.isRetransmission, let media = formats.first(where: \.isMedia) {
        section.append(
          FormatParameters(format: String(type), parameters: "apt=\(media.payloadType)"))
      }
    }
    for feedback in feedback(of: recorded, formats) { section.append(feedback) }
    let names = Dictionary(streams.map { ($0.ssrc, $0.ssrc) }) { first, _ in first }
    appendSources(of: index, named: names, to: &section)
    return section
  }

  /// Appends a section's streams with their repair streams, media first, because receivers may
  /// assume that the first SSRC is the media's.
  ///
  /// - Parameter ssrcs: the SSRCs in the description, by recorded SSRC; other streams are omitted.
  func appendSources(
    of index: Int, named ssrcs: [UInt32: UInt32], to section: inout SDPSection
  ) {
    section.append(MSID(streamID: "retake", trackID: "retake-\(index)"))
    func append(_ ssrc: UInt32) {
      section.append(SSRCAttribute(ssrc: ssrc, name: "cname", value: "retake"))
    }
    for stream in streams where stream.section == index && stream.repairs == nil {
      guard let ssrc = ssrcs[stream.ssrc] else { continue }
      let repairs = streams.filter { $0.repairs == stream.ssrc }.compactMap { ssrcs[$0.ssrc] }
      for repair in repairs { section.append(SSRCGroup(semantics: "FID", ssrcs: [ssrc, repair])) }
      append(ssrc)
      repairs.forEach(append)
    }
  }

  /// Returns the negotiated feedback, or the usual feedback if no description states any.
  private func feedback(of section: Section, _ formats: [Format]) -> [RTCPFeedback] {
    let types = Set(formats.map(\.payloadType))
    guard section.feedback.isEmpty else {
      return section.feedback.filter { $0.payloadType.map { types.contains($0) } ?? true }
    }
    let hasSequence = section.extensions.values.contains(
      HeaderExtensionURI.transportSequence.rawValue)
    let names =
      (section.kind == .video ? ["nack", "nack pli", "ccm fir"] : [])
      + (hasSequence ? ["transport-cc"] : [])
    return formats.filter(\.isMedia).flatMap { format in
      names.map { RTCPFeedback(payloadType: format.payloadType, feedback: $0) }
    }
  }
}

package import SDP
import Wire

// The state that the rest of the peer reads.
extension Negotiation {
  package var transceivers: [Transceiver] { transceiverTable.all }

  /// The result of the last answer, final or provisional: the accepted m-sections, in order.
  package var sections: [NegotiatedSection] { agreed.sections }

  /// The data channel transport agreed in the last completed exchange; nil if there is none.
  package var data: NegotiatedData? { agreed.data }

  /// Whether data channels were requested and have not been rejected since.
  package var wantsData: Bool { wishes.hasData }

  /// Whether data channels are negotiated or being negotiated.
  package var mayHaveData: Bool { data != nil || sectionTable.carryData }

  /// Whether transceivers, data channels or a requested ICE restart need negotiation (W3C section
  /// 4.7.3).
  ///
  /// It is false during an exchange, and must be checked again when the exchange ends.
  package var negotiationIsNeeded: Bool {
    guard signalingState == .stable else { return false }
    return wishes.hasRestart || wantsData && data == nil
      || transceivers.contains { needsNegotiation($0) }
  }

  private func needsNegotiation(_ transceiver: Transceiver) -> Bool {
    if transceiver.isStopping { return transceiver.currentDirection != .stopped }
    guard let index = transceiver.mLineIndex, let local = descriptions.currentLocal,
      let remote = descriptions.currentRemote?.document,
      local.document.sections.indices.contains(index), remote.sections.indices.contains(index)
    else { return true }
    let section = local.document.sections[index]
    let wanted = transceiver.direction.media
    if wanted.sends {
      // The order of streams does not matter.
      let streams = Set(section.msids.map(\.streamID))
      let wanted = transceiver.streamIDs.isEmpty ? ["-"] : transceiver.streamIDs
      if streams != Set(wanted) { return true }
    }
    let own = section.direction ?? .sendrecv
    let peers = (remote.sections[index].direction ?? remote.direction ?? .sendrecv).reversed
    if local.description.type == .offer { return own != wanted && peers != wanted }
    return own != wanted.intersected(with: peers)
  }

  // MARK: Descriptions

  package var currentLocal: SessionDescription? { descriptions.currentLocal?.description }
  package var pendingLocal: SessionDescription? { descriptions.pendingLocal?.description }
  package var currentRemote: SessionDescription? { descriptions.currentRemote?.description }
  package var pendingRemote: SessionDescription? { descriptions.pendingRemote?.description }

  package var hasRemoteDescription: Bool { descriptions.remote != nil }

  package var remoteSectionCount: Int { descriptions.remote?.document.sections.count ?? 0 }

  /// Returns the pending or else the current local description, with the candidates gathered so far
  /// (W3C localDescription); nil if none was set.
  package func localDescription(_ transports: [LocalTransport]) -> SessionDescription? {
    description(.pendingLocal, transports) ?? description(.currentLocal, transports)
  }

  /// Returns a description, with the candidates gathered so far if it is a local one; nil if it was
  /// not set.
  package func description(_ slot: DescriptionSlot, _ transports: [LocalTransport])
    -> SessionDescription?
  {
    switch slot {
    case .currentLocal: descriptions.currentLocal?.filled(with: transports)
    case .pendingLocal: descriptions.pendingLocal?.filled(with: transports)
    case .remote: descriptions.remote?.description
    case .currentRemote: currentRemote
    case .pendingRemote: pendingRemote
    }
  }

  // MARK: Sections

  /// Returns the m-line index of a MID in the peer's description, for addIceCandidate; nil if no
  /// section has it.
  package func remoteMLineIndex(ofMID mid: String) -> Int? {
    guard let document = descriptions.remote?.document else { return nil }
    if let index = document.sections.firstIndex(where: { $0.mid == mid }) { return index }
    // A peer that states no MIDs may use the MIDs generated for its sections.
    let slots = sectionTable.slots
    return document.sections.indices.first {
      document.sections[$0].mid == nil && slots.indices.contains($0) && slots[$0].mid == mid
    }
  }

  /// Returns whether the m-section at an index is disabled or does not exist, so that nothing is
  /// signaled for it.
  package func isOff(mLine index: Int) -> Bool {
    !sectionTable.slots.indices.contains(index) || sectionTable.slots[index].isDead
  }

  package func mid(atMLine index: Int) -> String? {
    sectionTable.slots.indices.contains(index) ? sectionTable.slots[index].mid : nil
  }

  // MARK: Transports

  /// The remote side of each transport in the peer's descriptions, in section order.
  package var remoteTransports: [RemoteTransport] { remoteSides.all }

  package func remoteTransport(_ number: Int) -> RemoteTransport? { remoteSides[number] }

  /// The numbers of the transports that the session needs, including transports that a rollback
  /// would restore.
  package var transportNumbers: [Int] {
    let pending = (sectionTable.slots + (stableState?.slots ?? [])).filter { !$0.isDead }
    return pending.map(\.transportNumber).distinct(after: [bundling.shared])
  }

  /// Returns the transport whose candidates an m-section signals; nil if the section is disabled or
  /// shares another section's transport.
  package func transportNumber(ofMID mid: String) -> Int? {
    guard let index = sectionTable.index(of: mid) else { return nil }
    let number = sectionTable.slots[index].transportNumber
    return mLineIndex(ofTransport: number) == index ? number : nil
  }

  /// Returns the index of the m-section that signals a transport: the first agreed section that
  /// uses the transport, or else the first that the latest description does not reject; nil if
  /// there is none.
  package func mLineIndex(ofTransport number: Int) -> Int? {
    let slots = sectionTable.slots
    if let index = slots.firstIndex(where: { $0.uses(number) && agreed.has($0.mid) }) {
      return index
    }
    guard let document = descriptions.latest else { return nil }
    return slots.indices.first { index in
      slots[index].uses(number) && document.sections.indices.contains(index)
        && !document.sections[index].isRejected
    }
  }

  package func mid(ofTransport number: Int) -> String? {
    mLineIndex(ofTransport: number).map { sectionTable.slots[$0].mid }
  }

  /// Returns the peer's username fragments in an m-section, or in all of them if `index` is nil.
  package func remoteUsernameFragments(atMLine index: Int?) -> [String] {
    [descriptions.pendingRemote, descriptions.currentRemote].compactMap(\.self)
      .flatMap { $0.document.usernameFragments(atMLine: index) }
  }
}

extension SignaledDescriptions.Entry {
  /// Returns the local description with the candidates gathered so far.
  fileprivate func filled(with transports: [LocalTransport]) -> SessionDescription {
    SessionDescription(type: description.type, sdp: document.filled(with: transports).text)
  }
}

// MARK: - OfferReading

/// A parsed remote offer: which sections can be accepted, and on which transports.
struct OfferReading {
  /// Sections that share a transport, or a single section.
  struct Group {
    /// The indices of acceptable sections, ascending.
    var members: [Int]
    /// Whether the sections are in a BUNDLE group, so that the answer may have this group too.
    var isBundled: Bool
    var transport: TransportReading
  }

  /// The media in each m-section that both peers support; nil for data channels and for sections
  /// that must be rejected.
  var media: [SectionMedia?]
  /// The index of the first data channel section that can be accepted; nil if there is none.
  var data: Int?
  var groups: [Group] = []
  /// The index in `groups` of each section's group; nil for sections without a group.
  private var places: [Int?]

  /// Parses an offer (RFC 9429 section 5.8, RFC 9143 section 7.3).
  ///
  /// Sections in a BUNDLE group share a transport; a section outside all groups has its own.
  /// - Throws: `JSEPError` if a transport lacks ICE credentials or fingerprints or has the role
  ///   `holdconn`, or if an acceptable section needs a separate port for RTCP, which the W3C
  ///   rtcpMuxPolicy `require` excludes (RFC 9429 section 5.8.3).
  init(_ document: SDPDocument, _ policy: BundlePolicy, _ capabilities: Capabilities)
    throws(JSEPError)
  {
    let admitted = policy.admits(document)
    let usable = document.sections.indices.map { index in
      admitted[index]
        ? OfferReading.usableMedia(document.sections[index], capabilities) : nil
    }
    let dataIndex = document.sections.indices.first {
      !document.sections[$0].isRejected && document.sections[$0].carriesData && admitted[$0]
    }
    for index in usable.indices where usable[index] != nil {
      try document.checkMultiplexing(index)
    }
    media = [SectionMedia?](repeating: nil, count: usable.count)
    places = [Int?](repeating: nil, count: usable.count)
    let mids = document.sections.map(\.mid)
    let bundles = document.bundles
    for index in usable.indices where usable[index] != nil || index == dataIndex {
      guard places[index] == nil, groups.count < Bundling.transportsMaximum else { continue }
      var sharing = [index]
      var isBundled = false
      if let mid = mids[index], let group = bundles.first(where: { $0.contains(mid) }) {
        isBundled = true
        let names = Set(group)
        sharing = mids.indices.filter { mids[$0].map { names.contains($0) } ?? false }
      }
      let members = sharing.filter {
        places[$0] == nil && (usable[$0] != nil || $0 == dataIndex)
      }
      for member in members { places[member] = groups.count }
      accept(members, of: usable)
      if let dataIndex, members.contains(dataIndex) { data = dataIndex }
      groups.append(
        Group(
          members: members, isBundled: isBundled,
          transport: try TransportReading(document, section: index, bundle: sharing)))
    }
  }

  func group(of index: Int) -> Int? { places[index] }

  /// Accepts the sections on one transport, dropping header extensions whose id already has another
  /// meaning there.
  private mutating func accept(_ members: [Int], of usable: [SectionMedia?]) {
    var taken: [(uri: String, id: UInt8)] = []
    for index in members {
      guard var accepted = usable[index] else { continue }
      accepted.extensions.removeAll { candidate in
        taken.contains { $0.id == candidate.id && $0.uri != candidate.uri }
      }
      for known in accepted.extensions where !taken.contains(where: { $0 == known }) {
        taken.append(known)
      }
      media[index] = accepted
    }
  }

  /// Returns the media in a section that both peers support; nil if the section must be rejected
  /// whatever its transport.
  private static func usableMedia(_ section: SDPSection, _ capabilities: Capabilities)
    -> SectionMedia?
  {
    guard !section.isRejected, let kind = section.kind.mediaKind, section.carriesRTP else {
      return nil
    }
    let media = SectionMedia(reading: section, kind: kind, capabilities)
    return media.carriesMedia ? media : nil
  }
}

extension SectionKind {
  /// The media kind; nil for sections that are neither audio nor video.
  var mediaKind: MediaKind? {
    switch self {
    case .audio: .audio
    case .video: .video
    default: nil
    }
  }

  init(_ kind: MediaKind) {
    self = kind == .audio ? .audio : .video
  }
}

extension SDPDocument {
  /// Throws an error if a media section does not multiplex RTP and RTCP (RFC 5761).
  ///
  /// Sections in a BUNDLE group need not repeat another section's transport attributes (RFC 9143
  /// section 7.1.3).
  func checkMultiplexing(_ index: Int) throws(JSEPError) {
    if sections[index].multiplexesRTCP { return }
    if let mid = sections[index].mid, let names = bundles.first(where: { $0.contains(mid) }) {
      let isSaid = sections.contains { section in
        section.multiplexesRTCP && section.mid.map { names.contains($0) } ?? false
      }
      if isSaid { return }
    }
    throw JSEPError(
      .invalidAccess,
      "\(JSEPError.place(in: self, at: index)) has no a=rtcp-mux: RTCP on a port of its own is not"
        + " supported (rtcpMuxPolicy is require)")
  }
}

extension SDPSection {
  /// Whether the profile means RTP over DTLS-SRTP.
  ///
  /// All RTP profiles do if there is a fingerprint (RFC 9429 section 5.1.2).
  var carriesRTP: Bool {
    [
      "UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "TCP/TLS/RTP/SAVPF", "TCP/TLS/RTP/SAVP",
      "TCP/DTLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVP", "RTP/SAVPF", "RTP/SAVP", "RTP/AVPF", "RTP/AVP",
    ].contains(transport)
  }
}

// MARK: - AnswerReading

/// A remote answer to a local offer, parsed and checked against the offer.
struct AnswerReading {
  /// The transport number of each section that the answer accepts.
  var numbers: [Int?]
  /// The remote side of the answer's transports, ordered by their first sections.
  var transports: [(number: Int, reading: TransportReading)] = []

  /// Checks an answer against its offer (RFC 3264 section 6, RFC 9429 section 5.11).
  ///
  /// - Parameter slots: the offer's sections with their transports.
  init(
    _ answer: SDPDocument, to offer: SDPDocument, _ slots: [SectionSlot],
    _ capabilities: Capabilities
  ) throws(JSEPError) {
    numbers = [Int?](repeating: nil, count: slots.count)
    guard answer.sections.count == offer.sections.count else {
      let line = answer.line(ofSection: min(answer.sections.count, offer.sections.count))
      throw JSEPError(
        .invalidAccess,
        "line \(line): the answer has \(answer.sections.count) m-sections, the offer"
          + " \(offer.sections.count)")
    }
    var accepted: [Int] = []
    for (index, section) in answer.sections.enumerated() {
      let offered = offer.sections[index]
      let place = JSEPError.place(in: answer, at: index)
      guard section.kind == offered.kind, section.mid == nil || section.mid == offered.mid else {
        throw JSEPError(
          .invalidAccess, "\(place) answers \(JSEPError.place(of: offered, at: index))")
      }
      if section.kind == .application, section.port != 0, !offered.isRejected {
        guard section.carriesData else {
          throw JSEPError(.invalidAccess, "\(place) accepts no data channels")
        }
        accepted.append(index)
        continue
      }
      guard section.port != 0, !offered.isRejected, let kind = section.kind.mediaKind else {
        continue
      }
      try answer.checkMultiplexing(index)
      let media = SectionMedia.agreed(
        offer: SectionMedia(reading: offered, kind: kind, capabilities),
        answer: SectionMedia(reading: section, kind: kind, capabilities), peerAnswered: true)
      guard media.carriesMedia else {
        throw JSEPError(.invalidAccess, "\(place) accepts no codec of the offer")
      }
      accepted.append(index)
    }
    for group in AnswerReading.groups(answer, offer, accepted) {
      let number = slots[group[0]].transportNumber
      let place = JSEPError.place(in: answer, at: group[0])
      // A section offered without its own transport must share another section's.
      guard !transports.contains(where: { $0.number == number }) else {
        throw JSEPError(.invalidAccess, "\(place) is not bundled with the others")
      }
      let reading = try TransportReading(answer, section: group[0], bundle: group)
      guard reading.setup != .actpass else {
        throw JSEPError(.invalidAccess, "\(place) answers with a=setup:actpass")
      }
      transports.append((number, reading))
      for index in group { numbers[index] = number }
    }
  }

  /// Groups the accepted sections by shared transport (RFC 9143 section 7.4).
  private static func groups(
    _ answer: SDPDocument, _ offer: SDPDocument, _ accepted: [Int]
  ) -> [[Int]] {
    let bundles = answer.bundles.map { Set($0) }
    var groups: [(bundle: Int?, members: [Int])] = []
    for index in accepted {
      let mid = answer.sections[index].mid ?? offer.sections[index].mid ?? ""
      let bundle = bundles.firstIndex { $0.contains(mid) }
      if bundle != nil, let place = groups.firstIndex(where: { $0.bundle == bundle }) {
        groups[place].members.append(index)
      } else {
        groups.append((bundle, [index]))
      }
    }
    return groups.map(\.members)
  }
}

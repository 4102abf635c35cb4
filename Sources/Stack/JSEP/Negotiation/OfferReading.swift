import SDP
import Wire

/// A remote offer, parsed: which sections can be accepted, and over which transports.
struct OfferReading {
  /// Sections that share a transport, or a single one.
  struct Group {
    /// The indices of acceptable sections, ascending.
    var members: [Int]
    /// Whether the sections are in a BUNDLE group, so that the answer may have one.
    var isBundled: Bool
    var transport: TransportReading
  }

  /// The common media of each m-section; nil if the section must be rejected.
  var media: [SectionMedia?]
  /// The data channel section that can be accepted; there is at most one association.
  var data: Int?
  var groups: [Group] = []
  /// The group index of each section.
  private var places: [Int?]

  /// Parses an offer (RFC 9429 section 5.8, RFC 9143 section 7.3).
  ///
  /// Sections of a BUNDLE group share a transport; a section in no group has its own.
  /// - Throws: also if an acceptable section needs a separate port for RTCP: the W3C rtcpMuxPolicy
  ///   is `require` (RFC 9429 section 5.8.3).
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

  /// Accepts the sections of one transport, on which an extension identifier has one meaning.
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

  /// Returns the section's media if it can be accepted at all.
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
  /// nil for sections that are neither audio nor video.
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
  /// Refuses a media section that does not multiplex RTP and RTCP (RFC 5761).
  ///
  /// Sections of a BUNDLE group need not repeat transport attributes of another one (RFC 9143
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
  /// Whether the profile stands for RTP over DTLS-SRTP.
  ///
  /// All profiles do if there is a fingerprint (RFC 9429 section 5.1.2).
  var carriesRTP: Bool {
    [
      "UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "TCP/TLS/RTP/SAVPF", "TCP/TLS/RTP/SAVP",
      "TCP/DTLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVP", "RTP/SAVPF", "RTP/SAVP", "RTP/AVPF", "RTP/AVP",
    ].contains(transport)
  }
}

import SDP
import Wire

/// What a remote offer means here: which sections can be accepted, and over which transport.
struct OfferReading {
  /// For every m-section what both sides could use; nil where the section must be rejected.
  var media: [SectionMedia?]
  /// The section of data channels that can be accepted: one association is all there is.
  var data: Int?
  /// nil when no section can be accepted.
  var transport: TransportReading?
  /// Whether the acceptable sections are in a BUNDLE group, so that the answer may have one.
  var isBundled = false

  /// Reads an offer (RFC 9429 section 5.8, RFC 9143 section 7.3).
  ///
  /// There is one transport: the first section that can be used decides, and with it go the
  /// sections of its BUNDLE group. All others are rejected.
  init(_ document: SDPDocument) throws(JSEPError) {
    let usable = document.sections.map { OfferReading.usableMedia($0) }
    media = [SectionMedia?](repeating: nil, count: usable.count)
    let dataIndex = document.sections.firstIndex { !$0.isRejected && $0.carriesData }
    guard
      let first = usable.indices.first(where: { usable[$0] != nil || $0 == dataIndex })
    else { return }
    let mids = document.sections.map(\.mid)
    var bundle = [first]
    if let mid = mids[first], let group = document.bundles.first(where: { $0.contains(mid) }) {
      isBundled = true
      let members = Set(group)
      bundle = mids.indices.filter { mids[$0].map { members.contains($0) } ?? false }
    }
    // One identifier means one extension on the whole transport.
    var taken: [(uri: String, id: UInt8)] = []
    for index in bundle {
      guard var accepted = usable[index] else { continue }
      accepted.extensions.removeAll { candidate in
        taken.contains { $0.id == candidate.id && $0.uri != candidate.uri }
      }
      for known in accepted.extensions where !taken.contains(where: { $0 == known }) {
        taken.append(known)
      }
      media[index] = accepted
    }
    if let dataIndex, bundle.contains(dataIndex) { data = dataIndex }
    transport = try TransportReading(document, section: first, bundle: bundle)
  }

  /// The section's media when it can be accepted at all.
  private static func usableMedia(_ section: SDPSection) -> SectionMedia? {
    guard !section.isRejected, let kind = section.kind.mediaKind, section.carriesRTP,
      section.multiplexesRTCP
    else { return nil }
    let media = SectionMedia(reading: section, kind: kind)
    return media.codecs.isEmpty ? nil : media
  }
}

extension SectionKind {
  /// Sound or pictures; nil for sections that carry something else.
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

extension SDPSection {
  /// Whether the profile is one of those that stand for RTP over DTLS-SRTP.
  ///
  /// All of them do when there is a fingerprint (RFC 9429 section 5.1.2), whatever they say.
  var carriesRTP: Bool {
    [
      "UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "TCP/TLS/RTP/SAVPF", "TCP/TLS/RTP/SAVP",
      "TCP/DTLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVP", "RTP/SAVPF", "RTP/SAVP", "RTP/AVPF", "RTP/AVP",
    ].contains(transport)
  }
}

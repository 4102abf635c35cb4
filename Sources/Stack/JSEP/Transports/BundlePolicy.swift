import SDP

/// W3C RTCBundlePolicy: what to offer a peer that may not support BUNDLE (RFC 9429 section 4.1.1).
///
/// Decides which new m-sections of an offer have their own transport until the peer bundles them,
/// and which are marked `bundle-only` and so rejected by such a peer; also which of the peer's
/// m-sections an answer accepts.
public enum BundlePolicy: String, Hashable, Sendable, Codable, CaseIterable {
  /// The first section of each kind (audio, video, data) has its own transport, further ones of
  /// that kind do not.
  case balanced
  /// Every section has its own transport.
  case maxCompat = "max-compat"
  /// Only the first section has its own transport.
  case maxBundle = "max-bundle"

  /// Whether a new section is `bundle-only` when sections of these kinds come before it (RFC 9429
  /// section 5.2.1).
  func leavesToBundle<Kind: Equatable>(_ kind: Kind, after others: [Kind]) -> Bool {
    switch self {
    case .balanced: others.contains(kind)
    case .maxCompat: false
    case .maxBundle: !others.isEmpty
    }
  }

  /// Which sections of a remote offer may be accepted: those with their own transport under this
  /// policy, and those that share a BUNDLE group with one of them (RFC 9429 section 5.3.1).
  func admits(_ offer: SDPDocument) -> [Bool] {
    guard self != .maxCompat else { return offer.sections.map { _ in true } }
    let bundles = offer.bundles.map { Set($0) }
    var leading: [SectionKind: Int?] = [:]
    return offer.sections.map { section in
      guard !section.isRejected else { return false }
      let bundle = section.mid.flatMap { mid in bundles.firstIndex { $0.contains(mid) } }
      // With max-bundle, all kinds count as one.
      let kind = self == .balanced ? section.kind : .audio
      guard let first = leading[kind] else {
        leading[kind] = .some(bundle)
        return true
      }
      return bundle != nil && bundle == first
    }
  }
}

import SDP

/// W3C RTCBundlePolicy: what is allowed to a peer that does not know BUNDLE (RFC 9429 section
/// 4.1.1).
///
/// It decides which new m-sections of an offer have a transport of their own until the peer bundles
/// them, and which are marked `bundle-only`, so that a peer that does not rejects them; and which
/// m-sections of the peer an answer accepts.
public enum BundlePolicy: String, Hashable, Sendable, Codable, CaseIterable {
  /// The first section of each kind (audio, video, data) could stand alone, further ones of that
  /// kind could not.
  case balanced
  /// Every section could stand alone.
  case maxCompat = "max-compat"
  /// Only the first section could stand alone.
  case maxBundle = "max-bundle"

  /// Whether a new section is left to the bundle when sections with these kinds come before it: it
  /// gathers nothing and is marked `bundle-only` (RFC 9429 section 5.2.1).
  func leavesToBundle<Kind: Equatable>(_ kind: Kind, after others: [Kind]) -> Bool {
    switch self {
    case .balanced: others.contains(kind)
    case .maxCompat: false
    case .maxBundle: !others.isEmpty
    }
  }

  /// Which sections of the peer's offer an answer may accept: those that could stand alone, and
  /// those that share a BUNDLE group with one of them (RFC 9429 section 5.3.1).
  func admits(_ offer: SDPDocument) -> [Bool] {
    guard self != .maxCompat else { return offer.sections.map { _ in true } }
    let bundles = offer.bundles.map { Set($0) }
    var leading: [SectionKind: Int?] = [:]
    return offer.sections.map { section in
      guard !section.isRejected else { return false }
      let bundle = section.mid.flatMap { mid in bundles.firstIndex { $0.contains(mid) } }
      // With max-bundle all kinds are one.
      let kind = self == .balanced ? section.kind : .audio
      guard let first = leading[kind] else {
        leading[kind] = .some(bundle)
        return true
      }
      return bundle != nil && bundle == first
    }
  }
}
